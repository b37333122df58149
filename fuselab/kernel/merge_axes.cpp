#include "fuselab/kernel/merge_axes.h"

#include <algorithm>

namespace fuselab::kernel {
namespace {

/// Do all accesses run from the end of `inner` straight into the next point of `outer`?
bool mergeable(const Kernel& k, int outer, int inner) {
  return std::all_of(k.stmts.begin(), k.stmts.end(), [&](const Stmt& s) {
    return s.index.coefficient(outer) == s.index.coefficient(inner) * k.axes[inner].extent;
  });
}

/// Merges within `order` (outermost first); returns the axes left. A merged axis takes the inner one's place.
std::vector<int> merge_list(Kernel& k, const std::vector<int>& order) {
  std::vector<int> left;
  for (int axis : order) {
    if (!left.empty() && mergeable(k, left.back(), axis)) {
      const int outer = left.back();
      for (Stmt& s : k.stmts) {
        const Expr c = s.index.coefficient(outer);
        if (!c.is(0)) s.index.add(outer, Expr(0) - c);
      }
      k.axes[axis].extent = k.axes[outer].extent * k.axes[axis].extent;
      left.back() = axis;
    } else {
      left.push_back(axis);
    }
  }
  return left;
}

}  // namespace

Kernel merge_axes(const Kernel& k) {
  Kernel out = k;
  std::vector<int> parallel;
  for (std::size_t a = 0; a < k.axes.size(); ++a)
    if (k.axes[a].role == Role::parallel && !k.axes[a].extent.is(1)) parallel.push_back(static_cast<int>(a));
  auto first_store = std::find_if(k.stmts.begin(), k.stmts.end(), [](const Stmt& s) { return s.kind == StmtKind::store; });
  if (first_store != k.stmts.end()) {
    auto pitch = [&](int a) { return first_store->index.coefficient(a); };
    const bool known = std::all_of(parallel.begin(), parallel.end(), [&](int a) { return pitch(a).is_const(); });
    if (known)
      std::stable_sort(parallel.begin(), parallel.end(), [&](int a, int b) { return pitch(a).value() > pitch(b).value(); });
  }
  parallel = merge_list(out, parallel);
  std::vector<std::vector<int>> groups;
  for (const auto& g : k.tree.groups) groups.push_back(merge_list(out, g));

  // Renumber: parallel axes first, then the groups.
  std::vector<int> place(k.axes.size(), -1);
  std::vector<Axis> axes;
  auto take = [&](int a) {
    place[static_cast<std::size_t>(a)] = static_cast<int>(axes.size());
    axes.push_back(out.axes[static_cast<std::size_t>(a)]);
  };
  for (int a : parallel) take(a);
  for (auto& g : groups)
    for (int& a : g) {
      take(a);
      a = static_cast<int>(axes.size()) - 1;
    }
  int p = 0, r = 0;
  for (Axis& a : axes) a.name = a.role == Role::inner ? "r" + std::to_string(r++) : "p" + std::to_string(p++);
  for (Stmt& s : out.stmts) {
    Index moved;
    moved.offset = s.index.offset;
    for (const auto& [a, c] : s.index.terms)
      if (place[static_cast<std::size_t>(a)] >= 0) moved.add(place[static_cast<std::size_t>(a)], c);
    s.index = moved;
  }
  out.axes = axes;
  out.tree.groups = groups;
  return out;
}

}  // namespace fuselab::kernel
