// Distances between results: equal bits, units in the last place, error statistics.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "fuselab/core/tensor.h"

namespace fuselab::numerics {

/// Same dtype, sizes and bits of every element; strides may differ.
bool bit_equal(const Tensor& a, const Tensor& b);

struct UlpOptions {
  bool nan_equal = true;     ///< any NaN is 0 apart from any NaN; false: NaN differs from everything
  bool signed_zero = false;  ///< true: -0 and +0 are 1 apart
};
inline constexpr std::uint64_t kUlpApart = std::numeric_limits<std::uint64_t>::max();  ///< a NaN against a number

/// How many representable values of float type `t` lie from a to b; both must be representable in it. The largest finite
/// value and infinity are 1 apart. kUlpApart where one is NaN.
std::uint64_t ulp_diff(DType t, double a, double b, UlpOptions options = {});
/// Element by element, row-major. Throws Error("numerics.mismatch") unless dtypes and sizes are equal, Error("numerics.dtype")
/// for integers and bool.
std::vector<std::uint64_t> ulp_diff(const Tensor& a, const Tensor& b, UlpOptions options = {});

/// One kind of error over all elements.
struct Spread {
  double max = 0, mean = 0, p50 = 0, p99 = 0;  ///< percentiles by nearest rank
};

/// Errors of `actual` against a reference. ULP error is |actual - ref| in units of actual's dtype at ref: a fraction.
struct ErrorStats {
  Spread absolute, relative, ulp;
  std::int64_t worst = -1;             ///< row-major index of the largest ULP error; -1: nothing counted
  std::int64_t count = 0;              ///< elements in the statistics
  std::int64_t aligned_nonfinite = 0;  ///< NaN with NaN, Inf with the same Inf: left out
  std::int64_t misaligned = 0;         ///< one side NaN or Inf and the other not: an infinite error, in max and percentiles
};

/// `skip` (optional, one byte per element) leaves elements out. For integer and bool dtypes the ULP is 1.
ErrorStats error_stats(const Tensor& actual, std::span<const double> reference, std::span<const std::uint8_t> skip = {});
ErrorStats error_stats(const Tensor& actual, const Tensor& reference);

}  // namespace fuselab::numerics
