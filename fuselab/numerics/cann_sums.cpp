// The two passes over the data that the CANN metrics need.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "fuselab/numerics/cann.h"
#include "fuselab/numerics/lanes.h"

namespace fuselab::numerics {
namespace {

constexpr double kEpsilon = std::numeric_limits<float>::epsilon();

bool is_constant(double low, double high, DType t) {
  const double largest = std::max(std::fabs(low), std::fabs(high));
  return high - low <= kThresholds.constant_within_ulp * ulp_of(t, largest);
}

double magnitude(double low, double high) { return std::max(std::fabs(low), std::fabs(high)); }

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

namespace {

/// The exponent of the power of two that a side is scaled by: that of its largest magnitude, as far as its inverse is a double.
int scale_exponent(double largest) { return largest > 0 ? std::clamp(std::ilogb(largest), -1022, 1023) : 0; }

}  // namespace

// Scaling by a power of two is exact and changes no metric. Sides within 2^100 of each other share it, so that p and q are close
// where x and y are.
CannSums::CannSums(const CannRange& range, DType x_type, DType y_type)
    : x_constant_(is_constant(range.x_low, range.x_high, x_type)), y_constant_(is_constant(range.y_low, range.y_high, y_type)) {
  const int x = scale_exponent(magnitude(range.x_low, range.x_high));
  int y = scale_exponent(magnitude(range.y_low, range.y_high));
  if (std::abs(x - y) <= 100) y = x;
  scale_ = std::ldexp(1.0, x);
  inverse_ = std::ldexp(1.0, -x);
  y_inverse_ = std::ldexp(1.0, -y);
  x_low_ = range.x_low * inverse_;
  y_low_ = range.y_low * y_inverse_;
  x_floor_ = kEpsilon * (range.x_high * inverse_ - x_low_);
  y_floor_ = kEpsilon * (range.y_high * y_inverse_ - y_low_);
}

namespace {

using lanes::Doubles;
using lanes::kBlock;
using lanes::kLanes;

struct Side {
  double inverse, low, floor;
  bool constant;
};
struct Terms {
  double xx, yy, xy, dd, d1, p, q, kl;
};

constexpr double kNear = 1.0 / 64;  // |p/q - 1| below which ten terms of log(1 + t) are as good as a double

/// Where p and q are close, log(p/q) is log(1 + t) of t = (p - q)/q, which is exact to its last bit or two where log(p/q) would
/// lose all that p/q rounds away. False: some are not close, `terms.kl` is not set.
FUSELAB_LANES bool block_terms(const double* x, const double* y, double inverse, Side xs, Side ys, double* ps, double* qs,
                               Terms& terms) {
  Doubles xx{}, yy{}, xy{}, dd{}, d1{}, sum_p{}, sum_q{}, kl{};
  lanes::Ints far{};
  for (int i = 0; i < kBlock; i += kLanes) {
    Doubles vx, vy, size;
    lanes::load(x + i, vx);
    lanes::load(y + i, vy);
    const Doubles a = vx * inverse, b = vy * inverse, d = a - b;
    lanes::magnitude(d, size);
    xx += a * a;
    yy += b * b;
    xy += a * b;
    dd += d * d;
    d1 += size;
    Doubles p = a * 0 + 1, q = p;
    if (!xs.constant) {
      p = vx * xs.inverse - xs.low;
      p = p > xs.floor ? p : p * 0 + xs.floor;
    }
    if (!ys.constant) {
      q = vy * ys.inverse - ys.low;
      q = q > ys.floor ? q : q * 0 + ys.floor;
    }
    sum_p += p;
    sum_q += q;
    lanes::store(p, ps + i);
    lanes::store(q, qs + i);
    const Doubles t = (p - q) / q;
    lanes::magnitude(t, size);
    far |= size >= kNear;
    Doubles series = t * (1.0 / 9) - 1.0 / 8;
    series = series * t + 1.0 / 7;
    series = series * t - 1.0 / 6;
    series = series * t + 1.0 / 5;
    series = series * t - 1.0 / 4;
    series = series * t + 1.0 / 3;
    series = series * t - 1.0 / 2;
    kl += p * (t + t * t * series);
  }
  using lanes::sum;
  terms = {sum(xx), sum(yy), sum(xy), sum(dd), sum(d1), sum(sum_p), sum(sum_q), sum(kl)};
  return sum(far) == 0;
}

}  // namespace

// The distributions: min-max normalised, floored at fp32 epsilon; a constant side is the even one. They are divided by their sums
// at the end: sum p/P log((p/P)/(q/Q)) = sum(p log(p/q))/P + log(Q/P), where the width of a side drops out.
void CannSums::add(std::span<const double> x, std::span<const double> y) {
  const Side xs{inverse_, x_low_, x_floor_, x_constant_}, ys{y_inverse_, y_low_, y_floor_, y_constant_};
  double p[kBlock], q[kBlock];
  for (std::size_t begin = 0; begin < x.size(); begin += kBlock) {
    const std::size_t n = std::min<std::size_t>(kBlock, x.size() - begin);
    Terms t{};
    if (n < kBlock) {
      for (std::size_t i = 0; i < n; ++i) {
        const double a = x[begin + i] * inverse_, b = y[begin + i] * inverse_, d = a - b;
        t.xx += a * a;
        t.yy += b * b;
        t.xy += a * b;
        t.dd += d * d;
        t.d1 += std::fabs(d);
        p[i] = x_constant_ ? 1 : std::max(x[begin + i] * inverse_ - x_low_, x_floor_);
        q[i] = y_constant_ ? 1 : std::max(y[begin + i] * y_inverse_ - y_low_, y_floor_);
        t.p += p[i];
        t.q += q[i];
      }
    }
    if (n < kBlock || !block_terms(x.data() + begin, y.data() + begin, inverse_, xs, ys, p, q, t)) {
      t.kl = 0;
      for (std::size_t i = 0; i < n; ++i)
        if (p[i] != q[i]) t.kl += p[i] * std::log1p((p[i] - q[i]) / q[i]);
    }
    xx_ += t.xx;
    yy_ += t.yy;
    xy_ += t.xy;
    dd_ += t.dd;
    d1_ += t.d1;
    p_ += t.p;
    q_ += t.q;
    kl_ += t.kl;
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

}  // namespace fuselab::numerics
