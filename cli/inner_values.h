// `fuselab check --values`: every value of a graph as a result, and where NaN and infinity come up first.
#pragma once
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "fuselab/core/tensor.h"
#include "fuselab/graph/graph.h"

namespace fuselab::cli {

/// The graph with every value that a node computes among its outputs, in the order of the nodes.
Graph with_every_value(Graph g);

/// One row per output: name, operator, dtype, sizes, range of the finite numbers, counts of NaN and infinities; `arises` says
/// which of the two a node has although its arguments do not. `inputs` and `outputs` are the graph's, in its order.
std::vector<nlohmann::ordered_json> value_rows(const Graph& g, const std::vector<Tensor>& inputs,
                                               const std::vector<Tensor>& outputs);

/// A row for people: `y = log(x)  f32[4]  [-1.2, 3]  nan 2 (arises here)`.
std::string value_line(const nlohmann::ordered_json& row);

}  // namespace fuselab::cli
