#include "fuselab/fuse/info.h"

#include <algorithm>
#include <string_view>

#include "fuselab/graph/reshape_copies.h"
#include "fuselab/graph/strides.h"

namespace fuselab::fuse {

std::vector<ValueId> tensor_operands(const Node& node) {
  std::vector<ValueId> out;
  for (const Operand& arg : node.args) {
    if (const auto* v = std::get_if<ValueId>(&arg)) out.push_back(*v);
  }
  return out;
}

Info::Info(const Graph& graph, const Options& options, const std::set<NodeId>& aliased) : g(graph) {
  find_roles(aliased);
  readers.resize(g.values.size());
  exposed.assign(g.values.size(), false);
  for (ValueId v : g.outputs) exposed[root(v)] = true;
  for (const Node& node : g.nodes) {
    if (role[node.id] == Role::view && view[node.id].kind == ViewKind::other)
      exposed[root(std::get<ValueId>(node.args[0]))] = true;
    if (role[node.id] == Role::unused || role[node.id] == Role::view) continue;
    for (ValueId v : tensor_operands(node)) {
      std::vector<NodeId>& list = readers[root(v)];
      if (list.empty() || list.back() != node.id) list.push_back(node.id);
      if (role[node.id] == Role::extern_call) exposed[root(v)] = true;
    }
  }
  find_inlined(options);
}

void Info::find_roles(const std::set<NodeId>& aliased) {
  const std::size_t count = g.nodes.size();
  role.assign(count, Role::unused);
  copies.assign(count, false);
  inlined.assign(count, false);
  view.resize(count);
  root_.resize(g.values.size());
  for (const Value& v : g.values) root_[v.id] = v.id;

  std::vector<bool> live(count, false);
  for (ValueId v : g.outputs) {
    if (producer(v) >= 0) live[producer(v)] = true;
  }
  for (NodeId n = static_cast<NodeId>(count) - 1; n >= 0; --n) {
    // An extern call may do more than its results say (random numbers, printing): it always runs.
    if (!g.nodes[n].op) live[n] = true;
    if (!live[n]) continue;
    for (ValueId v : tensor_operands(g.nodes[n])) {
      if (producer(v) >= 0) live[producer(v)] = true;
    }
  }
  for (const Node& node : g.nodes) {
    if (!live[node.id]) continue;
    if (!node.op || node.op->kind == ops::Kind::extern_ || node.op->kind == ops::Kind::move) {
      role[node.id] = Role::extern_call;
      continue;
    }
    role[node.id] = Role::compute;
    if (node.op->kind != ops::Kind::view) continue;
    view[node.id] = describe_view(g, node);
    const Type& from = g.values[std::get<ValueId>(node.args[0])].type;
    const Type& to = g.values[node.results[0]].type;
    if (view[node.id].kind == ViewKind::reshape && !view_strides(from.sizes, from.strides, to.sizes)) {
      copies[node.id] = true;
      continue;
    }
    role[node.id] = Role::view;
    if (aliased.count(node.id) != 0 || (view[node.id].kind == ViewKind::reshape && !share_a_refinement(from.sizes, to.sizes)))
      view[node.id].kind = ViewKind::other;
    // A view nobody here can follow is materialised as an alias and is a root of its own.
    if (view[node.id].kind != ViewKind::other) root_[node.results[0]] = root_[std::get<ValueId>(node.args[0])];
  }
}

std::vector<NodeId> Info::chain(ValueId v) const {
  std::vector<NodeId> out;
  while (root(v) != v) {
    out.push_back(producer(v));
    v = std::get<ValueId>(g.nodes[producer(v)].args[0]);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

bool Info::cheap(NodeId n) const {
  const Node& node = g.nodes[n];
  if (!node.op || node.op->kind == ops::Kind::view) return true;
  static constexpr std::string_view kCostly[] = {"exp", "log", "sin",  "cos", "tan", "sigmoid",
                                                 "erf", "pow", "fmod", "mod", "idiv"};
  for (std::string_view word : kCostly) {
    if (node.op->lower.find(word) != std::string::npos) return false;
  }
  return node.op->kind != ops::Kind::reduce;
}

// What every reader repeats: constants and index patterns; and, when asked for more than one recomputation, short leaf-side work.
void Info::find_inlined(const Options& options) {
  if (!options.enable || !options.elemwise || options.max_fusion_size == 0) return;
  for (const Node& node : g.nodes) {
    if (role[node.id] != Role::compute || node.results.size() != 1 || copies[node.id]) continue;
    const ValueId result = node.results[0];
    if (exposed[result]) continue;
    const auto& list = readers[result];
    const bool read_by_kernels = std::all_of(list.begin(), list.end(), [&](NodeId n) { return role[n] == Role::compute; });
    if (!read_by_kernels || list.empty()) continue;
    if (is_create(node.id)) {
      inlined[node.id] = true;
    } else if (node.op->kind == ops::Kind::pointwise && list.size() > 1 && cheap(node.id) &&
               static_cast<int>(list.size()) <= options.recomputation_threshold) {
      bool leaf = true;
      for (ValueId v : tensor_operands(node)) {
        const NodeId p = producer(root(v));
        leaf = leaf && (p < 0 || role[p] == Role::extern_call || inlined[p]);
      }
      inlined[node.id] = leaf;
    }
  }
}

}  // namespace fuselab::fuse
