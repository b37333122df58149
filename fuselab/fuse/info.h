// Facts about the whole graph that fusing needs again and again: who reads what through which views, what runs where.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "fuselab/fuse/fuse.h"
#include "fuselab/fuse/views.h"
#include "fuselab/graph/graph.h"

namespace fuselab::fuse {

enum class Role : std::uint8_t {
  unused,       ///< nothing that leaves the graph depends on it
  extern_call,  ///< runs in the host framework
  view,         ///< an alias: never computed
  compute,      ///< must end up in a kernel
};

struct Info {
  /// `aliased`: views that are not folded into the addressing of their readers.
  explicit Info(const Graph& graph, const Options& options, const std::set<NodeId>& aliased = {});

  const Graph& g;
  std::vector<Role> role;                    ///< per node
  std::vector<bool> copies;                  ///< per node: a reshape that no stride pattern can say, so it is computed
  std::vector<bool> inlined;                 ///< per node: repeated in every block that reads it instead of being stored
  std::vector<View> view;                    ///< per node; filled for view-kind operators
  std::vector<std::vector<NodeId>> readers;  ///< per value: nodes that compute with it or hand it on, views looked through
  std::vector<bool> exposed;                 ///< per value: an extern call or a graph output needs it in memory

  /// The value whose memory `v` looks at, through all views.
  ValueId root(ValueId v) const { return root_[v]; }
  /// The view nodes from root(v) to v, in that order.
  std::vector<NodeId> chain(ValueId v) const;
  NodeId producer(ValueId v) const { return g.values[v].producer; }
  bool is_reduce(NodeId n) const { return g.nodes[n].op && g.nodes[n].op->kind == ops::Kind::reduce; }
  bool is_create(NodeId n) const { return g.nodes[n].op && g.nodes[n].op->kind == ops::Kind::create; }
  /// Worth repeating per element of a larger domain: a few machine instructions, no elementary function.
  bool cheap(NodeId n) const;

 private:
  void find_roles(const std::set<NodeId>& aliased);
  void find_inlined(const Options& options);
  std::vector<ValueId> root_;
};

/// The tensor operands of a node, in order.
std::vector<ValueId> tensor_operands(const Node& node);

}  // namespace fuselab::fuse
