#include "fuselab/fuse/fragment.h"

#include <algorithm>
#include <set>

#include "fuselab/core/hash.h"
#include "fuselab/graph/rewrite.h"

namespace fuselab::fuse {
namespace {

constexpr std::size_t kOpsInName = 5, kOpsNameLength = 60, kHashDigits = 8;

/// The block's nodes with the views and constants that lead to them, ascending.
std::set<NodeId> with_leaves(const Info& info, const Block& block) {
  std::set<NodeId> nodes(block.nodes.begin(), block.nodes.end());
  for (NodeId n : block.nodes) {
    for (ValueId v : tensor_operands(info.g.nodes[n])) {
      for (NodeId view : info.chain(v)) nodes.insert(view);
      const NodeId p = info.producer(info.root(v));
      if (p >= 0 && info.inlined[p] && info.is_create(p)) nodes.insert(p);
    }
  }
  return nodes;
}

std::string ops_of(const Info& info, const std::set<NodeId>& nodes) {
  std::vector<std::string> all, telling;
  for (NodeId n : nodes) {
    const ops::Op& op = *info.g.nodes[n].op;
    if (std::find(all.begin(), all.end(), op.name) != all.end()) continue;
    all.push_back(op.name);
    const bool plain = op.kind == ops::Kind::view || op.kind == ops::Kind::create || op.name == "cast";
    if (!plain) telling.push_back(op.name);
  }
  std::string out;
  std::size_t count = 0;
  for (const std::string& word : telling.empty() ? all : telling) {
    if (++count > kOpsInName || out.size() + word.size() + 1 > kOpsNameLength) break;
    out += (out.empty() ? "" : "_") + word;
  }
  return out;
}

}  // namespace

Step make_kernel_step(const Info& info, const Block& block, const Verdict& verdict) {
  const Graph& g = info.g;
  const std::set<NodeId> nodes = with_leaves(info, block);
  Step step;
  step.kind = Step::Kind::kernel;
  step.block_kind = verdict.reduces ? "reduce" : "elemwise";
  step.outputs = verdict.outputs;
  step.nodes.assign(nodes.begin(), nodes.end());
  std::set<ValueId> seen;
  for (NodeId n : nodes) {
    for (ValueId v : tensor_operands(g.nodes[n])) {
      const bool outside = info.producer(v) < 0 || nodes.count(info.producer(v)) == 0;
      if (outside && seen.insert(v).second) step.inputs.push_back(v);
    }
  }
  step.fragment = extract(g, step.nodes, step.inputs, step.outputs);
  step.name = "autofused_" + step.block_kind + "_" + ops_of(info, nodes) + "_" +
              hash_hex(canonical_text(step.fragment)).substr(0, kHashDigits);
  step.fragment.name = step.name;
  return step;
}

}  // namespace fuselab::fuse
