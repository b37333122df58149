// Pictures of a graph: Graphviz text, and a plain SVG that needs no program to draw it.
#pragma once
#include <string>
#include <vector>

#include "fuselab/graph/graph.h"

namespace fuselab {

/// Which block each node belongs to, for colours and frames. Empty: no blocks.
struct Blocks {
  std::vector<int> of_node;        ///< per node: index into names, or -1
  std::vector<std::string> names;  ///< kernel names
};

/// Graphviz text; the nodes of a block stand in a cluster. Deterministic.
std::string to_dot(const Graph& g, const Blocks& blocks = {});

/// A self-contained SVG image: rows from the inputs (top) to the outputs, a box per node with operator, result names and types,
/// the nodes of a block in one colour, a legend. Graphs of more than 2000 nodes show the first 2000. Deterministic.
std::string to_svg(const Graph& g, const Blocks& blocks = {});

}  // namespace fuselab
