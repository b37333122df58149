#include "fuselab/kernel/schedule.h"

#include <algorithm>

#include "fuselab/kernel/merge_axes.h"
#include "fuselab/kernel/primitives.h"

namespace fuselab::kernel {
namespace {

constexpr std::int64_t kScratchElements = 48 * 1024;           // a kept row of f32 stays within a second-level cache
constexpr std::int64_t kStreamBytes = std::int64_t{16} << 20;  // results beyond this do not stay in the last-level cache anyway
constexpr std::int64_t kTurnedBytes = 512 * 1024;              // turned rows stay within a second-level cache
constexpr int kDear = 8;                                       // cycles per step from which keeping beats computing again

int statement_cost(const Stmt& s) {
  switch (s.kind) {
    case StmtKind::compute: {
      const Primitive* p = find_primitive(s.op);
      return (p == nullptr ? 1 : p->cost) * (s.type == DType::f64 || s.type == DType::i64 ? 2 : 1);
    }
    case StmtKind::cast:
      return 1;
    case StmtKind::reduce:
      return s.finds_first() ? 6 : s.type == DType::f64 ? 3 : 1;
    case StmtKind::load:
    case StmtKind::store:
      return 1;
    default:
      return 0;
  }
}

class Scheduler {
 public:
  explicit Scheduler(const Kernel& k) { s_.kernel = merge_axes(k); }

  Schedule run() {
    choose_form();
    find_inner();
    find_stages();
    choose_kept();
    choose_streams();
    choose_tiles();
    find_costs();
    return std::move(s_);
  }

 private:
  Kernel& k() { return s_.kernel; }

  void choose_form() {
    std::vector<int> parallel;
    for (std::size_t a = 0; a < k().axes.size(); ++a)
      if (k().axes[a].role == Role::parallel) parallel.push_back(static_cast<int>(a));
    const auto& groups = k().tree.groups;
    if (!groups.empty() && k().tree.lanes) {
      s_.form = Form::rows;
      s_.row_axes = parallel;
      s_.vector_axes = groups.back();
      s_.loops.assign(groups.begin(), groups.end() - 1);
      return;
    }
    s_.form = groups.empty() ? Form::element : Form::columns;
    s_.loops = groups;
    if (parallel.empty()) {
      k().axes.push_back({"p0", 1, Role::parallel});
      parallel.push_back(static_cast<int>(k().axes.size()) - 1);
    }
    // The last axis carries the lanes; a short one takes its neighbours along, although accesses then need div and mod.
    s_.vector_axes = {parallel.back()};
    parallel.pop_back();
    Expr extent = k().axes[s_.vector_axes[0]].extent;
    while (!parallel.empty() && extent.is_const() && extent.value() < kLanes) {
      s_.vector_axes.insert(s_.vector_axes.begin(), parallel.back());
      extent = extent * k().axes[parallel.back()].extent;
      parallel.pop_back();
    }
    s_.row_axes = parallel;
  }

  void find_inner() {
    if (s_.form != Form::element) {
      s_.inner = k().inner_stmts();
    } else {
      s_.inner.assign(k().stmts.size(), false);
      for (std::size_t i = 0; i < k().stmts.size(); ++i) {
        const Stmt& st = k().stmts[i];
        for (int a : s_.vector_axes) s_.inner[i] = s_.inner[i] || !st.index.coefficient(a).is(0);
        for (int a : st.args) s_.inner[i] = s_.inner[i] || s_.inner[a];
        // With the lanes along one axis everything stored there is inside the loop.
        if (st.kind == StmtKind::store) s_.inner[i] = true;
      }
    }
    // A store that runs along the inner axes is inside the loops even when its value is one per row (a broadcast result).
    if (s_.form != Form::element)
      for (std::size_t i = 0; i < k().stmts.size(); ++i)
        if (k().stmts[i].kind == StmtKind::store) s_.inner[i] = k().stmts[i].index.depends_on_inner(k().axes);
  }

  /// stage[i] of a reduce: the pass that computes it; of anything else: the first pass at which its operands are known.
  void find_stages() {
    s_.stage.assign(k().stmts.size(), 0);
    int last = 0;
    for (std::size_t i = 0; i < k().stmts.size(); ++i) {
      const Stmt& st = k().stmts[i];
      int at = 0;
      for (int a : st.args) at = std::max(at, s_.stage[a] + (k().stmts[a].kind == StmtKind::reduce ? 1 : 0));
      s_.stage[i] = at;
      if (st.kind == StmtKind::reduce || s_.inner[i]) last = std::max(last, at);
    }
    s_.stages = last + 1;
    // A row value of a constant fed to a reduction, and rows known only after the last pass, need no pass of their own.
  }

  bool fits_scratch() {
    Expr elements = 1;
    for (const Axis& a : k().axes)
      if (a.role == Role::inner) elements = elements * a.extent;
    if (s_.form == Form::columns) elements = elements * Expr(kLanes);
    return !elements.is_const() || elements.value() <= kScratchElements;
  }

  void choose_kept() {
    s_.keep.assign(k().stmts.size(), false);
    if (s_.form == Form::element || s_.stages < 2 || !fits_scratch()) return;
    std::vector<int> tree_cost(k().stmts.size());
    for (std::size_t i = 0; i < k().stmts.size(); ++i) {
      if (!s_.inner[i]) continue;
      tree_cost[i] = statement_cost(k().stmts[i]);
      for (int a : k().stmts[i].args)
        if (s_.inner[a]) tree_cost[i] += tree_cost[a];
    }
    for (int stage = 1; stage < s_.stages; ++stage)
      for (std::size_t i = 0; i < k().stmts.size(); ++i) {
        const Stmt& st = k().stmts[i];
        const bool root = (st.kind == StmtKind::reduce || (st.kind == StmtKind::store && s_.inner[i])) && s_.stage[i] == stage;
        if (root) keep_below(st.args[0], stage, tree_cost);
      }
  }

  /// Marks the dear values under `i` that an earlier stage has (or can have) computed.
  void keep_below(int i, int stage, const std::vector<int>& tree_cost) {
    if (!s_.inner[i] || s_.keep[i]) return;
    const StmtKind kind = k().stmts[i].kind;
    const bool value = kind == StmtKind::compute || kind == StmtKind::cast;
    if (s_.stage[i] < stage && value && tree_cost[i] >= kDear && computed_in(i, s_.stage[i])) {
      s_.keep[i] = true;
      return;
    }
    for (int a : k().stmts[i].args) keep_below(a, stage, tree_cost);
  }

  /// Does stage `stage` need statement `i` for a reduction or a store of its own?
  bool computed_in(int i, int stage) {
    std::vector<bool> needed(k().stmts.size());
    for (std::size_t j = k().stmts.size(); j-- > 0;) {
      const Stmt& st = k().stmts[j];
      const bool root = (st.kind == StmtKind::reduce || (st.kind == StmtKind::store && s_.inner[j])) && s_.stage[j] == stage;
      if (root) needed[j] = true;
      if (!needed[j]) continue;
      if (st.kind == StmtKind::reduce && !root) continue;
      for (int a : st.args)
        if (s_.inner[a]) needed[a] = true;
    }
    return needed[i];
  }

  void choose_streams() {
    s_.stream.assign(k().stmts.size(), false);
    Expr elements = 1;
    for (const Axis& a : k().axes) elements = elements * a.extent;
    if (!elements.is_const()) return;
    for (std::size_t i = 0; i < k().stmts.size(); ++i)
      if (k().stmts[i].kind == StmtKind::store && s_.inner[i] && elements.value() > kStreamBytes / size_of(k().stmts[i].type))
        s_.stream[i] = true;
  }

  /// The axis along which accesses that are strided along the lanes are contiguous, and the accesses for which that holds.
  void choose_tiles() {
    s_.tiled.assign(k().stmts.size(), false);
    if (s_.form == Form::columns ||
        (s_.form == Form::element && (s_.vector_axes.size() != 1 || short_axis(s_.vector_axes[0], 8))))
      return;
    int row_cost = 0;  // an element kernel computes the rows' own values again for every tile
    std::vector<int> outside;
    for (const auto& g : s_.loops) outside.insert(outside.end(), g.begin(), g.end());
    for (std::size_t i = 0; i < k().stmts.size(); ++i)
      if (!s_.inner[i]) row_cost += statement_cost(k().stmts[i]);
    if (s_.form == Form::element && row_cost > kDear) return;
    for (std::size_t i = 0; i < k().stmts.size(); ++i) {
      const Stmt& st = k().stmts[i];
      if ((st.kind != StmtKind::load && st.kind != StmtKind::store) || !s_.inner[i] || !strided(st.index)) continue;
      for (const int a : outside)
        if (s_.tile_axis < 0 && st.index.coefficient(a).is(1) && !short_axis(a, 4)) s_.tile_axis = a;
      for (const int a : s_.row_axes)
        if (s_.tile_axis < 0 && st.index.coefficient(a).is(1) && !short_axis(a, 8)) s_.tile_axis = a;
      s_.tiled[i] = s_.tile_axis >= 0 && st.index.coefficient(s_.tile_axis).is(1);
    }
    if (s_.form == Form::rows && s_.tile_axis >= 0 && !turned_rows_fit()) {
      s_.tiled.assign(k().stmts.size(), false);
      s_.tile_axis = -1;
    }
  }

  bool strided(const Index& index) {
    for (std::size_t j = 0; j + 1 < s_.vector_axes.size(); ++j) {
      const int inner = s_.vector_axes[j + 1];
      if (index.coefficient(s_.vector_axes[j]) != index.coefficient(inner) * k().axes[static_cast<std::size_t>(inner)].extent)
        return false;
    }
    const Expr along_lanes = index.coefficient(s_.vector_axes.back());
    return !along_lanes.is(0) && !along_lanes.is(1);
  }

  /// A reducing kernel turns whole rows before and after its passes.
  bool turned_rows_fit() {
    std::int64_t bytes = s_.strips() ? kLanes : 1;
    for (const Axis& a : k().axes) {
      if (a.role != Role::inner) continue;
      if (!a.extent.is_const() || a.extent.value() > kTurnedBytes) return false;
      bytes *= std::max<std::int64_t>(a.extent.value(), 1);
      if (bytes > kTurnedBytes) return false;
    }
    std::int64_t element = 0;
    for (std::size_t i = 0; i < k().stmts.size(); ++i)
      if (s_.tiled[i]) element += size_of(k().stmts[i].type);
    return bytes * element <= kTurnedBytes;
  }

  bool short_axis(int a, std::int64_t least) {
    const Expr& extent = k().axes[static_cast<std::size_t>(a)].extent;
    return extent.is_const() && extent.value() < least;
  }

  void find_costs() {
    s_.cost.assign(static_cast<std::size_t>(s_.stages), 0);
    for (std::size_t i = 0; i < k().stmts.size(); ++i)
      if (s_.inner[i] || k().stmts[i].kind == StmtKind::reduce)
        s_.cost[static_cast<std::size_t>(std::min(s_.stage[i], s_.stages - 1))] += statement_cost(k().stmts[i]);
  }

  Schedule s_;
};

}  // namespace

bool Schedule::strips() const { return std::find(row_axes.begin(), row_axes.end(), tile_axis) != row_axes.end(); }

LocalMemory local_memory() { return {kScratchElements, kTurnedBytes, kStreamBytes}; }

Schedule schedule(const Kernel& k) { return Scheduler(k).run(); }

}  // namespace fuselab::kernel
