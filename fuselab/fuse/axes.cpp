#include "fuselab/fuse/axes.h"

namespace fuselab::fuse {

Dim Axes::fresh(const Expr& extent) {
  if (extent.is(1)) return {};
  nodes_.push_back({extent, -1, {}});
  return {static_cast<int>(nodes_.size()) - 1};
}

int Axes::root(int axis) const {
  while (nodes_[axis].parent >= 0) axis = nodes_[axis].parent;
  return axis;
}

Dim Axes::resolve(const Dim& dim) const {
  Dim out;
  for (int axis : dim) {
    int at = root(axis);
    if (nodes_[at].pieces.empty()) {
      out.push_back(at);
    } else {
      for (int piece : resolve(nodes_[at].pieces)) out.push_back(piece);
    }
  }
  return out;
}

// Splits an unsplit root axis into (outer, rest).
bool Axes::split(int axis, const Expr& outer) {
  if (outer.is(0) || nodes_[axis].extent.is(0)) return false;
  Expr rest;
  if (!exact_div(nodes_[axis].extent, outer, rest) || rest.is(0)) return false;
  Dim pieces = fresh(outer);
  for (int piece : fresh(rest)) pieces.push_back(piece);
  nodes_[axis].pieces = std::move(pieces);
  return true;
}

bool Axes::join(int a, int b) {
  if (a != b) nodes_[a].parent = b;
  return true;
}

bool Axes::unify(const Dim& a, const Dim& b) {
  Dim x = resolve(a), y = resolve(b);
  std::size_t i = 0;
  while (i < x.size() && i < y.size()) {
    if (x[i] == y[i]) {
      ++i;
      continue;
    }
    const Expr p = nodes_[x[i]].extent, q = nodes_[y[i]].extent;
    Expr unused;
    if (p == q) {
      join(x[i], y[i]);
    } else if (!(exact_div(p, q, unused) ? split(x[i], q) : exact_div(q, p, unused) && split(y[i], p))) {
      return false;
    }
    x = resolve(a);
    y = resolve(b);
  }
  return x.size() == y.size();
}

bool Axes::regroup(const Dim& all, const std::vector<Expr>& sizes, std::vector<Dim>& out) {
  out.assign(sizes.size(), {});
  Dim rest = resolve(all);
  std::size_t at = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    Expr left = sizes[d];
    while (!left.is(1)) {
      if (at >= rest.size()) return false;
      const Expr extent = nodes_[rest[at]].extent;
      Expr quotient;
      if (extent.is(0) || left.is(0)) {
        if (extent != left) return false;
        left = 1;
      } else if (exact_div(left, extent, quotient)) {
        left = quotient;
      } else {
        if (!exact_div(extent, left, quotient) || !split(rest[at], left)) return false;
        rest = resolve(rest);
        left = 1;
      }
      out[d].push_back(rest[at++]);
    }
  }
  return at == rest.size();
}

}  // namespace fuselab::fuse
