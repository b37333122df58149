#include "fuselab/numerics/compare_piece.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "fuselab/numerics/lanes.h"

namespace fuselab::numerics {
namespace {

using lanes::Doubles;
using lanes::Ints;
using lanes::kBlock;
using lanes::kLanes;

FUSELAB_LANES void widen_f32(const char* from, std::int64_t n, double* to) {
  typedef float Floats __attribute__((vector_size(16)));  // NOLINT(modernize-use-using)
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Floats f;
    std::memcpy(&f, from + i * 4, sizeof f);
    lanes::store(__builtin_convertvector(f, Doubles), to + i);
  }
  for (; i < n; ++i) {
    float f;
    std::memcpy(&f, from + i * 4, sizeof f);
    to[i] = f;
  }
}

struct BlockSums {
  double absolute, relative, ulp, aa, dd, max_absolute, max_relative, max_ulp, x_low, x_high, y_low, y_high;
  std::int64_t differing, beyond, zeros;
};

struct Unit {
  std::int64_t min_exponent, mantissa_bits;  // of a float type whose units' inverses are doubles
};

FUSELAB_INLINE bool all_finite(const double* x) {
  Ints any{};
  for (int i = 0; i < kBlock; i += kLanes) {
    Ints v;
    std::memcpy(&v, x + i, sizeof v);
    any |= (v & lanes::kExponentBits) == lanes::kExponentBits;
  }
  return lanes::sum(any) == 0;
}

/// Figures of a block of finite values, and each element's errors. False: not all are finite.
FUSELAB_LANES bool block_errors(const double* x, const double* y, Unit unit, double atol, double rtol, double* absolute,
                                double* relative, double* ulp, BlockSums& out) {
  if (!all_finite(x) || !all_finite(y)) return false;
  const Doubles none{};
  Doubles s_abs{}, s_rel{}, s_ulp{}, s_aa{}, s_dd{}, m_abs{}, m_rel{}, m_ulp{}, x_low, x_high, y_low, y_high;
  Ints differing{}, beyond{}, zeros{};
  lanes::load(x, x_low);
  lanes::load(y, y_low);
  x_high = x_low;
  y_high = y_low;
  for (int i = 0; i < kBlock; i += kLanes) {
    Doubles a, b, size, error, inverse;
    Ints a_bits, b_bits;
    lanes::load(x + i, a);
    lanes::load(y + i, b);
    lanes::bits(a, a_bits);
    lanes::bits(b, b_bits);
    lanes::magnitude(a, size);
    lanes::magnitude(b - a, error);
    x_low = a < x_low ? a : x_low;
    x_high = a > x_high ? a : x_high;
    y_low = b < y_low ? b : y_low;
    y_high = b > y_high ? b : y_high;
    const Ints zero = error == none;
    zeros -= zero;
    differing -= a_bits != b_bits;
    // ulp_of, turned over: 2^-(max(exponent, least) - mantissa bits)
    Ints exponent = ((a_bits & lanes::kExponentBits) >> 52) - 1023;
    exponent = exponent > unit.min_exponent ? exponent : exponent * 0 + unit.min_exponent;
    lanes::from_bits((1023 + unit.mantissa_bits - exponent) << 52, inverse);
    const Doubles rel = zero ? none : error / size, units = error * inverse;
    beyond -= error > atol + rtol * size;
    s_abs += error;
    s_rel += rel;
    s_ulp += units;
    s_aa += a * a;
    s_dd += error * error;
    m_abs = error > m_abs ? error : m_abs;
    m_rel = rel > m_rel ? rel : m_rel;
    m_ulp = units > m_ulp ? units : m_ulp;
    lanes::store(error, absolute + i);
    lanes::store(rel, relative + i);
    lanes::store(units, ulp + i);
  }
  using lanes::largest, lanes::least, lanes::sum;
  out = {sum(s_abs),     sum(s_rel),      sum(s_ulp),     sum(s_aa),    sum(s_dd),
         largest(m_abs), largest(m_rel),  largest(m_ulp), least(x_low), largest(x_high),
         least(y_low),   largest(y_high), sum(differing), sum(beyond),  sum(zeros)};
  return true;
}

/// The same for a block against itself.
FUSELAB_LANES bool block_range(const double* x, double& aa, double& low, double& high) {
  if (!all_finite(x)) return false;
  Doubles s{}, least, largest;
  lanes::load(x, least);
  largest = least;
  for (int i = 0; i < kBlock; i += kLanes) {
    Doubles a;
    lanes::load(x + i, a);
    s += a * a;
    least = a < least ? a : least;
    largest = a > largest ? a : largest;
  }
  aa = lanes::sum(s);
  low = lanes::least(least);
  high = lanes::largest(largest);
  return true;
}

void merge(CannRange& range, double x_low, double x_high, double y_low, double y_high) {
  CannRange block;
  block.add(x_low, y_low);
  block.add(x_high, y_high);
  block.count = kBlock;
  range.add(block);
}

}  // namespace

void load_piece(const Tensor& t, std::int64_t begin, std::int64_t n, double* to) {
  const auto width = static_cast<std::int64_t>(size_of(t.dtype()));
  if (!t.contiguous()) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = t.get(begin + i);
    return;
  }
  const char* from = static_cast<const char*>(t.data()) + begin * width;
  const auto each = [&](auto bits, auto convert) {
    for (std::int64_t i = 0; i < n; ++i) {
      std::memcpy(&bits, from + i * width, sizeof bits);
      to[i] = convert(bits);
    }
  };
  switch (t.dtype()) {
    case DType::f16:
      return each(std::uint16_t{}, [](std::uint16_t v) { return static_cast<double>(from_f16(v)); });
    case DType::bf16:
      return each(std::uint16_t{}, [](std::uint16_t v) { return static_cast<double>(from_bf16(v)); });
    case DType::f32:
      return widen_f32(from, n, to);
    case DType::f64:
      return static_cast<void>(n > 0 ? std::memcpy(to, from, static_cast<std::size_t>(n * width)) : nullptr);
    default:
      for (std::int64_t i = 0; i < n; ++i) to[i] = load_double(t.dtype(), from + i * width);
  }
}

DType coarser(DType a, DType b) {
  if (!is_float(a)) return b;
  if (!is_float(b)) return a;
  const auto grain = [](DType t) { return ulp_of(t, 1.0); };
  return grain(a) >= grain(b) ? a : b;
}

PieceReader::PieceReader(const Tensor& a, const Tensor& b, const CompareLimits& limits)
    : a_(a),
      b_(b),
      atol_(std::max(limits.atol, 0.0)),
      rtol_(std::max(limits.rtol, 0.0)),
      unit_type_(coarser(a.dtype(), b.dtype())),
      integers_(!is_float(a.dtype()) && !is_float(b.dtype())),
      lanes_(is_float(a.dtype()) && is_float(b.dtype()) && unit_type_ != DType::f64) {}

bool PieceReader::same_memory(std::int64_t begin, std::int64_t n) const {
  if (a_.dtype() != b_.dtype() || !a_.contiguous() || !b_.contiguous()) return false;
  const auto width = static_cast<std::int64_t>(size_of(a_.dtype()));
  return std::memcmp(static_cast<const char*>(a_.data()) + begin * width, static_cast<const char*>(b_.data()) + begin * width,
                     static_cast<std::size_t>(n * width)) == 0;
}

void PieceReader::look(std::int64_t begin, std::int64_t n, const double* x, const double* y, Piece& p, Counts& counts) const {
  if (!lanes_) return look_plainly(begin, n, x, y, p, counts);
  const bool same = same_memory(begin, n);
  std::int64_t at = 0, equal = 0;
  for (; at + kBlock <= n; at += kBlock) {
    if (same && look_at_equal_block(begin + at, x + at, p))
      equal += kBlock;
    else if (same || !look_at_block(begin + at, x + at, y + at, p, counts))
      look_plainly(begin + at, kBlock, x + at, y + at, p, counts);
  }
  counts.absolute.add_zeros(equal);
  counts.relative.add_zeros(equal);
  counts.ulp.add_zeros(equal);
  look_plainly(begin + at, n - at, x + at, y + at, p, counts);
}

bool PieceReader::look_at_equal_block(std::int64_t begin, const double* x, Piece& p) {
  double aa = 0, low = 0, high = 0;
  if (!block_range(x, aa, low, high)) return false;
  p.aa += aa;
  merge(p.range, low, high, low, high);
  if (p.max_ulp < 0) p.max_ulp = 0, p.worst = begin;
  return true;
}

bool PieceReader::look_at_block(std::int64_t begin, const double* x, const double* y, Piece& p, Counts& counts) const {
  double absolute[kBlock], relative[kBlock], ulp[kBlock];
  BlockSums s;
  const FloatFormat format = float_format(unit_type_);
  if (!block_errors(x, y, {format.min_exponent, format.mantissa_bits}, atol_, rtol_, absolute, relative, ulp, s)) return false;
  merge(p.range, s.x_low, s.x_high, s.y_low, s.y_high);
  p.absolute += s.absolute;
  p.relative += s.relative;
  p.ulp += s.ulp;
  p.aa += s.aa;
  p.dd += s.dd;
  p.max_absolute = std::max(p.max_absolute, s.max_absolute);
  p.max_relative = std::max(p.max_relative, s.max_relative);
  p.differing += s.differing;
  p.beyond += s.beyond;
  if (s.max_ulp > p.max_ulp) {
    p.max_ulp = s.max_ulp;
    p.worst = begin + (std::find(ulp, ulp + kBlock, s.max_ulp) - ulp);
  }
  counts.absolute.add_zeros(s.zeros);
  counts.relative.add_zeros(s.zeros);
  counts.ulp.add_zeros(s.zeros);
  if (s.zeros == kBlock) return true;
  std::int16_t places[kBlock];  // of those that are not zero
  int n = 0;
  for (int i = 0; i < kBlock; ++i) {
    places[n] = static_cast<std::int16_t>(i);
    n += absolute[i] > 0;
  }
  for (int i = 0; i < n; ++i) {
    counts.absolute.add(absolute[places[i]]);
    counts.relative.add(relative[places[i]]);
    counts.ulp.add(ulp[places[i]]);
  }
  return true;
}

void PieceReader::look_plainly(std::int64_t begin, std::int64_t n, const double* x, const double* y, Piece& p,
                               Counts& counts) const {
  const bool floats = is_float(unit_type_);
  std::int64_t zeros = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double a = x[i], b = y[i];
    if (!std::isfinite(a) || !std::isfinite(b)) {
      if ((std::isnan(a) && std::isnan(b)) || a == b) {
        ++p.aligned;
      } else {
        ++p.misaligned;
        ++p.differing;
        if (p.first_misaligned < 0) p.first_misaligned = begin + i;
      }
      continue;
    }
    p.range.add(a, b);
    p.aa += a * a;
    // Integers past 2^53 differ where their doubles do not.
    const bool same = integers_ ? a_.get_int(begin + i) == b_.get_int(begin + i)
                                : std::bit_cast<std::int64_t>(a) == std::bit_cast<std::int64_t>(b);
    if (!same) ++p.differing;
    if (a == b && (same || !integers_)) {
      ++zeros;
      if (p.max_ulp < 0) p.max_ulp = 0, p.worst = begin + i;
      continue;
    }
    const double error = std::max(std::fabs(b - a), integers_ ? 1.0 : 0.0);
    const double relative = error / std::fabs(a), ulp = floats ? error / ulp_of(unit_type_, a) : error;
    p.absolute += error;
    p.relative += relative;
    p.ulp += ulp;
    p.dd += error * error;
    p.max_absolute = std::max(p.max_absolute, error);
    p.max_relative = std::max(p.max_relative, relative);
    if (ulp > p.max_ulp) p.max_ulp = ulp, p.worst = begin + i;
    if (error > atol_ + rtol_ * std::fabs(a)) ++p.beyond;
    counts.absolute.add(error);
    counts.relative.add(relative);
    counts.ulp.add(ulp);
  }
  counts.absolute.add_zeros(zeros);
  counts.relative.add_zeros(zeros);
  counts.ulp.add_zeros(zeros);
}

}  // namespace fuselab::numerics
