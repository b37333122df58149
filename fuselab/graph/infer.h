// Result types of a node, from its table row: dtype rule, shape rule, and PyTorch eager's output strides.
#pragma once
#include <vector>

#include "fuselab/graph/graph.h"

namespace fuselab {

/// Fills missing attributes with their defaults, checks arguments against the row and returns the result types.
/// Throws Error("graph.arity" | "graph.bad_attr" | "graph.shape" | "graph.dtype"), naming operator, argument and sizes.
std::vector<Type> infer(const Graph& g, Node& node);

/// Reduced dims of a reduce-kind node, normalised to [0, rank) and sorted; {} for a 0-d input.
std::vector<int> reduced_dims(const Graph& g, const Node& node);
/// The type in which the node computes before promotion to f32 (R1): what its arguments are converted to.
DType argument_type(const Graph& g, const Node& node);

}  // namespace fuselab
