// Sizes at call time: symbols get their values from the tensors given.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fuselab/core/tensor.h"
#include "fuselab/graph/graph.h"

namespace fuselab {

using SymbolValues = std::map<std::string, std::int64_t>;

/// Checks the inputs against the graph's parameters and returns the values of its symbols. `sizes` gives explicit `B: size`
/// parameters (by name) that no input shows. Strides are not compared: the values are what counts here.
/// Throws Error("call.arity") for another number of inputs, Error("call.dtype"), Error("call.shape") naming input, dimension and
/// sizes, Error("call.unbound") for a symbol that nothing determines.
SymbolValues bind_symbols(const Graph& graph, const std::vector<Tensor>& inputs, const SymbolValues& sizes = {});

/// The graph with every symbol replaced by its value: types, attributes, no size parameters left.
/// Throws Error("call.shape") when a size comes out negative or an assumption of the graph does not hold.
Graph concrete(const Graph& graph, const SymbolValues& values);

/// Something about sizes that can only be told once the symbols have values.
struct SizeCheck {
  Expr size;  ///< must be at least `least`
  std::int64_t least = 1;
  std::string code, what;  ///< of the error; `what` names operator, value and dimension
  Expr shown;              ///< the number behind `what`
};

/// What the graph's operators ask of symbolic sizes: a `select` needs its index inside of the dimension, an extreme (amax,
/// argmin, ...) at least one element to choose from. Empty for a graph without symbols: infer() has refused those.
std::vector<SizeCheck> size_checks(const Graph& graph);
/// Throws Error("call.shape" | "call.empty_reduction") for the first that does not hold.
void check_sizes(const std::vector<SizeCheck>& checks, const SymbolValues& values);

/// The values of sizes without symbols.
std::vector<std::int64_t> constant_sizes(const std::vector<Expr>& sizes);

}  // namespace fuselab
