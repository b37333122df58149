#include "fuselab/fuse/loops.h"

#include <algorithm>
#include <optional>
#include <set>

#include "fuselab/graph/infer.h"

namespace fuselab::fuse {

Dim concat(const std::vector<Dim>& dims) {
  Dim out;
  for (const Dim& d : dims) out.insert(out.end(), d.begin(), d.end());
  return out;
}

namespace {

class Relation {
 public:
  Relation(const Info& info, const Block& block, Loops& loops)
      : info_(info), g_(info.g), block_(block), inside_(block.nodes.begin(), block.nodes.end()), loops_(loops) {}

  std::string run() {
    for (NodeId n : block_.nodes) {
      for (ValueId v : g_.nodes[n].results) loops_.dims[v] = fresh(g_.values[v].type.sizes);
    }
    for (NodeId n : block_.nodes) {
      if (!relate(g_.nodes[n]))
        return why_.empty() ? "the index spaces of " + name_of(n) + " and its operands do not fit in one loop nest" : why_;
    }
    return "";
  }

 private:
  std::string name_of(NodeId n) const { return g_.values[g_.nodes[n].results[0]].name; }

  std::vector<Dim> fresh(const std::vector<Expr>& sizes) {
    std::vector<Dim> out;
    for (const Expr& s : sizes) out.push_back(loops_.axes.fresh(s));
    return out;
  }

  // The dims of an operand as far as they bind it to the block: nothing for a free leaf (any index map can be loaded).
  // Returns false when a view between two computed values cannot be followed.
  bool operand(ValueId v, std::optional<std::vector<Dim>>& out) {
    const ValueId root = info_.root(v);
    const NodeId producer = info_.producer(root);
    if (producer >= 0 && inside_.count(producer)) {
      out = loops_.dims.at(root);
    } else if (std::find(block_.ties.begin(), block_.ties.end(), root) != block_.ties.end()) {
      auto [it, added] = loops_.dims.try_emplace(root);
      if (added) it->second = fresh(g_.values[root].type.sizes);
      out = it->second;
    } else {
      return true;
    }
    for (NodeId n : info_.chain(v)) {
      if (!follow(n, *out)) return false;
    }
    return true;
  }

  bool follow(NodeId n, std::vector<Dim>& dims) {
    const View& view = info_.view[n];
    const Type& from = g_.values[std::get<ValueId>(g_.nodes[n].args[0])].type;
    const Type& to = g_.values[g_.nodes[n].results[0]].type;
    switch (view.kind) {
      case ViewKind::same:
        return true;
      case ViewKind::permute: {
        std::vector<Dim> out;
        for (int d : view.dims) out.push_back(dims[d]);
        dims = std::move(out);
        return true;
      }
      case ViewKind::squeeze:
        for (auto it = view.dims.rbegin(); it != view.dims.rend(); ++it) dims.erase(dims.begin() + *it);
        return true;
      case ViewKind::unsqueeze:
        dims.insert(dims.begin() + view.dims[0], Dim{});
        return true;
      case ViewKind::expand: {
        std::vector<Dim> out(to.sizes.size() - from.sizes.size());
        out.insert(out.end(), dims.begin(), dims.end());
        dims = std::move(out);
        return true;
      }
      case ViewKind::reshape: {
        if (!merges_or_splits(from.sizes, to.sizes)) {
          why_ = g_.values[g_.nodes[n].results[0]].name + " regroups the elements of a value computed before it";
          return false;
        }
        std::vector<Dim> out;
        if (!loops_.axes.regroup(concat(dims), to.sizes, out)) return false;
        dims = std::move(out);
        return true;
      }
      case ViewKind::slice: {
        const int d = view.dims[0];
        if (to.sizes[d] == from.sizes[d]) {
          const auto step = g_.nodes[n].attrs.find("step");
          if (step == g_.nodes[n].attrs.end()) return true;
          const auto* one = std::get_if<std::int64_t>(&step->second);
          const auto* expr = std::get_if<Expr>(&step->second);
          if ((one && *one == 1) || (expr && expr->is(1))) return true;
        }
        const Dim part = loops_.axes.fresh(to.sizes[d]);
        loops_.slices.push_back({dims[d], part});
        dims[d] = part;
        return true;
      }
      case ViewKind::select: {
        const int d = view.dims[0];
        loops_.slices.push_back({dims[d], {}});
        dims.erase(dims.begin() + d);
        return true;
      }
      case ViewKind::other:
        return false;
    }
    return false;
  }

  // Right-aligned, as broadcasting does; dims that are read at index 0 bind nothing.
  bool bind_aligned(const std::vector<Dim>& operand, const std::vector<Dim>& target) {
    if (operand.size() > target.size()) return false;
    const std::size_t shift = target.size() - operand.size();
    for (std::size_t d = 0; d < operand.size(); ++d) {
      if (!operand[d].empty() && !loops_.axes.unify(operand[d], target[d + shift])) return false;
    }
    return true;
  }

  bool relate(const Node& node) {
    if (node.op->kind == ops::Kind::reduce) return relate_reduce(node);
    const std::vector<Dim>& result = loops_.dims.at(node.results[0]);
    if (info_.copies[node.id]) {
      const ValueId v = std::get<ValueId>(node.args[0]);
      const std::vector<Expr>& from = g_.values[v].type.sizes;
      const std::vector<Expr>& to = g_.values[node.results[0]].type.sizes;
      if (!merges_or_splits(from, to)) {
        why_ = name_of(node.id) + " regroups elements while copying";
        return false;
      }
      const std::vector<Dim> own = fresh(from);
      std::optional<std::vector<Dim>> dims;
      return loops_.axes.unify(concat(own), concat(result)) && operand(v, dims) && (!dims || bind_aligned(*dims, own));
    }
    for (ValueId v : tensor_operands(node)) {
      std::optional<std::vector<Dim>> dims;
      if (!operand(v, dims)) return false;
      if (dims && !bind_aligned(*dims, result)) return false;
    }
    return true;
  }

  bool relate_reduce(const Node& node) {
    const auto* first = node.args.empty() ? nullptr : std::get_if<ValueId>(&node.args[0]);
    if (!first) return false;
    const std::vector<Expr>& sizes = g_.values[*first].type.sizes;
    const std::vector<Dim> full = fresh(sizes);
    std::vector<bool> reduced(sizes.size(), false);
    Dim kept, over;
    if (node.op->reduce == ops::ReduceDims::group) {
      loops_.has_groups = true;
      if (sizes.size() < 2) return false;
      std::vector<Dim> channel;
      const auto groups = group_count(node);
      Expr per_group;
      if (!groups || !exact_div(sizes[1], *groups, per_group)) return false;
      if (!loops_.axes.regroup(full[1], {*groups, per_group}, channel)) return false;
      kept = concat({full[0], channel[0]});
      over = channel[1];
      for (std::size_t d = 2; d < full.size(); ++d) over.insert(over.end(), full[d].begin(), full[d].end());
    } else {
      for (int d : reduced_dims(g_, node)) reduced[d] = true;
      for (std::size_t d = 0; d < full.size(); ++d) {
        Dim& list = reduced[d] ? over : kept;
        list.insert(list.end(), full[d].begin(), full[d].end());
      }
    }
    for (std::size_t i = 0; i < node.args.size(); ++i) {
      const auto* v = std::get_if<ValueId>(&node.args[i]);
      if (!v) continue;
      std::optional<std::vector<Dim>> dims;
      if (!operand(*v, dims)) return false;
      if (!dims) continue;
      const bool channel = i < node.op->args.size() && node.op->args[i].channel;
      if (channel ? dims->size() != 1 || full.size() < 2 || !bind_aligned(*dims, {full[1]}) : !bind_argument(*dims, full, kept)) {
        return false;
      }
    }
    for (ValueId v : node.results) {
      if (!bind_result(v, sizes, full, reduced, kept)) return false;
    }
    if (loops_.reduces) {
      if (!loops_.axes.unify(loops_.over, over) || !loops_.axes.unify(loops_.kept, kept)) {
        why_ = name_of(node.id) + " reduces over other axes than the rest of the block";
        return false;
      }
    } else {
      loops_.reduces = true;
      loops_.kept = kept;
      loops_.over = over;
      loops_.full_dims = full;
      loops_.full_sizes = sizes;
    }
    loops_.operands.push_back(concat(full));
    return true;
  }

  std::optional<Expr> group_count(const Node& node) const {
    for (const char* name : {"num_groups", "groups"}) {
      const auto it = node.attrs.find(name);
      if (it == node.attrs.end()) continue;
      if (const auto* i = std::get_if<std::int64_t>(&it->second)) return Expr(*i);
      if (const auto* e = std::get_if<Expr>(&it->second)) return *e;
    }
    return std::nullopt;
  }

  // An argument beside the reduced one: aligned with it, or one element per row (group statistics come as [N, groups]).
  bool bind_argument(const std::vector<Dim>& dims, const std::vector<Dim>& full, const Dim& kept) {
    if (loops_.has_groups && dims.size() == 2 && full.size() != 2) return loops_.axes.unify(concat(dims), kept);
    return bind_aligned(dims, full);
  }

  bool bind_result(ValueId v, const std::vector<Expr>& sizes, const std::vector<Dim>& full, const std::vector<bool>& reduced,
                   const Dim& kept) {
    const std::vector<Expr>& out = g_.values[v].type.sizes;
    const std::vector<Dim>& dims = loops_.dims.at(v);
    if (out == sizes) return bind_aligned(dims, full);
    bool keepdim = out.size() == sizes.size();
    for (std::size_t d = 0; keepdim && d < out.size(); ++d) keepdim = reduced[d] ? out[d].is(1) : out[d] == sizes[d];
    if (!keepdim) return loops_.axes.unify(concat(dims), kept);
    for (std::size_t d = 0; d < out.size(); ++d) {
      if (!reduced[d] && !loops_.axes.unify(dims[d], full[d])) return false;
    }
    return true;
  }

  const Info& info_;
  const Graph& g_;
  const Block& block_;
  const std::set<NodeId> inside_;
  Loops& loops_;
  std::string why_;
};

}  // namespace

std::string relate_values(const Info& info, const Block& block, Loops& loops) { return Relation(info, block, loops).run(); }

}  // namespace fuselab::fuse
