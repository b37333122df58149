#include "fuselab/fuse/block.h"

#include <algorithm>
#include <map>
#include <set>

#include "fuselab/fuse/loops.h"
#include "fuselab/fuse/views.h"

namespace fuselab::fuse {
namespace {

class Check {
 public:
  Check(const Info& info, const Block& block) : info_(info), g_(info.g), block_(block) {}

  Verdict run() {
    Verdict verdict;
    find_outputs(verdict);
    for (NodeId n : block_.nodes) verdict.reduces = verdict.reduces || info_.is_reduce(n);
    if (block_.nodes.size() == 1) return verdict;
    verdict.why = relate_values(info_, block_, loops_);
    if (!verdict.ok()) return verdict;
    align(verdict);
    verdict.why = domain(verdict);
    return verdict;
  }

 private:
  void find_outputs(Verdict& verdict) const {
    const std::set<NodeId> inside(block_.nodes.begin(), block_.nodes.end());
    for (NodeId n : block_.nodes) {
      if (info_.inlined[n]) continue;  // whoever reads it has its own copy
      for (ValueId v : g_.nodes[n].results) {
        const auto& readers = info_.readers[v];
        const bool outside = std::any_of(readers.begin(), readers.end(), [&](NodeId r) { return !inside.count(r); });
        if (info_.exposed[v] || outside) verdict.outputs.push_back(v);
      }
    }
  }

  // Loops of equal extent that nothing has tied together yet become the same loop: a result beside the reduced operand, two
  // results that only share a row. Joining independent loops is always right; it only decides what fits into one nest.
  void align(const Verdict& verdict) {
    std::vector<Expr> sizes = loops_.full_sizes;
    std::vector<Dim> target = loops_.full_dims;
    if (!loops_.reduces) {
      for (ValueId v : verdict.outputs) {
        if (concat(loops_.dims.at(v)).size() <= concat(target).size()) continue;
        target = loops_.dims.at(v);
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
          const Dim bound = loops_.axes.resolve(concat(target));
          const Dim own = loops_.axes.resolve(loops_.dims.at(v)[d]);
          const bool loose = std::none_of(own.begin(), own.end(),
                                          [&](int a) { return std::find(bound.begin(), bound.end(), a) != bound.end(); });
          if (!own.empty() && loose) loops_.axes.unify(own, target[d + shift]);
        }
      }
    }
  }

  // After all joins: the domain, and where each value stands in it.
  std::string domain(const Verdict& verdict) {
    std::map<int, int> driven_by;  // axis that is only walked in part -> the axis that walks it, or -1 (one fixed index)
    for (const auto& [whole, part] : loops_.slices) {
      const Dim a = loops_.axes.resolve(whole), b = loops_.axes.resolve(part);
      if (a.empty()) continue;
      if (a.size() != 1 || b.size() > 1) return "a slice cuts through a merged dim";
      const int driver = b.empty() ? -1 : b[0];
      const auto [it, added] = driven_by.try_emplace(a[0], driver);
      if (!added && it->second != driver) return "one value is read through slices of different extents";
    }
    Dim order;
    std::set<int> parallel, over;
    if (loops_.reduces) {
      order = loops_.axes.resolve(concat(loops_.full_dims));
      for (int a : loops_.axes.resolve(loops_.kept)) parallel.insert(a);
      for (int a : loops_.axes.resolve(loops_.over)) over.insert(a);
      for (const Dim& operand : loops_.operands) {
        if (loops_.axes.resolve(operand) != order) return "its reductions walk their operands in different orders";
      }
    } else {
      for (ValueId v : verdict.outputs) {
        const Dim dims = loops_.axes.resolve(concat(loops_.dims.at(v)));
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
        for (const Dim& dim : loops_.dims.at(v)) {
          bool has_parallel = false, has_over = false;
          for (int axis : loops_.axes.resolve(dim)) {
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
          if (has_over && has_parallel && !loops_.has_groups) return name + " merges reduced and kept dims";
        }
        if (partial && info_.is_reduce(n)) return name + " is a reduction of which only a part is read";
        const bool full = mine == all;
        const bool row = loops_.reduces && mine == parallel;
        const bool is_output = std::find(verdict.outputs.begin(), verdict.outputs.end(), v) != verdict.outputs.end();
        if (full && loops_.reduces && !partial && walk != order) return name + " is transposed against the rows of the block";
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
            loops_.reduces && std::all_of(mine.begin(), mine.end(), [&](int a) { return parallel.count(a) > 0; });
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

  const Info& info_;
  const Graph& g_;
  const Block& block_;
  Loops loops_;
};

}  // namespace

Verdict check_block(const Info& info, const Block& block) { return Check(info, block).run(); }

}  // namespace fuselab::fuse
