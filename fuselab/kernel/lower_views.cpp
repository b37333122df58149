#include "fuselab/kernel/lower_views.h"

#include "fuselab/core/error.h"

namespace fuselab::kernel {
namespace {

std::int64_t int_attr(const Node& n, const char* key) {
  auto it = n.attrs.find(key);
  if (it == n.attrs.end()) fail("kernel.unsupported", "{}: attribute {} is missing", n.op->name, key);
  if (const auto* i = std::get_if<std::int64_t>(&it->second)) return *i;
  if (const auto* e = std::get_if<Expr>(&it->second)) return e->value();
  fail("kernel.unsupported", "{}: attribute {} is no integer", n.op->name, key);
}

bool has_attr(const Node& n, const char* key) { return n.attrs.count(key) != 0; }

Expr expr_attr(const Node& n, const char* key) {
  const Attr& a = n.attrs.at(key);
  if (const auto* i = std::get_if<std::int64_t>(&a)) return *i;
  if (const auto* e = std::get_if<Expr>(&a)) return *e;
  fail("kernel.unsupported", "{}: attribute {} is no size", n.op->name, key);
}

std::vector<std::int64_t> ints_attr(const Node& n, const char* key) {
  std::vector<std::int64_t> out;
  const Attr& a = n.attrs.at(key);
  if (const auto* i = std::get_if<std::int64_t>(&a)) return {*i};
  for (const Expr& e : std::get<std::vector<Expr>>(a)) out.push_back(e.value());
  return out;
}

int wrap(std::int64_t d, std::size_t rank) { return static_cast<int>(d < 0 ? d + static_cast<std::int64_t>(rank) : d); }

/// Spreads the linear position `linear` within dims sizes[first, last) over them. Every term goes to the outermost dim whose
/// pitch (elements per step) divides its coefficient; an axis that runs past that dim is split.
void spread(const Node& n, const Index& linear, const std::vector<Expr>& sizes, std::size_t first, std::size_t last,
            const std::vector<Axis>& axes, std::vector<Index>& out) {
  std::vector<std::pair<std::size_t, Expr>> dims;  // dims with more than one element, innermost first, and their pitch
  Expr pitch = 1;
  for (std::size_t d = last; d-- > first; pitch = pitch * sizes[d])
    if (!sizes[d].is(1)) dims.emplace_back(d, pitch);
  if (dims.empty()) return;
  if (dims.size() == 1) {
    out[dims[0].first] = linear;
    return;
  }
  if (!linear.offset.is(0)) fail("kernel.unsupported", "{} {}: a reshape of a slice inside a block", n.op->name, n.origin);
  for (const auto& [axis, coefficient] : linear.terms) {
    const Expr& extent = axes[axis].extent;
    std::size_t at = dims.size();
    Expr q;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      Expr quotient;
      if (!exact_div(coefficient, dims[k].second, quotient)) break;
      at = k;
      q = quotient;
    }
    if (at == dims.size()) fail("kernel.unsupported", "{} {}: a reshape that mixes axes", n.op->name, n.origin);
    const std::size_t d = dims[at].first;
    const bool all_const = q.is_const() && extent.is_const() && sizes[d].is_const();
    if (at + 1 == dims.size() || q * extent == sizes[d] || (all_const && q.value() * (extent.value() - 1) < sizes[d].value())) {
      out[d].add(axis, q);
      continue;
    }
    Expr rest, whole;
    if (exact_div(sizes[d], q, rest) && exact_div(extent, rest, whole)) throw SplitAxis{axis, rest};
    fail("kernel.unsupported", "{} {}: a reshape that mixes axes", n.op->name, n.origin);
  }
}

std::vector<Index> through_reshape(const Node& n, const std::vector<Expr>& to, const std::vector<Expr>& from,
                                   const std::vector<Index>& index, const std::vector<Axis>& axes) {
  std::vector<Index> out(from.size());
  std::size_t i = 0, j = 0;
  while (i < to.size() || j < from.size()) {
    const std::size_t i0 = i, j0 = j;
    Expr a = i < to.size() ? to[i++] : Expr(1), b = j < from.size() ? from[j++] : Expr(1);
    while (a != b) {
      Expr q;
      const bool grow_a = a.is_const() && b.is_const() ? a.value() < b.value() : exact_div(b, a, q);
      if (grow_a && i < to.size())
        a = a * to[i++];
      else if (!grow_a && j < from.size())
        b = b * from[j++];
      else
        fail("kernel.unsupported", "{} {}: sizes whose products cannot be compared", n.op->name, n.origin);
    }
    Index linear;
    for (std::size_t k = i0; k < i; ++k) linear = linear.times(to[k]).plus(index[k]);
    if (j > j0) spread(n, linear, from, j0, j, axes, out);
  }
  return out;
}

}  // namespace

std::vector<Index> broadcast_index(const std::vector<Expr>& sizes, const std::vector<Index>& index) {
  std::vector<Index> out(sizes.size());
  const std::size_t shift = index.size() - sizes.size();
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (!sizes[d].is(1)) out[d] = index[d + shift];
  return out;
}

std::vector<Index> through_view(const Graph& g, const Node& n, const std::vector<Index>& index, const std::vector<Axis>& axes) {
  const Type& from = g.values[std::get<ValueId>(n.args[0])].type;
  const Type& to = g.values[n.results[0]].type;
  const std::string& op = n.op->name;
  const std::size_t rank = from.sizes.size();
  std::vector<Index> out(rank);
  if (op == "reshape") return through_reshape(n, to.sizes, from.sizes, index, axes);
  if (op == "expand") return broadcast_index(from.sizes, index);
  if (op == "permute") {
    const auto dims = ints_attr(n, "dims");
    for (std::size_t d = 0; d < dims.size(); ++d) out[wrap(dims[d], rank)] = index[d];
    return out;
  }
  if (op == "transpose") {
    out = index;
    if (rank > 1) std::swap(out[wrap(int_attr(n, "dim0"), rank)], out[wrap(int_attr(n, "dim1"), rank)]);
    return out;
  }
  if (op == "unsqueeze") {
    const int dim = wrap(int_attr(n, "dim"), to.sizes.size());
    for (std::size_t d = 0, k = 0; d < to.sizes.size(); ++d)
      if (static_cast<int>(d) != dim) out[k++] = index[d];
    return out;
  }
  if (op == "squeeze") {
    std::vector<bool> gone(rank, false);
    if (has_attr(n, "dims"))
      for (auto d : ints_attr(n, "dims")) gone[wrap(d, rank)] = true;
    for (std::size_t d = 0, k = 0; d < rank; ++d)
      if (!(gone[d] && from.sizes[d].is(1))) out[d] = index[k++];
    return out;
  }
  if (op == "select") {
    const int dim = wrap(int_attr(n, "dim"), rank);
    Expr at = expr_attr(n, "index");
    if (at.is_const() && at.value() < 0) at = at + from.sizes[dim];
    for (std::size_t d = 0, k = 0; d < rank; ++d) {
      if (static_cast<int>(d) == dim)
        out[d].offset = at;
      else
        out[d] = index[k++];
    }
    return out;
  }
  if (op == "slice") {
    out = index;
    const int dim = wrap(int_attr(n, "dim"), rank);
    Expr start = has_attr(n, "start") ? expr_attr(n, "start") : Expr(0);
    const Expr step = has_attr(n, "step") ? expr_attr(n, "step") : Expr(1);
    const Expr& size = from.sizes[dim];
    // Counted from the end and cut at the beginning, as infer() does; a start beyond the end leaves nothing to read.
    if (start.is_const() && start.value() < 0) start = max(start + size, Expr(0));
    if (start.is_const() && size.is_const()) start = std::min(start.value(), size.value());
    out[dim] = index[dim].times(step);
    out[dim].offset = out[dim].offset + start;
    return out;
  }
  if (to.sizes == from.sizes) return index;  // alias, detach
  fail("kernel.unsupported", "{}: no index rule for this view", op);
}

}  // namespace fuselab::kernel
