// What a graph should give: an fp64 interpreter with a running error bound, and the op-by-op rounding model. Slow, plain,
// obviously right; checks compare kernels with it.
//
// How the bound is made. Beside its fp64 value every element carries an interval that holds whatever a correct implementation
// computes. Each operator evaluates its fp64 formula at the ends of its arguments' intervals (with a second-order margin where it
// is not monotone) and widens by its rounding: ends rounded to the compute dtype for correctly rounded operators, the table's ULP
// budget for the others; a reduce operator runs its recipe with running error analysis (Higham, Accuracy and Stability, ch. 3),
// with the depth of the fixed summation tree. Rounding to f16 or bf16 happens where the mode says so, at both ends, so that an
// interval shrinks to a point wherever the outcome is certain.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fuselab/core/tensor.h"
#include "fuselab/graph/graph.h"

namespace fuselab::reference {

/// Where low-precision values are rounded.
enum class Rounding : std::uint8_t {
  block,  ///< f16 and bf16 compute in f32; rounded at graph outputs, casts and decisions (R1-R4)
  eager,  ///< every operator's result is rounded to its dtype
};

struct Options {
  Rounding rounding = Rounding::block;
  /// Values (by id) that leave their block and are therefore rounded to their dtype, besides the graph's outputs.
  std::vector<ValueId> stored;
  /// Every low-precision value may or may not be rounded: for graphs of several blocks whose borders are not known.
  bool any_borders = false;
  /// Values of `B: size` parameters (by name) that no input shows.
  std::map<std::string, std::int64_t> sizes;
  /// Runs an extern node: its results for these inputs. Without one an extern node is Error("reference.extern").
  std::function<std::vector<Tensor>(const Node&, const std::vector<Tensor>&)> externs;
};

/// One output of the graph.
struct Output {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  std::vector<double> value;            ///< row-major; integers too (exact below 2^53)
  std::vector<std::int64_t> ints;       ///< integer and bool outputs only: exact
  std::vector<double> bound;            ///< |result - value| is at most this, the rounding to the dtype included; 0 for integers
  std::vector<std::uint8_t> undecided;  ///< 1: a decision (comparison, argmax, float->int) hangs on a value within its bound
};

/// fp64 value, bound and undecided mask of every output, in the order of graph.outputs. Inputs in the order of graph.inputs;
/// symbolic sizes are bound from them. Throws what bind_symbols throws, Error("reference.op") for an operator without fp64
/// meaning.
std::vector<Output> fp64_reference(const Graph& graph, const std::vector<Tensor>& inputs, const Options& options = {});

/// Op-by-op eager model: every operator is computed in its compute dtype and rounded to its dtype. Tensors of the outputs'
/// dtypes.
std::vector<Tensor> rounded(const Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace fuselab::reference
