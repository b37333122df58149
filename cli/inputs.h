// Tensors for a graph's inputs: from files or made from a seed.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "fuselab/core/random.h"
#include "fuselab/core/tensor.h"
#include "fuselab/graph/graph.h"

namespace fuselab::cli {

/// Per input: the closed range that its integers are safe in.
using IntRanges = std::map<std::string, IntRange>;
using Symbols = std::map<std::string, std::int64_t>;

/// Normal numbers for floats, small non-zero integers, a fair coin for bool; the same seed gives the same data everywhere.
/// The tensor has the strides of the type. Throws Error("call.symbol") for a size without a value.
Tensor random_tensor(const Type& type, const Symbols& symbols, std::uint64_t seed);

/// All inputs: `given` is "name=FILE.npy" or "name=random"; inputs not named are random when `fill`, else an error (UsageError).
/// `symbols` are values for symbolic sizes; those that files fix are added.
/// `ranges`, when given, are those of integer inputs, and random data is what benchmark.py draws for the same seed.
std::vector<Tensor> make_inputs(const Graph& g, const std::vector<std::string>& given, Symbols& symbols, std::uint64_t seed,
                                bool fill, const IntRanges* ranges = nullptr);

/// The inputs that a file of tensors (.safetensors, .npz, ...) holds by name; the others stay as they are. UsageError for a name
/// the graph does not have, and for another dtype or other sizes.
void inputs_from_file(const Graph& g, const std::string& path, std::vector<Tensor>& inputs);

/// The values of the graph's `B: size` parameters, in order. UsageError when one is missing.
std::vector<std::int64_t> size_arguments(const Graph& g, const Symbols& symbols);

}  // namespace fuselab::cli
