// Building one graph from parts of another: fragments with canonical names, copies, dead code.
#pragma once
#include <string>
#include <vector>

#include "fuselab/graph/graph.h"

namespace fuselab {

/// Copies nodes of a source graph one by one into a new one; passes decide which, and what a value is replaced by.
class GraphCopy {
 public:
  explicit GraphCopy(const Graph& source);
  ValueId input(ValueId source_value, const std::string& new_name = "");  ///< empty: keeps its name
  /// Copies the node with its recorded types; all it reads must be copied or replaced. Returns the new node.
  const Node& node(const Node& source_node, const std::vector<std::string>& new_names = {});
  /// From now on the source value is this value of the new graph.
  void replace(ValueId source_value, ValueId new_value);
  bool has(ValueId source_value) const { return map_[source_value] >= 0; }
  ValueId at(ValueId source_value) const;  ///< Error("graph.invalid") when it was not copied
  Graph& graph() { return out_; }
  /// Copies name, size parameters, assumptions and outputs, and hands the graph over.
  Graph finish();

 private:
  const Graph& source_;
  Graph out_;
  std::vector<ValueId> map_;
};

/// A name without the front end's running number: `add_12` -> `add`, `layer_norm_1_2` -> `layer_norm`; never empty.
std::string base_name(const std::string& name);

/// The graph of `nodes` (any order) that reads the values `inputs` and returns `outputs`; ids are those of g. Types are kept as
/// they are, Node::origin gets the outer name. Canonical names: inputs x0, x1, ..., results their base name, numbered when taken.
/// Symbols that no input carries become size parameters. Throws Error("graph.invalid") when a node reads something else.
Graph extract(const Graph& g, std::vector<NodeId> nodes, const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs,
              bool canonical_names = true);

/// Without the table operators that no output needs. Extern calls stay: the host framework may count on them (random numbers).
Graph remove_dead(const Graph& g);

/// Text that is equal for graphs that compute the same in the same way, whatever their names: the key for compiling once.
std::string canonical_text(const Graph& g);

/// Per value: is it, or a view of it, or what an extern call makes of it, among the outputs? Such a value's storage may be
/// seen by the caller, so passes must not let two of them become one.
std::vector<bool> reaches_caller(const Graph& g);

}  // namespace fuselab
