#include "fuselab/numerics/cann.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fuselab/core/error.h"

namespace fuselab::numerics {
namespace {

constexpr double kEpsilon = std::numeric_limits<float>::epsilon();

/// Scales down what is too far apart to subtract in double.
double factor(double low, double high) { return std::isfinite(high - low) ? 1 : 0.25; }

bool is_constant(double low, double high, DType t) {
  const double largest = std::max(std::fabs(low), std::fabs(high));
  return high - low <= kThresholds.constant_within_ulp * ulp_of(t, largest);
}

double magnitude(double low, double high) { return std::max(std::fabs(low), std::fabs(high)); }

CannResult compare_exactly(const Tensor& expected, const Tensor& actual, std::span<const std::uint8_t> leave_out) {
  CannResult result;
  result.kind = CannResult::Kind::exact;
  std::int64_t differing = 0;
  for (std::int64_t i = 0; i < expected.numel(); ++i) {
    if (!leave_out.empty() && leave_out[static_cast<std::size_t>(i)]) continue;
    if (expected.get_int(i) == actual.get_int(i)) continue;
    if (differing++ == 0) result.first_difference = i;
  }
  result.passed = differing == 0;
  if (differing > 0) {
    const std::int64_t i = result.first_difference;
    result.reason = fmt::format("first difference at {}: expected {}, got {} ({} of {} differ)", index_text(i, expected.sizes()),
                                expected.get_int(i), actual.get_int(i), differing, expected.numel());
  }
  return result;
}

}  // namespace

void CannRange::add(double x, double y) {
  if (count++ == 0) {
    x_low = x_high = x;
    y_low = y_high = y;
    return;
  }
  x_low = std::min(x_low, x);
  x_high = std::max(x_high, x);
  y_low = std::min(y_low, y);
  y_high = std::max(y_high, y);
}

void CannRange::add(const CannRange& other) {
  if (other.count == 0) return;
  const std::int64_t together = count + other.count;
  add(other.x_low, other.y_low);
  add(other.x_high, other.y_high);
  count = together;
}

CannSums::CannSums(const CannRange& range, DType x_type, DType y_type)
    : scale_(magnitude(range.x_low, range.x_high)),
      x_factor_(factor(range.x_low, range.x_high)),
      y_factor_(factor(range.y_low, range.y_high)),
      x_low_(range.x_low * x_factor_),
      x_width_(range.x_high * x_factor_ - x_low_),
      y_low_(range.y_low * y_factor_),
      y_width_(range.y_high * y_factor_ - y_low_),
      x_constant_(is_constant(range.x_low, range.x_high, x_type)),
      y_constant_(is_constant(range.y_low, range.y_high, y_type)) {}

// The distributions: min-max normalised, floored at fp32 epsilon; a constant side is the even one. They are divided by their sums
// at the end: sum p/P log((p/P)/(q/Q)) = sum(p log(p/q))/P + log(Q/P).
void CannSums::add(std::span<const double> x, std::span<const double> y) {
  constexpr std::size_t kPiece = 1024;  // summed in double, the pieces in long double
  for (std::size_t begin = 0; begin < x.size(); begin += kPiece) {
    double xx = 0, yy = 0, xy = 0, dd = 0, d1 = 0, sum_p = 0, sum_q = 0, kl = 0;
    const std::size_t end = std::min(begin + kPiece, x.size());
    for (std::size_t i = begin; i < end; ++i) {
      const double a = x[i] / scale_, b = y[i] / scale_, d = a - b;
      xx += a * a;
      yy += b * b;
      xy += a * b;
      dd += d * d;
      d1 += std::fabs(d);
      const double p = x_constant_ ? 1.0 : std::max((x[i] * x_factor_ - x_low_) / x_width_, kEpsilon);
      const double q = y_constant_ ? 1.0 : std::max((y[i] * y_factor_ - y_low_) / y_width_, kEpsilon);
      sum_p += p;
      sum_q += q;
      if (p != q) kl += p * std::log(p / q);
    }
    xx_ += xx;
    yy_ += yy;
    xy_ += xy;
    dd_ += dd;
    d1_ += d1;
    p_ += sum_p;
    q_ += sum_q;
    kl_ += kl;
  }
  count_ += static_cast<std::int64_t>(x.size());
}

void CannSums::add(const CannSums& other) {
  xx_ += other.xx_;
  yy_ += other.yy_;
  xy_ += other.xy_;
  dd_ += other.dd_;
  d1_ += other.d1_;
  p_ += other.p_;
  q_ += other.q_;
  kl_ += other.kl_;
  count_ += other.count_;
}

CannMetrics CannSums::metrics() const {
  CannMetrics m;
  m.kl_div = x_constant_ && y_constant_ ? 0 : static_cast<double>(kl_ / p_ + std::log(q_ / p_));
  if (yy_ > 0) {
    m.cosine = static_cast<double>(xy_ / (std::sqrt(xx_) * std::sqrt(yy_)));
    m.rel_euclid = static_cast<double>(std::sqrt(dd_ / yy_));
  } else {  // y vanished beside x: more than 308 decimal orders apart
    m.cosine = 0;
    m.rel_euclid = std::numeric_limits<double>::infinity();
  }
  const auto n = static_cast<long double>(count_);
  m.mae = static_cast<double>(d1_ / n * scale_);
  m.rmse = static_cast<double>(std::sqrt(dd_ / n) * scale_);
  return m;
}

void decide(const CannRange& range, const CannSums& sums, CannResult& result) {
  const double x_largest = magnitude(range.x_low, range.x_high), y_largest = magnitude(range.y_low, range.y_high);
  if (x_largest == 0 || y_largest == 0) {
    if (x_largest == y_largest) {
      result.passed = result.has_metrics = true;
      result.notes.emplace_back("both all zero");
      return;
    }
    result.reason = x_largest == 0 ? "the expected values are all zero and the actual ones are not"
                                   : "the actual values are all zero and the expected ones are not: the output looks unwritten";
    return;
  }
  const CannMetrics m = result.metrics = sums.metrics();
  result.has_metrics = true;
  std::vector<std::string> failed;
  if (!(m.cosine > kThresholds.cosine_above))
    failed.push_back(fmt::format("CosineSim is not above {}", kThresholds.cosine_above));
  if (!(m.rel_euclid < kThresholds.rel_euclid_below))
    failed.push_back(fmt::format("RelEuclid is not below {}", kThresholds.rel_euclid_below));
  if (!(m.kl_div < kThresholds.kl_div_below)) failed.push_back(fmt::format("KLDiv is not below {}", kThresholds.kl_div_below));
  result.passed = failed.empty();
  result.reason = fmt::format("{}", fmt::join(failed, ", "));
  const double concentration = m.mae > 0 ? m.rmse / m.mae : 0;
  if (concentration > kThresholds.concentration_above) {
    result.warnings.push_back(fmt::format("RMSE/MAE={:.2f}, deviation not concentrated", concentration));
  }
}

std::string index_text(std::int64_t linear, const std::vector<std::int64_t>& sizes) {
  if (sizes.empty()) return fmt::format("[{}]", linear);
  std::vector<std::int64_t> at(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0;) {
    at[d] = linear % sizes[d];
    linear /= sizes[d];
  }
  return fmt::format("[{}]", fmt::join(at, ","));
}

CannResult cann_metrics(std::span<const double> x, std::span<const double> y, DType x_type, DType y_type,
                        std::span<const std::uint8_t> leave_out, const std::vector<std::int64_t>& sizes) {
  if (x.size() != y.size() || (!leave_out.empty() && leave_out.size() != x.size())) {
    fail("numerics.mismatch", "{} expected and {} actual values", x.size(), y.size());
  }
  CannResult result;
  if (x.empty()) {
    result.kind = CannResult::Kind::empty;
    result.passed = true;
    result.notes.emplace_back("empty tensor");
    return result;
  }
  std::vector<double> kept_x, kept_y;
  kept_x.reserve(x.size());
  kept_y.reserve(y.size());
  std::int64_t looked_at = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!leave_out.empty() && leave_out[i]) continue;
    ++looked_at;
    if (std::isfinite(x[i]) && std::isfinite(y[i])) {
      kept_x.push_back(x[i]);
      kept_y.push_back(y[i]);
    } else if ((std::isnan(x[i]) && std::isnan(y[i])) || x[i] == y[i]) {
      ++result.removed;
    } else {
      result.first_difference = static_cast<std::int64_t>(i);
      result.reason = fmt::format("non-finite values differ, first at {}: expected {}, got {}",
                                  index_text(result.first_difference, sizes), x[i], y[i]);
      return result;
    }
  }
  if (result.removed > 0) {
    result.notes.push_back(fmt::format("{} of {} elements are NaN or Inf on both sides and left out", result.removed, looked_at));
    if (static_cast<double>(result.removed) > kThresholds.removed_share_warns * static_cast<double>(looked_at)) {
      result.warnings.push_back(fmt::format("only {} of {} elements were compared", kept_x.size(), looked_at));
    }
  }
  if (kept_x.empty()) {
    result.passed = result.has_metrics = true;
    return result;
  }
  CannRange range;
  for (std::size_t i = 0; i < kept_x.size(); ++i) range.add(kept_x[i], kept_y[i]);
  CannSums sums(range, x_type, y_type);
  sums.add(kept_x, kept_y);
  decide(range, sums, result);
  return result;
}

CannResult cann_metrics(const Tensor& expected, const Tensor& actual, std::span<const std::uint8_t> leave_out) {
  CannResult result;
  result.kind = CannResult::Kind::mismatch;
  if (expected.sizes() != actual.sizes()) {
    result.reason = fmt::format("shape mismatch: expected [{}], got [{}]", fmt::join(expected.sizes(), ", "),
                                fmt::join(actual.sizes(), ", "));
    return result;
  }
  if (expected.dtype() != actual.dtype()) {
    result.reason = fmt::format("dtype mismatch: expected {}, got {}", name(expected.dtype()), name(actual.dtype()));
    return result;
  }
  if (expected.numel() > 0 && !is_float(expected.dtype())) return compare_exactly(expected, actual, leave_out);
  return cann_metrics(expected.doubles(), actual.doubles(), expected.dtype(), actual.dtype(), leave_out, expected.sizes());
}

}  // namespace fuselab::numerics
