#include "fuselab/fuse/views.h"

#include <algorithm>
#include <numeric>

namespace fuselab::fuse {
namespace {

std::int64_t int_of(const Attrs& attrs, const char* name, std::int64_t fallback) {
  const auto it = attrs.find(name);
  if (it == attrs.end()) return fallback;
  if (const auto* v = std::get_if<std::int64_t>(&it->second)) return *v;
  if (const auto* e = std::get_if<Expr>(&it->second); e && e->is_const()) return e->value();
  return fallback;
}

std::vector<int> dims_of(const Attrs& attrs, const char* name, int rank) {
  std::vector<int> out;
  const auto it = attrs.find(name);
  if (it == attrs.end()) return out;
  if (const auto* list = std::get_if<std::vector<Expr>>(&it->second)) {
    for (const Expr& e : *list) {
      if (!e.is_const()) continue;
      out.push_back(static_cast<int>(e.value() < 0 ? e.value() + rank : e.value()));
    }
  }
  return out;
}

}  // namespace

std::vector<Expr> without_ones(const std::vector<Expr>& sizes) {
  std::vector<Expr> out;
  for (const Expr& s : sizes) {
    if (!s.is(1)) out.push_back(s);
  }
  return out;
}

View describe_view(const Graph& g, const Node& node) {
  View view;
  if (node.args.empty() || !std::holds_alternative<ValueId>(node.args[0])) return view;
  const int rank = static_cast<int>(g.values[std::get<ValueId>(node.args[0])].type.sizes.size());
  const int result_rank = static_cast<int>(g.values[node.results[0]].type.sizes.size());
  const std::string& name = node.op->name;
  const auto one_dim = [&](const char* attr, int r) {
    const std::int64_t d = int_of(node.attrs, attr, 0);
    return static_cast<int>(d < 0 ? d + r : d);
  };
  if (name == "alias") {  // an order of the dimensions like any other
    view.kind = ViewKind::permute;
    view.dims.resize(rank);
    std::iota(view.dims.begin(), view.dims.end(), 0);
  } else if (name == "reshape") {
    view.kind = ViewKind::reshape;
  } else if (name == "expand") {
    view.kind = ViewKind::expand;
  } else if (name == "permute") {
    view.kind = ViewKind::permute;
    view.dims = dims_of(node.attrs, "dims", rank);
    if (static_cast<int>(view.dims.size()) != rank) view.kind = ViewKind::other;
  } else if (name == "transpose") {
    view.kind = ViewKind::permute;
    view.dims.resize(rank);
    std::iota(view.dims.begin(), view.dims.end(), 0);
    if (rank > 1) std::swap(view.dims[one_dim("dim0", rank)], view.dims[one_dim("dim1", rank)]);
  } else if (name == "squeeze") {
    view.kind = ViewKind::squeeze;
    const auto& sizes = g.values[std::get<ValueId>(node.args[0])].type.sizes;
    const std::vector<int> dims = dims_of(node.attrs, "dims", rank);
    for (int d : dims) {
      if (d >= 0 && d < rank && sizes[d].is(1)) view.dims.push_back(d);
    }
    std::sort(view.dims.begin(), view.dims.end());
    view.dims.erase(std::unique(view.dims.begin(), view.dims.end()), view.dims.end());
    if (rank - static_cast<int>(view.dims.size()) != result_rank) view.kind = ViewKind::other;
  } else if (name == "unsqueeze") {
    view.kind = ViewKind::unsqueeze;
    view.dims = {one_dim("dim", rank + 1)};
  } else if (name == "slice") {
    view.kind = ViewKind::slice;
    view.dims = {one_dim("dim", rank)};
  } else if (name == "select") {
    view.kind = ViewKind::select;
    view.dims = {one_dim("dim", rank)};
  }
  for (int d : view.dims) {
    if (d < 0 || d >= std::max(rank, result_rank)) view.kind = ViewKind::other;
  }
  return view;
}

bool merges_or_splits(const std::vector<Expr>& from, const std::vector<Expr>& to) {
  const std::vector<Expr> a = without_ones(from), b = without_ones(to);
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (a[i] == b[j]) {
      ++i, ++j;
      continue;
    }
    Expr quotient;
    if (!a[i].is(0) && exact_div(b[j], a[i], quotient)) {  // several of `from` become b[j]
      Expr run = a[i++];
      while (i < a.size() && run != b[j]) run = run * a[i++];
      if (run != b[j]) return false;
      ++j;
    } else if (!b[j].is(0) && exact_div(a[i], b[j], quotient)) {
      Expr run = b[j++];
      while (j < b.size() && run != a[i]) run = run * b[j++];
      if (run != a[i]) return false;
      ++i;
    } else {
      return false;
    }
  }
  return i == a.size() && j == b.size();
}

}  // namespace fuselab::fuse
