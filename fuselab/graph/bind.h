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

/// The values of sizes without symbols.
std::vector<std::int64_t> constant_sizes(const std::vector<Expr>& sizes);

}  // namespace fuselab
