#include "fuselab/reference/value.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fuselab/core/tensor.h"

namespace fuselab::reference {

Builder::Builder(DType dtype, std::vector<std::int64_t> sizes, std::int64_t count) {
  array_.dtype = dtype;
  array_.sizes = std::move(sizes);
  array_.count = count;
  const auto n = static_cast<std::size_t>(count);
  if (is_float(dtype)) {
    v_ = std::make_shared<std::vector<double>>(n);
    lo_ = std::make_shared<std::vector<double>>(n);
    hi_ = std::make_shared<std::vector<double>>(n);
  } else {
    iv_ = std::make_shared<std::vector<std::int64_t>>(n);
    ilo_ = std::make_shared<std::vector<std::int64_t>>(n);
    ihi_ = std::make_shared<std::vector<std::int64_t>>(n);
  }
}

void Builder::mark(std::size_t at) {
  if (!flag_) flag_ = std::make_shared<std::vector<std::uint8_t>>(static_cast<std::size_t>(array_.count));
  (*flag_)[at] = 1;
}

Array Builder::finish() {
  array_.v = v_;
  array_.iv = iv_;
  array_.flag = flag_;
  array_.lo = exact_ ? v_ : lo_;
  array_.hi = exact_ ? v_ : hi_;
  array_.ilo = exact_ ? iv_ : ilo_;
  array_.ihi = exact_ ? iv_ : ihi_;
  return std::move(array_);
}

void settle(DType t, double ulp, Ball& b, bool& undecided) {
  if (std::isnan(b.lo) || std::isnan(b.hi)) {
    if (std::isnan(b.lo) && std::isnan(b.hi)) {
      b.v = b.lo;  // certainly NaN, also where only the compute dtype overflows on the way
      return;
    }
    b.lo = -kInfinity;
    b.hi = kInfinity;
    undecided = true;
    return;
  }
  // fp64 itself has no better value than the formula in double: allow for its rounding.
  const double budget = t == DType::f64 ? (ulp == 0 ? 0 : ulp + 0.5) : (ulp <= 0.5 ? 0 : ulp);
  if (budget > 0) {
    const double slack = budget * ulp_of(t, std::max(std::fabs(b.lo), std::fabs(b.hi)));
    if (std::isfinite(slack)) {
      // A result keeps the sign of the exact value, however small.
      if (b.lo != 0) b.lo = b.lo > 0 ? std::max(0.0, b.lo - slack) : b.lo - slack;
      if (b.hi != 0) b.hi = b.hi < 0 ? std::min(-0.0, b.hi + slack) : b.hi + slack;
    }
  }
  round_ends(t, b);
  if (b.lo == b.hi && std::isinf(b.lo)) b.v = b.lo;  // certain overflow of the compute dtype
  if (std::isnan(b.v)) undecided = true;
}

std::vector<std::int64_t> broadcast_strides(const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to) {
  const std::vector<std::int64_t> own = fuselab::contiguous_strides(from);
  std::vector<std::int64_t> strides(to.size(), 0);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::size_t at = to.size() - from.size() + i;
    strides[at] = from[i] == 1 && to[at] != 1 ? 0 : own[i];
  }
  return strides;
}

std::vector<std::int64_t> offsets(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides,
                                  std::int64_t start) {
  const std::int64_t count = element_count(sizes);
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  if (count == 0) return out;
  const std::size_t rank = sizes.size();
  std::vector<std::int64_t> at(rank, 0);
  std::int64_t offset = start;
  for (std::int64_t& place : out) {
    place = offset;
    for (std::size_t d = rank; d-- > 0;) {
      offset += strides[d];
      if (++at[d] < sizes[d]) break;
      offset -= strides[d] * sizes[d];
      at[d] = 0;
    }
  }
  return out;
}

}  // namespace fuselab::reference
