// Random valid graphs made from the op table, and data for them. The same seed gives the same graph and the same data.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fuselab/core/tensor.h"
#include "fuselab/graph/graph.h"

namespace fuselab::fuzz {

/// A graph with what it needs to run: values of its symbols and the seed of its data.
struct Case {
  Graph graph;
  std::map<std::string, std::int64_t> symbols;
  std::uint64_t seed = 0;
};

struct Limits {
  int min_nodes = 2, max_nodes = 40;
  std::int64_t max_elements = 40000;  ///< of any value
};

/// Valid by construction: every node went through infer(). All dtypes, broadcasts, reductions, views, strides, sizes 0, 1, 7,
/// 16, 17 and 1000, some of them symbolic.
Case random_case(std::uint64_t seed, const Limits& limits = {});

/// Tensors for the graph's inputs, with the strides their types ask for. An input's data depend on the seed and its name, so
/// that they stay while a graph is being minimised. Floats are tame; every seventh seed has NaN, infinities and -0 among them.
std::vector<Tensor> random_inputs(const Case& c);
/// Values of the graph's `B: size` parameters, in their order.
std::vector<std::int64_t> size_arguments(const Case& c);
/// A type's number of elements under the case's symbols.
std::int64_t elements(const Type& t, const std::map<std::string, std::int64_t>& symbols);

}  // namespace fuselab::fuzz
