#include "fuselab/graph/reshape_copies.h"

#include <algorithm>

#include "fuselab/graph/rewrite.h"
#include "fuselab/graph/strides.h"

namespace fuselab {
namespace {

std::vector<Expr> innermost_first(const std::vector<Expr>& sizes) {
  std::vector<Expr> out;
  std::copy_if(sizes.rbegin(), sizes.rend(), std::back_inserter(out), [](const Expr& s) { return !s.is(1); });
  return out;
}

bool needs_copy(const Graph& g, const Node& n) {
  if (n.op == nullptr || n.op->name != "reshape") return false;
  const Type& from = g.values[std::get<ValueId>(n.args[0])].type;
  const Type& to = g.values[n.results[0]].type;
  return !view_strides(from.sizes, from.strides, to.sizes) && !share_a_refinement(from.sizes, to.sizes);
}

}  // namespace

bool share_a_refinement(const std::vector<Expr>& from, const std::vector<Expr>& to) {
  std::vector<Expr> a = innermost_first(from), b = innermost_first(to);
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    Expr rest;
    if (a[i] == b[j]) {
      ++i, ++j;
    } else if (!a[i].is(0) && !b[j].is(0) && exact_div(b[j], a[i], rest)) {
      b[j] = rest;
      ++i;
    } else if (!a[i].is(0) && !b[j].is(0) && exact_div(a[i], b[j], rest)) {
      a[i] = rest;
      ++j;
    } else {
      return false;
    }
  }
  return i == a.size() && j == b.size();
}

Graph copy_before_reshape(const Graph& g) {
  if (std::none_of(g.nodes.begin(), g.nodes.end(), [&](const Node& n) { return needs_copy(g, n); })) return g;
  GraphCopy copy(g);
  for (const ValueId v : g.inputs) copy.input(v);
  for (const Node& n : g.nodes) {
    if (!needs_copy(g, n)) {
      copy.node(n);
      continue;
    }
    const ValueId x = std::get<ValueId>(n.args[0]);
    const ValueId old = copy.at(x);
    const ValueId rows = copy.graph().add("copy", {old}, {}, {g.unique_name(g.values[n.results[0]].name + "_rows")});
    Type& type = copy.graph().values[rows].type;
    type.strides = contiguous_strides(type.sizes);
    copy.replace(x, rows);
    copy.node(n);
    copy.replace(x, old);
  }
  return copy.finish();
}

}  // namespace fuselab
