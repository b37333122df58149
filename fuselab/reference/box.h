// A pointwise formula over the box of its arguments' intervals: sampled where it can be extreme. Included by
// fuselab/reference/pointwise.cpp only.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "fuselab/ops/op.h"
#include "fuselab/reference/value.h"

namespace fuselab::reference {

inline constexpr std::size_t kMaxArgs = 8;

/// Where a formula takes another branch.
struct Branches {
  std::vector<double> thresholds;   ///< numbers it compares with
  int dividend = -1, divisor = -1;  ///< arguments whose fmod it takes: it jumps where their quotient is whole
};

/// Evaluates a formula over the box of its arguments' intervals.
class Evaluation {
 public:
  Evaluation(const ops::Op& op, const Attrs& attrs, std::size_t count, Branches branches, bool number_last)
      : op_(op),
        formula_(number_last && op.fp64_of_number ? op.fp64_of_number : op.fp64),
        attrs_(attrs),
        count_(count),
        branches_(std::move(branches)) {}

  std::array<Ball, kMaxArgs> args;
  std::array<bool, kMaxArgs> ends_only{};

  double at_values() {
    std::array<double, kMaxArgs> x;
    for (std::size_t k = 0; k < count_; ++k) x[k] = args[k].v;
    return call(x);
  }
  /// Smallest and largest value over the box, with a second-order margin between the sample points. NaN ends: NaN everywhere.
  void range(double& lo, double& hi) {
    std::array<double, kMaxArgs> x;
    std::array<std::size_t, kMaxArgs> open;
    std::size_t n = 0;
    for (std::size_t k = 0; k < count_; ++k) {
      x[k] = args[k].lo;
      if (!args[k].point() || zero_of_either_sign(args[k])) open[n++] = k;
    }
    if (n == 0) {
      lo = hi = call(x);
      return;
    }
    if (op_.period > 0 && !within_a_period(lo, hi)) return;
    low_ = kInfinity;
    high_ = -kInfinity;
    margin_ = 0;
    nans_ = numbers_ = 0;
    minus_zero_ = plus_zero_ = false;
    sample(x, open, n);
    if (numbers_ == 0) {
      // NaN at every sample is proof only where no argument is open without limit.
      bool limited = true;
      for (std::size_t j = 0; j < n; ++j) {
        const Ball& b = args[open[j]];
        // A whole number between the ends is a point of its own to pow.
        limited = limited && std::isfinite(b.lo) && std::isfinite(b.hi) && !(std::ceil(b.lo) <= std::floor(b.hi));
      }
      for (std::size_t k = 0; k < count_; ++k) limited = limited || std::isnan(args[k].lo);
      lo = std::nan("");
      hi = limited ? lo : kInfinity;
      return;
    }
    lo = nans_ > 0 ? std::nan("") : low_ - margin_;
    hi = high_ + margin_;
    // Both signs of zero stay visible: dividing by one of them gives the other infinity.
    if (lo == 0) lo = minus_zero_ ? -0.0 : 0.0;
    if (hi == 0) hi = plus_zero_ ? 0.0 : -0.0;
  }
  /// All results at the ends, at 0 and NaN inside an interval and where two intervals overlap: what a comparison can hang on.
  bool agrees(double& result) {
    std::array<double, kMaxArgs> x;
    std::array<std::vector<double>, kMaxArgs> choices;
    bool open = false;
    for (std::size_t k = 0; k < count_; ++k) {
      choices[k] = {args[k].lo};
      if (args[k].point() && !zero_of_either_sign(args[k])) continue;
      open = true;
      choices[k].push_back(args[k].hi);
      if (args[k].lo < 0 && args[k].hi > 0) choices[k].push_back(0);
      if (args[k].lo == -kInfinity && args[k].hi == kInfinity) choices[k].push_back(std::nan(""));  // settle(): a number or NaN
    }
    if (open && count_ >= 2) {
      for (std::size_t k = 0; k + 1 < count_; ++k) {
        const double low = std::max(args[k].lo, args[k + 1].lo), high = std::min(args[k].hi, args[k + 1].hi);
        if (low > high) continue;
        choices[k].push_back(low);
        choices[k + 1].push_back(low);
      }
    }
    std::size_t combinations = 1;
    for (std::size_t k = 0; k < count_; ++k) combinations *= choices[k].size();
    for (std::size_t c = 0; c < combinations; ++c) {
      std::size_t rest = c;
      for (std::size_t k = 0; k < count_; ++k) {
        x[k] = choices[k][rest % choices[k].size()];
        rest /= choices[k].size();
      }
      const double r = call(x);
      if (c == 0) result = r;
      if (r != result && !(std::isnan(r) && std::isnan(result))) return false;
    }
    return true;
  }

 private:
  double call(const std::array<double, kMaxArgs>& x) { return formula_(std::span<const double>(x.data(), count_), attrs_); }
  void take(double y) {
    if (std::isnan(y)) {
      ++nans_;
    } else {
      ++numbers_;
      low_ = std::min(low_, y);
      high_ = std::max(high_, y);
      if (y == 0) (std::signbit(y) ? minus_zero_ : plus_zero_) = true;
    }
  }
  static bool zero_of_either_sign(const Ball& b) { return b.lo == 0 && b.hi == 0 && std::signbit(b.lo) != std::signbit(b.hi); }
  void sample(std::array<double, kMaxArgs>& x, const std::array<std::size_t, kMaxArgs>& open, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) {  // an interval without ends stands for a number or NaN (settle)
      const Ball& b = args[open[j]];
      if (b.lo != -kInfinity || b.hi != kInfinity) continue;
      x[open[j]] = std::nan("");
      take(call(x));
      x[open[j]] = b.lo;
    }
    if (!op_.monotone) sample_branches(x, open, n);
    if (op_.monotone || n > 3) {
      sample_corners(x, open, n);
      return;
    }
    // A grid over the open arguments: wide intervals of a single one are sampled more finely (a period of sin).
    const Ball& first = args[open[0]];
    const double scale = op_.period > 0 ? op_.period : std::max(1.0, std::fabs(first.lo));
    const bool wide = n == 1 && first.hi - first.lo > 1e-3 * scale;
    std::array<std::size_t, kMaxArgs> points{};
    std::size_t total = 1;
    for (std::size_t j = 0; j < n; ++j) total *= points[j] = ends_only[open[j]] ? 2 : wide ? 33 : 3;
    std::array<double, 33> y;
    for (std::size_t c = 0; c < total; ++c) {
      std::size_t rest = c;
      for (std::size_t j = 0; j < n; ++j) {
        const Ball& b = args[open[j]];
        const std::size_t p = rest % points[j], last = points[j] - 1;
        rest /= points[j];
        x[open[j]] = p == 0      ? b.lo
                     : p == last ? b.hi
                                 : b.lo + (b.hi - b.lo) * (static_cast<double>(p) / static_cast<double>(last));
      }
      y[c] = call(x);
      take(y[c]);
    }
    // Between three equidistant points a parabola passes its largest sample by at most an eighth of the second difference.
    std::size_t step = 1;
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t c = 0; points[j] > 2 && c < total; ++c) {
        const std::size_t p = c / step % points[j];
        if (p == 0 || p + 1 == points[j]) continue;
        const double bend = std::fabs(y[c - step] - 2 * y[c] + y[c + step]);
        if (bend > margin_ && !ends_only[open[j]]) margin_ = bend;
      }
      step *= points[j];
    }
    margin_ *= 0.5;
    // Bends of the size of double's own rounding are noise.
    if (margin_ < 8 * ulp_of(DType::f64, std::max(std::fabs(low_), std::fabs(high_)))) margin_ = 0;
  }

  /// A periodic function takes all its values in one period: samples further apart than that would say nothing. Returns false
  /// when a pole lies in the interval, so that any value is possible.
  bool within_a_period(double& lo, double& hi) {
    Ball& b = args[0];
    if (!std::isfinite(b.lo) || !std::isfinite(b.hi)) return true;
    if (!op_.monotone) {
      // The first period stands for any other: far out, two doubles lie further apart than the samples would.
      const double grain = ulp_of(DType::f64, std::max(std::fabs(b.lo), std::fabs(b.hi)));
      if (b.hi - b.lo >= op_.period || grain > op_.period / 64) {
        b.lo = 0;
        b.hi = op_.period;
      }
      return true;
    }
    std::array<double, kMaxArgs> x;
    x[0] = b.lo;
    const double first = call(x);
    x[0] = b.hi;
    if (b.hi - b.lo < op_.period && first <= call(x)) return true;
    lo = -kInfinity;
    hi = kInfinity;
    return false;
  }
  void sample_corners(std::array<double, kMaxArgs>& x, const std::array<std::size_t, kMaxArgs>& open, std::size_t n,
                      std::size_t held = kMaxArgs) {
    for (std::size_t corner = 0; corner < (std::size_t{1} << n); ++corner) {
      for (std::size_t j = 0; j < n; ++j) {
        if (j != held) x[open[j]] = corner >> j & 1 ? args[open[j]].hi : args[open[j]].lo;
      }
      take(call(x));
    }
  }
  /// A branch between two thresholds may lie between all points of a grid (the gradient of hardsigmoid is 0 but for [-3, 3]): at
  /// each threshold, just before and just behind it. And at the values themselves, where they lie in the box.
  void sample_branches(std::array<double, kMaxArgs>& x, const std::array<std::size_t, kMaxArgs>& open, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) {
      const Ball& b = args[open[j]];
      for (const double threshold : branches_.thresholds) {
        if (ends_only[open[j]] || threshold < b.lo || threshold > b.hi) continue;
        for (const double p : {std::nextafter(threshold, b.lo), threshold, std::nextafter(threshold, b.hi)}) {
          x[open[j]] = p;
          sample_corners(x, open, n, j);
        }
      }
    }
    if (branches_.divisor >= 0) sample_whole_quotient(x);
    bool inside = true;
    for (std::size_t j = 0; j < n; ++j) {
      const Ball& b = args[open[j]];
      inside = inside && b.lo <= b.v && b.v <= b.hi;
      x[open[j]] = b.v;
    }
    if (inside) take(call(x));
  }

  /// Both sides of the jump of a remainder, when one is in the box. Moves x.
  void sample_whole_quotient(std::array<double, kMaxArgs>& x) {
    const auto i = static_cast<std::size_t>(branches_.dividend), j = static_cast<std::size_t>(branches_.divisor);
    const Ball &a = args[i], &b = args[j];
    if (b.lo <= 0 && b.hi >= 0) return;  // a divisor of 0 is a threshold
    const auto [low, high] = std::minmax({a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi});
    const double whole = std::ceil(low);
    if (!(whole <= high)) return;
    const auto both_sides = [&](std::size_t moved, const Ball& within, double at) {
      for (const double p : {std::nextafter(at, -kInfinity), at, std::nextafter(at, kInfinity)}) {
        if (p < within.lo || p > within.hi) continue;
        x[moved] = p;
        take(call(x));
      }
    };
    for (const double end : {b.lo, b.hi}) {
      x[j] = end;
      both_sides(i, a, whole * end);
    }
    for (const double end : {a.lo, a.hi}) {
      x[i] = end;
      if (whole != 0) both_sides(j, b, end / whole);
    }
  }

  const ops::Op& op_;
  double (*formula_)(std::span<const double>, const Attrs&);
  const Attrs& attrs_;
  std::size_t count_;
  Branches branches_;
  double low_ = 0, high_ = 0, margin_ = 0;
  int nans_ = 0, numbers_ = 0;
  bool minus_zero_ = false, plus_zero_ = false;
};

}  // namespace fuselab::reference
