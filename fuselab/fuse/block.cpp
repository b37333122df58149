#include "fuselab/fuse/block.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "fuselab/fuse/axes.h"
#include "fuselab/graph/infer.h"

namespace fuselab::fuse {
namespace {

Dim concat(const std::vector<Dim>& dims) {
  Dim out;
  for (const Dim& d : dims) out.insert(out.end(), d.begin(), d.end());
  return out;
}

std::vector<Expr> without_ones(const std::vector<Expr>& sizes) {
  std::vector<Expr> out;
  for (const Expr& s : sizes) {
    if (!s.is(1)) out.push_back(s);
  }
  return out;
}

class Check {
 public:
  Check(const Info& info, const Block& block) : info_(info), g_(info.g), block_(block) {
    inside_.insert(block.nodes.begin(), block.nodes.end());
  }

  Verdict run() {
    Verdict verdict;
    find_outputs(verdict);
    for (NodeId n : block_.nodes) verdict.reduces = verdict.reduces || info_.is_reduce(n);
    if (block_.nodes.size() == 1) return verdict;
    for (NodeId n : block_.nodes) {
      for (ValueId v : g_.nodes[n].results) dims_[v] = fresh(g_.values[v].type.sizes);
    }
    for (NodeId n : block_.nodes) {
      if (!relate(g_.nodes[n])) {
        verdict.why = why_.empty() ? "the index spaces of " + name_of(n) + " and its operands do not fit in one loop nest" : why_;
        return verdict;
      }
    }
    align(verdict);
    verdict.why = domain(verdict);
    return verdict;
  }

 private:
  std::string name_of(NodeId n) const { return g_.values[g_.nodes[n].results[0]].name; }

  std::vector<Dim> fresh(const std::vector<Expr>& sizes) {
    std::vector<Dim> out;
    for (const Expr& s : sizes) out.push_back(axes_.fresh(s));
    return out;
  }

  void find_outputs(Verdict& verdict) const {
    for (NodeId n : block_.nodes) {
      if (info_.inlined[n]) continue;  // whoever reads it has its own copy
      for (ValueId v : g_.nodes[n].results) {
        const auto& readers = info_.readers[v];
        const bool outside = std::any_of(readers.begin(), readers.end(), [&](NodeId r) { return !inside_.count(r); });
        if (info_.exposed[v] || outside) verdict.outputs.push_back(v);
      }
    }
  }

  // The dims of an operand as far as they bind it to the block: nothing for a free leaf (any index map can be loaded).
  // Returns false when a view between two computed values cannot be followed.
  bool operand(ValueId v, std::optional<std::vector<Dim>>& out) {
    const ValueId root = info_.root(v);
    const NodeId producer = info_.producer(root);
    if (producer >= 0 && inside_.count(producer)) {
      out = dims_.at(root);
    } else if (std::find(block_.ties.begin(), block_.ties.end(), root) != block_.ties.end()) {
      auto [it, added] = dims_.try_emplace(root);
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
        if (!axes_.regroup(concat(dims), to.sizes, out)) return false;
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
        const Dim part = axes_.fresh(to.sizes[d]);
        slices_.push_back({dims[d], part});
        dims[d] = part;
        return true;
      }
      case ViewKind::select: {
        const int d = view.dims[0];
        slices_.push_back({dims[d], {}});
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
      if (!operand[d].empty() && !axes_.unify(operand[d], target[d + shift])) return false;
    }
    return true;
  }

  bool relate(const Node& node) {
    if (node.op->kind == ops::Kind::reduce) return relate_reduce(node);
    const std::vector<Dim>& result = dims_.at(node.results[0]);
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
      return axes_.unify(concat(own), concat(result)) && operand(v, dims) && (!dims || bind_aligned(*dims, own));
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
      has_groups_ = true;
      if (sizes.size() < 2) return false;
      std::vector<Dim> channel;
      const auto groups = group_count(node);
      Expr per_group;
      if (!groups || !exact_div(sizes[1], *groups, per_group)) return false;
      if (!axes_.regroup(full[1], {*groups, per_group}, channel)) return false;
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
    if (reduces_) {
      if (!axes_.unify(over_, over) || !axes_.unify(kept_, kept)) {
        why_ = name_of(node.id) + " reduces over other axes than the rest of the block";
        return false;
      }
    } else {
      reduces_ = true;
      kept_ = kept;
      over_ = over;
      full_dims_ = full;
      full_sizes_ = sizes;
    }
    operands_.push_back(concat(full));
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
    if (has_groups_ && dims.size() == 2 && full.size() != 2) return axes_.unify(concat(dims), kept);
    return bind_aligned(dims, full);
  }

  bool bind_result(ValueId v, const std::vector<Expr>& sizes, const std::vector<Dim>& full, const std::vector<bool>& reduced,
                   const Dim& kept) {
    const std::vector<Expr>& out = g_.values[v].type.sizes;
    const std::vector<Dim>& dims = dims_.at(v);
    if (out == sizes) return bind_aligned(dims, full);
    bool keepdim = out.size() == sizes.size();
    for (std::size_t d = 0; keepdim && d < out.size(); ++d) keepdim = reduced[d] ? out[d].is(1) : out[d] == sizes[d];
    if (!keepdim) return axes_.unify(concat(dims), kept);
    for (std::size_t d = 0; d < out.size(); ++d) {
      if (!reduced[d] && !axes_.unify(dims[d], full[d])) return false;
    }
    return true;
  }

  // Loops of equal extent that nothing has tied together yet become the same loop: a result beside the reduced operand, two
  // results that only share a row. Joining independent loops is always right; it only decides what fits into one nest.
  void align(const Verdict& verdict) {
    std::vector<Expr> sizes = full_sizes_;
    std::vector<Dim> target = full_dims_;
    if (!reduces_) {
      for (ValueId v : verdict.outputs) {
        if (concat(dims_.at(v)).size() <= concat(target).size()) continue;
        target = dims_.at(v);
        sizes = g_.values[v].type.sizes;
      }
    }
    for (NodeId n : block_.nodes) {
      for (ValueId v : g_.nodes[n].results) {
        const std::vector<Expr>& mine = g_.values[v].type.sizes;
        if (mine.size() > sizes.size()) continue;
        const std::size_t shift = sizes.size() - mine.size();
        bool matches = true;
        for (std::size_t d = 0; d < mine.size(); ++d) matches = matches && (mine[d].is(1) || mine[d] == sizes[d + shift]);
        if (!matches) continue;
        for (std::size_t d = 0; d < mine.size(); ++d) {
          const Dim bound = axes_.resolve(concat(target));
          const Dim own = axes_.resolve(dims_.at(v)[d]);
          const bool loose = std::none_of(own.begin(), own.end(),
                                          [&](int a) { return std::find(bound.begin(), bound.end(), a) != bound.end(); });
          if (!own.empty() && loose) axes_.unify(own, target[d + shift]);
        }
      }
    }
  }

  // After all joins: the domain, and where each value stands in it.
  std::string domain(const Verdict& verdict) {
    std::map<int, int> driven_by;  // axis that is only walked in part -> the axis that walks it, or -1 (one fixed index)
    for (const auto& [whole, part] : slices_) {
      const Dim a = axes_.resolve(whole), b = axes_.resolve(part);
      if (a.empty()) continue;
      if (a.size() != 1 || b.size() > 1) return "a slice cuts through a merged dim";
      const int driver = b.empty() ? -1 : b[0];
      const auto [it, added] = driven_by.try_emplace(a[0], driver);
      if (!added && it->second != driver) return "one value is read through slices of different extents";
    }
    Dim order;
    std::set<int> parallel, over;
    if (reduces_) {
      order = axes_.resolve(concat(full_dims_));
      for (int a : axes_.resolve(kept_)) parallel.insert(a);
      for (int a : axes_.resolve(over_)) over.insert(a);
      for (const Dim& operand : operands_) {
        if (axes_.resolve(operand) != order) return "its reductions walk their operands in different orders";
      }
    } else {
      for (ValueId v : verdict.outputs) {
        const Dim dims = axes_.resolve(concat(dims_.at(v)));
        if (dims.size() > order.size()) order = dims;
      }
      parallel.insert(order.begin(), order.end());
    }
    std::set<int> all(order.begin(), order.end());
    if (all.size() != order.size()) return "one value is read along two different axes";
    for (const auto& [axis, driver] : driven_by) {
      if (all.count(axis)) return "a value is needed both whole and in part";
    }
    const std::vector<Expr>* full_sizes = nullptr;
    const std::vector<Expr>* row_sizes = nullptr;
    for (NodeId n : block_.nodes) {
      for (ValueId v : g_.nodes[n].results) {
        const std::string& name = g_.values[v].name;
        std::set<int> mine;
        Dim walk;
        bool partial = false;
        for (const Dim& dim : dims_.at(v)) {
          bool has_parallel = false, has_over = false;
          for (int axis : axes_.resolve(dim)) {
            if (const auto it = driven_by.find(axis); it != driven_by.end()) {
              partial = true;
              if (it->second < 0) continue;
              axis = it->second;
              if (driven_by.count(axis)) return name + " is a slice of a slice of a computed value";
            }
            if (!all.count(axis)) return name + " has an axis that the block's results do not have";
            if (!mine.insert(axis).second) return name + " is read along two different axes";
            walk.push_back(axis);
            (over.count(axis) ? has_over : has_parallel) = true;
          }
          if (has_over && has_parallel && !has_groups_) return name + " merges reduced and kept dims";
        }
        if (partial && info_.is_reduce(n)) return name + " is a reduction of which only a part is read";
        const bool full = mine == all;
        const bool row = reduces_ && mine == parallel;
        const bool is_output = std::find(verdict.outputs.begin(), verdict.outputs.end(), v) != verdict.outputs.end();
        if (full && reduces_ && !partial && walk != order) return name + " is transposed against the rows of the block";
        if (row && !full && walk != filtered(order, parallel)) return name + " is transposed against the rows of the block";
        if (is_output) {
          if (partial || (!full && !row)) return name + " is stored but smaller than the block's domain";
          if (full && walk != order) return name + " is stored in another order than the block's other results";
          const std::vector<Expr>*& sizes = full ? full_sizes : row_sizes;
          if (sizes && without_ones(*sizes) != without_ones(g_.values[v].type.sizes)) {
            return name + " is stored with other sizes than the block's other results";
          }
          sizes = &g_.values[v].type.sizes;
        }
        const bool subset_of_row =
            reduces_ && std::all_of(mine.begin(), mine.end(), [&](int a) { return parallel.count(a) > 0; });
        if (!full && !row && !subset_of_row && !info_.cheap(n)) return name + " is too costly to repeat for every element";
      }
    }
    return "";
  }

  static Dim filtered(const Dim& order, const std::set<int>& keep) {
    Dim out;
    for (int a : order) {
      if (keep.count(a)) out.push_back(a);
    }
    return out;
  }

  struct Slice {
    Dim whole, part;
  };

  const Info& info_;
  const Graph& g_;
  const Block& block_;
  std::set<NodeId> inside_;
  Axes axes_;
  std::map<ValueId, std::vector<Dim>> dims_;
  std::vector<Slice> slices_;
  std::vector<Dim> operands_;
  bool reduces_ = false, has_groups_ = false;
  Dim kept_, over_;  // of the first reduction, like the next two
  std::vector<Dim> full_dims_;
  std::vector<Expr> full_sizes_;
  std::string why_;
};

}  // namespace

Verdict check_block(const Info& info, const Block& block) { return Check(info, block).run(); }

}  // namespace fuselab::fuse
