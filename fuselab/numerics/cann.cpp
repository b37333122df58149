#include "fuselab/numerics/cann.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fuselab/core/error.h"

namespace fuselab::numerics {
namespace {

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

void decide_equal(const CannRange& range, CannResult& result) {
  result.passed = result.has_metrics = true;
  if (magnitude(range.x_low, range.x_high) == 0) result.notes.emplace_back("both all zero");
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
