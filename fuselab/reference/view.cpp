// Views and created tensors: elements move or appear, nothing is computed.
#include <algorithm>
#include <cmath>
#include <functional>

#include "fuselab/core/error.h"
#include "fuselab/core/tensor.h"
#include "fuselab/graph/bind.h"
#include "fuselab/reference/operators.h"

namespace fuselab::reference {
namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t integer_attr(const Node& node, const char* name) {
  const Attr& a = node.attrs.at(name);
  if (const auto* e = std::get_if<Expr>(&a)) return e->value();
  return std::get<std::int64_t>(a);
}
Sizes list_attr(const Node& node, const char* name) { return constant_sizes(std::get<std::vector<Expr>>(node.attrs.at(name))); }
std::size_t dim_of(std::int64_t d, std::size_t rank) {
  const std::int64_t wrapped = d < 0 ? d + static_cast<std::int64_t>(rank) : d;
  return static_cast<std::size_t>(wrapped);
}

template <typename T>
Shared<T> gathered(const Shared<T>& from, const std::vector<std::int64_t>& places) {
  if (!from) return nullptr;
  auto out = std::make_shared<std::vector<T>>(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) (*out)[i] = (*from)[static_cast<std::size_t>(places[i])];
  return out;
}

Array moved(const Array& x, const Sizes& sizes, const std::vector<std::int64_t>& places) {
  Array out;
  out.dtype = x.dtype;
  out.sizes = sizes;
  out.count = static_cast<std::int64_t>(places.size());
  out.v = gathered(x.v, places);
  out.iv = gathered(x.iv, places);
  const bool exact = x.exact();
  out.lo = exact ? out.v : gathered(x.lo, places);
  out.hi = exact ? out.v : gathered(x.hi, places);
  out.ilo = exact ? out.iv : gathered(x.ilo, places);
  out.ihi = exact ? out.iv : gathered(x.ihi, places);
  out.flag = gathered(x.flag, places);
  return out;
}

}  // namespace

std::vector<Array> run_view(const Graph& g, const Node& node, const std::vector<Argument>& args) {
  const Array& x = *args[0].array;
  const Sizes sizes = constant_sizes(g.values[static_cast<std::size_t>(node.results[0])].type.sizes);
  const std::string& op = node.op->name;
  const std::size_t rank = x.sizes.size();
  Sizes own = fuselab::contiguous_strides(x.sizes);
  if (op == "reshape" || op == "squeeze" || op == "unsqueeze" || op == "alias") {
    Array out = x;
    out.sizes = sizes;
    if (element_count(sizes) != x.count)
      fail("call.shape", "{}: {} elements cannot become [{}]", op, x.count, fmt::join(sizes, ", "));
    return {out};
  }
  if (op == "expand") return {moved(x, sizes, offsets(sizes, broadcast_strides(x.sizes, sizes)))};
  if (op == "permute") {
    Sizes strides;
    for (const std::int64_t d : list_attr(node, "dims")) strides.push_back(own[dim_of(d, rank)]);
    return {moved(x, sizes, offsets(sizes, strides))};
  }
  if (op == "transpose") {
    if (rank > 0) std::swap(own[dim_of(integer_attr(node, "dim0"), rank)], own[dim_of(integer_attr(node, "dim1"), rank)]);
    return {moved(x, sizes, offsets(sizes, own))};
  }
  if (op == "slice") {
    const std::size_t d = dim_of(integer_attr(node, "dim"), rank);
    std::int64_t start = integer_attr(node, "start");
    if (start < 0) start += x.sizes[d];
    start = std::clamp<std::int64_t>(start, 0, x.sizes[d]);
    const std::int64_t first = start * own[d];
    own[d] *= integer_attr(node, "step");
    return {moved(x, sizes, offsets(sizes, own, first))};
  }
  if (op == "select") {
    const std::size_t d = dim_of(integer_attr(node, "dim"), rank);
    std::int64_t index = integer_attr(node, "index");
    if (index < 0) index += x.sizes[d];
    if (index < 0 || index >= x.sizes[d])
      fail("call.shape", "select: index {} is outside of dimension {} with size {}", index, d, x.sizes[d]);
    const std::int64_t first = index * own[d];
    own.erase(own.begin() + static_cast<std::ptrdiff_t>(d));
    return {moved(x, sizes, offsets(sizes, own, first))};
  }
  fail("reference.op", "view {} has no meaning in reference/view.cpp", op);
}

std::vector<Array> run_create(const Graph& g, const Node& node, const std::vector<Argument>& args, const Policy& policy) {
  (void)args;
  const Type& type = g.values[static_cast<std::size_t>(node.results[0])].type;
  const Sizes sizes = constant_sizes(type.sizes);
  const std::int64_t count = element_count(sizes);
  const auto number = [&](const char* name) -> Scalar {
    const Attr& a = node.attrs.at(name);
    if (const auto* b = std::get_if<bool>(&a)) return *b;
    if (const auto* d = std::get_if<double>(&a)) return *d;
    if (const auto* e = std::get_if<Expr>(&a)) return e->value();
    return std::get<std::int64_t>(a);
  };
  const auto as_double = [](const Scalar& s) { return std::visit([](auto v) { return static_cast<double>(v); }, s); };
  const auto as_int = [](const Scalar& s) {
    if (const auto* d = std::get_if<double>(&s)) return truncate_to_int(*d);
    return std::visit([](auto v) { return static_cast<std::int64_t>(v); }, s);
  };
  const bool is_iota = node.op->name == "iota";
  if (!is_iota && node.op->name != "full") fail("reference.op", "{} has no meaning in reference/view.cpp", node.op->name);
  const Scalar start = number(is_iota ? "start" : "value"), step = is_iota ? number("step") : Scalar{std::int64_t{0}};
  Builder out(type.dtype, sizes, count);
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_float(type.dtype)) {
      const double v = round_to(type.dtype, as_double(start) + as_double(step) * static_cast<double>(i));
      Ball b{v, v, v};
      // Whether start + step * i is rounded once or twice is not promised for fractions.
      const bool whole = std::floor(as_double(start)) == as_double(start) && std::floor(as_double(step)) == as_double(step);
      if (is_iota && !whole && !policy.model) {
        const double slack = ulp_of(compute_type(type.dtype), std::max(std::fabs(v), std::fabs(as_double(start))));
        b = {as_double(start) + as_double(step) * static_cast<double>(i), v - slack, v + slack};
      }
      store(out, type.dtype, i, b, false, policy);
      continue;
    }
    const bool fraction = std::holds_alternative<double>(start) || std::holds_alternative<double>(step);
    std::int64_t v = 0;
    if (is_bool(type.dtype) || fraction) {
      const double d = as_double(start) + as_double(step) * static_cast<double>(i);
      v = is_bool(type.dtype) ? d != 0 : truncate_to_int(d);
    } else {
      v = static_cast<std::int64_t>(static_cast<std::uint64_t>(as_int(start)) +
                                    static_cast<std::uint64_t>(as_int(step)) * static_cast<std::uint64_t>(i));
    }
    v = wrap(type.dtype, v);
    out.set_int(i, v, v, v);
  }
  return {out.finish()};
}

}  // namespace fuselab::reference
