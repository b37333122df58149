// The CANN accuracy metrics (spec: "for compatibility"): cosine similarity, relative Euclidean distance, KL divergence, and
// whether the error is concentrated. They are blind to small scale errors, outliers and missing rows, so they never decide
// alone: see numerics/verdict.h.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fuselab/core/tensor.h"

namespace fuselab::numerics {

/// The only place where thresholds stand.
struct CannThresholds {
  double cosine_above = 0.99;
  double rel_euclid_below = 0.05;
  double kl_div_below = 0.005;
  double concentration_above = 1.1;     ///< RMSE/MAE: warns, never fails
  double constant_within_ulp = 4;       ///< a range of so many ULP of the largest magnitude counts as constant (KLDiv)
  double removed_share_warns = 0.5;     ///< more non-finite elements than this: the check saw little
  double undecided_share_warns = 0.01;  ///< of the verdict's undecided elements
};
inline constexpr CannThresholds kThresholds;

struct CannMetrics {
  double cosine = 1, rel_euclid = 0, kl_div = 0;
  double mae = 0, rmse = 0;  ///< in the data's own unit
};

/// First of two passes over pieces of the data: what the metrics are scaled by. Pieces may be looked at in any order.
struct CannRange {
  double x_low = 0, x_high = 0, y_low = 0, y_high = 0;
  std::int64_t count = 0;

  void add(double x, double y);  ///< both finite
  void add(const CannRange& other);
};

/// Second pass: sums over pieces. Merge in a fixed order for the same bits in any run.
class CannSums {
 public:
  CannSums(const CannRange& range, DType x_type, DType y_type);
  void add(std::span<const double> x, std::span<const double> y);  ///< all finite
  void add(const CannSums& other);
  /// Needs a range with a largest magnitude above 0 on both sides.
  CannMetrics metrics() const;

 private:
  double scale_, inverse_, y_inverse_;  ///< powers of two
  double x_low_, x_floor_, y_low_, y_floor_;
  bool x_constant_, y_constant_;
  long double xx_ = 0, yy_ = 0, xy_ = 0, dd_ = 0, d1_ = 0;  // of x and y divided by the scale
  long double p_ = 0, q_ = 0, kl_ = 0;                      // of the two distributions before they are divided by their sums
  std::int64_t count_ = 0;
};

/// What a comparison found.
struct CannResult {
  enum class Kind : std::uint8_t { metrics, exact /* integers, bool */, empty, mismatch /* shape or dtype */ };
  Kind kind = Kind::metrics;
  bool passed = false;
  std::string reason;   ///< why it failed; empty when passed
  CannMetrics metrics;  ///< kind metrics, when has_metrics
  bool has_metrics = false;
  std::int64_t removed = 0;                  ///< non-finite elements left out
  std::int64_t first_difference = -1;        ///< row-major index, where the reason is one
  std::vector<std::string> notes, warnings;  ///< texts of the [NOTE: …] and [WARN: …] marks
};

/// x = expected, y = actual, flattened; a complex tensor is given as its real and imaginary parts. `x_type`, `y_type` say what an
/// ULP is. `leave_out` (optional) marks elements that are not looked at.
CannResult cann_metrics(std::span<const double> x, std::span<const double> y, DType x_type, DType y_type,
                        std::span<const std::uint8_t> leave_out = {}, const std::vector<std::int64_t>& sizes = {});
/// Tensors: shape and dtype must be equal, integers and bool are compared exactly, empty ones pass with a note.
CannResult cann_metrics(const Tensor& expected, const Tensor& actual, std::span<const std::uint8_t> leave_out = {});

/// The decision on data that is equal on both sides, which needs no sums.
void decide_equal(const CannRange& range, CannResult& result);

/// The decision from finished sums: thresholds, all-zero sides, concentration. Fills metrics, passed, reason, notes, warnings.
void decide(const CannRange& range, const CannSums& sums, CannResult& result);

/// `[2, 3]` of a row-major index.
std::string index_text(std::int64_t linear, const std::vector<std::int64_t>& sizes);

}  // namespace fuselab::numerics
