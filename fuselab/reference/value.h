// What the interpreter holds for one value of a graph: fp64 values and the intervals that hold every correct implementation.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "fuselab/core/dtype.h"
#include "fuselab/core/float16.h"

namespace fuselab::reference {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// An element: its fp64 value and the ends between which a computed one lies. All NaN: certainly NaN.
struct Ball {
  double v, lo, hi;
  bool point() const { return lo == hi || (lo != lo && hi != hi); }
  /// Both ends are the value, also in the sign of zero: 1/x tells -0 from 0.
  bool exact() const {
    return lo == v && hi == v && (v != 0 || (std::signbit(lo) == std::signbit(v) && std::signbit(hi) == std::signbit(v)));
  }
};

template <typename T>
using Shared = std::shared_ptr<const std::vector<T>>;

/// Elements in row-major order. Floats use v/lo/hi, integers and bool iv/ilo/ihi. Ends may share the values' vector: exact.
struct Array {
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes;
  std::int64_t count = 0;
  Shared<double> v, lo, hi;
  Shared<std::int64_t> iv, ilo, ihi;
  Shared<std::uint8_t> flag;  ///< floats: an undecided decision is behind the element; nullptr: nowhere

  bool defined() const { return v || iv; }
  bool exact() const { return is_float(dtype) ? lo == v && hi == v : ilo == iv && ihi == iv; }
  bool flagged(std::int64_t i) const {
    if (!is_float(dtype)) return (*ilo)[static_cast<std::size_t>(i)] != (*ihi)[static_cast<std::size_t>(i)];
    return flag && (*flag)[static_cast<std::size_t>(i)];
  }
};

/// Smallest and largest value of an integer dtype or bool.
inline std::int64_t int_min(DType t) {
  switch (t) {
    case DType::i8:
      return INT8_MIN;
    case DType::i16:
      return INT16_MIN;
    case DType::i32:
      return INT32_MIN;
    case DType::i64:
      return INT64_MIN;
    default:
      return 0;
  }
}
inline std::int64_t int_max(DType t) {
  switch (t) {
    case DType::i8:
      return INT8_MAX;
    case DType::u8:
      return UINT8_MAX;
    case DType::i16:
      return INT16_MAX;
    case DType::i32:
      return INT32_MAX;
    case DType::boolean:
      return 1;
    default:
      return INT64_MAX;
  }
}

/// Collects the elements of a new Array.
class Builder {
 public:
  Builder(DType dtype, std::vector<std::int64_t> sizes, std::int64_t count);
  void set(std::int64_t i, const Ball& ball, bool undecided) {
    const auto at = static_cast<std::size_t>(i);
    (*v_)[at] = ball.v;
    (*lo_)[at] = ball.lo;
    (*hi_)[at] = ball.hi;
    exact_ = exact_ && ball.exact();
    if (undecided) mark(at);
  }
  void set_int(std::int64_t i, std::int64_t v, std::int64_t lo, std::int64_t hi) {
    const auto at = static_cast<std::size_t>(i);
    (*iv_)[at] = v;
    (*ilo_)[at] = lo;
    (*ihi_)[at] = hi;
    exact_ = exact_ && lo == hi;
  }
  Array finish();

 private:
  void mark(std::size_t at);
  Array array_;
  std::shared_ptr<std::vector<double>> v_, lo_, hi_;
  std::shared_ptr<std::vector<std::int64_t>> iv_, ilo_, ihi_;
  std::shared_ptr<std::vector<std::uint8_t>> flag_;
  bool exact_ = true;
};

/// How results are rounded; see Options.
struct Policy {
  bool eager = false;        ///< every result to its dtype
  bool any_borders = false;  ///< to its dtype or not
  bool model = false;        ///< the op-by-op rounding model itself: values are rounded, nothing is uncertain
};

/// Rounds both ends to `t`; the fp64 value stays.
inline void round_ends(DType t, Ball& b) {
  const bool point = b.lo == b.hi && b.lo != 0;  // two zeros may differ in sign
  b.lo = round_to(t, b.lo);
  b.hi = point ? b.lo : round_to(t, b.hi);
}

/// Makes ends out of evaluations at the corners: widens by the operator's own rounding (`ulp` units of `t`) and settles overflow
/// and NaN. Sets `undecided` where the outcome is open between NaN and a number.
void settle(DType t, double ulp, Ball& b, bool& undecided);

/// The strides (in elements, over the logical row-major order of `from`) that broadcast `from` to `to`.
std::vector<std::int64_t> broadcast_strides(const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to);
/// Where each element of `sizes` (row-major) lies under these strides.
std::vector<std::int64_t> offsets(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides,
                                  std::int64_t start = 0);

}  // namespace fuselab::reference
