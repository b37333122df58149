#include "fuselab/numerics/ulp.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "fuselab/core/error.h"

namespace fuselab::numerics {
namespace {

// Maps the values of a float type onto integers in their order: -0 and +0 both become 0.
std::int64_t ordered(DType t, double value) {
  std::int64_t magnitude = 0;
  switch (t) {
    case DType::f16:
      magnitude = to_f16(std::fabs(value));
      break;
    case DType::bf16:
      magnitude = to_bf16(std::fabs(value));
      break;
    case DType::f32:
      magnitude = std::bit_cast<std::uint32_t>(static_cast<float>(std::fabs(value)));
      break;
    default:
      magnitude = std::bit_cast<std::int64_t>(std::fabs(value));
      break;
  }
  return std::signbit(value) ? -magnitude : magnitude;
}

void need_equal_layout(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.sizes() != b.sizes()) {
    fail("numerics.mismatch", "cannot compare {}[{}] with {}[{}]: dtypes and sizes must be equal", name(a.dtype()),
         fmt::join(a.sizes(), ", "), name(b.dtype()), fmt::join(b.sizes(), ", "));
  }
}

Spread spread_of(std::vector<double>& errors) {
  Spread s;
  if (errors.empty()) return s;
  const auto rank = [&](double share) {
    const auto place = static_cast<std::size_t>(std::ceil(share * static_cast<double>(errors.size())));
    const auto at = errors.begin() + static_cast<std::ptrdiff_t>(place == 0 ? 0 : place - 1);
    std::nth_element(errors.begin(), at, errors.end());
    return *at;
  };
  s.max = *std::max_element(errors.begin(), errors.end());
  long double sum = 0;
  for (const double e : errors) sum += e;
  s.mean = static_cast<double>(sum / static_cast<long double>(errors.size()));
  s.p50 = rank(0.50);
  s.p99 = rank(0.99);
  return s;
}

}  // namespace

bool bit_equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.sizes() != b.sizes()) return false;
  const auto width = static_cast<std::size_t>(size_of(a.dtype()));
  if (a.numel() == 0) return true;
  if (a.contiguous() && b.contiguous()) return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.numel()) * width) == 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    if (std::memcmp(a.at(i), b.at(i), width) != 0) return false;
  }
  return true;
}

std::uint64_t ulp_diff(DType t, double a, double b, UlpOptions options) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) && options.nan_equal ? 0 : kUlpApart;
  const std::int64_t x = ordered(t, a), y = ordered(t, b);
  // Unsigned subtraction: the distance of two f64 of opposite sign passes 63 bits.
  std::uint64_t apart = static_cast<std::uint64_t>(std::max(x, y)) - static_cast<std::uint64_t>(std::min(x, y));
  if (options.signed_zero && std::signbit(a) != std::signbit(b)) ++apart;
  return apart;
}

std::vector<std::uint64_t> ulp_diff(const Tensor& a, const Tensor& b, UlpOptions options) {
  need_equal_layout(a, b);
  if (!is_float(a.dtype()))
    fail("numerics.dtype", "ULP distance needs a float dtype, not {}; compare integers exactly", name(a.dtype()));
  std::vector<std::uint64_t> out(static_cast<std::size_t>(a.numel()));
  for (std::int64_t i = 0; i < a.numel(); ++i)
    out[static_cast<std::size_t>(i)] = ulp_diff(a.dtype(), a.get(i), b.get(i), options);
  return out;
}

ErrorStats error_stats(const Tensor& actual, std::span<const double> reference, std::span<const std::uint8_t> skip) {
  if (static_cast<std::int64_t>(reference.size()) != actual.numel() || (!skip.empty() && skip.size() != reference.size())) {
    fail("numerics.mismatch", "{} elements against {} reference values", actual.numel(), reference.size());
  }
  ErrorStats stats;
  std::vector<double> absolute, relative, ulp;
  absolute.reserve(reference.size());
  relative.reserve(reference.size());
  ulp.reserve(reference.size());
  double worst = -1;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    if (!skip.empty() && skip[i]) continue;
    const double a = actual.get(static_cast<std::int64_t>(i)), r = reference[i];
    double error = std::fabs(a - r), unit = is_float(actual.dtype()) ? ulp_of(actual.dtype(), r) : 1.0;
    if (!std::isfinite(a) || !std::isfinite(r)) {
      // A finite reference past the dtype's range rounds to infinity, and then that is the right answer.
      if ((std::isnan(a) && std::isnan(r)) || a == round_to(actual.dtype(), r)) {
        ++stats.aligned_nonfinite;
        continue;
      }
      ++stats.misaligned;
      error = std::numeric_limits<double>::infinity();
      unit = 1;
    }
    absolute.push_back(error);
    relative.push_back(error == 0 ? 0 : error / std::fabs(r));
    ulp.push_back(error == 0 ? 0 : error / unit);
    if (ulp.back() > worst) {
      worst = ulp.back();
      stats.worst = static_cast<std::int64_t>(i);
    }
  }
  stats.count = static_cast<std::int64_t>(ulp.size());
  stats.absolute = spread_of(absolute);
  stats.relative = spread_of(relative);
  stats.ulp = spread_of(ulp);
  return stats;
}

ErrorStats error_stats(const Tensor& actual, const Tensor& reference) {
  if (actual.sizes() != reference.sizes()) {
    fail("numerics.mismatch", "sizes [{}] and [{}] differ", fmt::join(actual.sizes(), ", "), fmt::join(reference.sizes(), ", "));
  }
  return error_stats(actual, reference.doubles());
}

}  // namespace fuselab::numerics
