#include "fuselab/reference/operators.h"

#include <algorithm>
#include <cmath>

#include "fuselab/core/error.h"
#include "fuselab/core/tensor.h"
#include "fuselab/graph/bind.h"

namespace fuselab::reference {

Ball ball_of(const Array& a, std::int64_t i, DType compute) {
  const auto at = static_cast<std::size_t>(i);
  if (is_float(a.dtype)) {
    Ball b{(*a.v)[at], (*a.lo)[at], (*a.hi)[at]};
    if (size_of(a.dtype) > size_of(compute)) {  // a 0-d f64 beside f32 tensors
      round_ends(compute, b);
      b.v = round_to(compute, b.v);
    }
    return b;
  }
  Ball b{static_cast<double>((*a.iv)[at]), static_cast<double>((*a.ilo)[at]), static_cast<double>((*a.ihi)[at])};
  if (compute == DType::f32)
    b = {static_cast<float>((*a.iv)[at]), static_cast<float>((*a.ilo)[at]), static_cast<float>((*a.ihi)[at])};
  return b;
}

IntBall int_ball_of(const Array& a, std::int64_t i, DType t) {
  const auto at = static_cast<std::size_t>(i);
  if (!is_float(a.dtype)) return {wrap(t, (*a.iv)[at]), wrap(t, (*a.ilo)[at]), wrap(t, (*a.ihi)[at])};
  const auto converted = [&](double x) -> std::int64_t { return is_bool(t) ? x != 0 : wrap(t, truncate_to_int(x)); };
  const IntBall b{converted((*a.v)[at]), converted((*a.lo)[at]), converted((*a.hi)[at])};
  // Ends that wrapped, or an interval around 0 seen as bool, say nothing.
  const bool point = (*a.lo)[at] == (*a.hi)[at];
  if (!point && (is_bool(t) || b.lo > b.hi)) return {b.v, int_min(t), int_max(t)};
  return b;
}

double number_as(const Scalar& s, DType compute) {
  return round_to(compute, std::visit([](auto value) { return static_cast<double>(value); }, s));
}

void round_for_decision(DType own, Ball& b) {
  round_ends(own, b);
  b.v = b.point() ? b.lo : std::clamp(round_to(own, b.v), b.lo, b.hi);
}

Attrs attributes_in(const Node& node, DType compute) {
  Attrs attrs = node.attrs;
  if (!is_float(compute)) return attrs;
  for (auto& [name, attr] : attrs) {
    if (auto* d = std::get_if<double>(&attr)) *d = round_to(compute, *d);
  }
  return attrs;
}

void store(Builder& out, DType result, std::int64_t i, Ball b, bool undecided, const Policy& policy) {
  if (!is_float(result)) {
    if (result == DType::boolean) {
      const bool lo = b.lo != 0, hi = b.hi != 0;  // NaN is true
      const bool any_zero = b.lo <= 0 && b.hi >= 0, open = undecided || (!b.point() && any_zero);
      const std::int64_t v = b.v != 0;
      out.set_int(i, v, open ? 0 : lo && hi, open ? 1 : lo || hi);
      return;
    }
    const std::int64_t v = wrap(result, truncate_to_int(b.v));
    const double low = std::trunc(b.lo), high = std::trunc(b.hi);
    const bool fits =
        low >= static_cast<double>(int_min(result)) && high <= static_cast<double>(int_max(result)) && high < 0x1p63;
    // NaN and values outside the dtype have no meaning that all machines share: undecided.
    if (!fits || undecided) {
      out.set_int(i, v, int_min(result), int_max(result));
    } else {
      out.set_int(i, v, static_cast<std::int64_t>(low), static_cast<std::int64_t>(high));
    }
    return;
  }
  if (is_low_precision(result)) {
    if (policy.any_borders) {
      Ball rounded = b;
      round_ends(result, rounded);
      b.lo = std::min(b.lo, rounded.lo);
      b.hi = std::max(b.hi, rounded.hi);
    } else if (policy.eager) {
      round_ends(result, b);
      if (b.lo == b.hi && std::isinf(b.lo)) b.v = b.lo;
    }
  }
  out.set(i, b, undecided);
}

}  // namespace fuselab::reference
