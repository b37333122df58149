// f16 and bf16 as bits: exact widening, and narrowing with one correct rounding (to nearest, ties to even).
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "fuselab/core/dtype.h"

namespace fuselab {

namespace detail {

/// A double rounded once to a format of `kExp` exponent and `kMant` stored mantissa bits. NaN keeps its sign and the top
/// of its payload and becomes quiet; overflow gives infinity; subnormals are rounded at their own grid.
template <int kExp, int kMant>
inline std::uint16_t narrow(double value) {
  constexpr int kBias = (1 << (kExp - 1)) - 1;
  constexpr std::uint16_t kInf = static_cast<std::uint16_t>(((1 << kExp) - 1) << kMant);
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 63) << 15);
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff);
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52) - 1);
  if (exponent == 0x7ff) {
    if (mantissa == 0) return sign | kInf;
    return static_cast<std::uint16_t>(sign | kInf | (1 << (kMant - 1)) | (mantissa >> (52 - kMant)));
  }
  const int e = exponent - 1023;
  if (e > kBias) return sign | kInf;
  if (e < -kBias - kMant) return sign;  // below half of the smallest subnormal; a double's own subnormals too
  // Bits to drop: the normal amount, or more when the result is subnormal.
  const int lost = e < 1 - kBias ? 52 - kMant + (1 - kBias - e) : 52 - kMant;
  const std::uint64_t full = mantissa | (std::uint64_t{1} << 52);
  const std::uint64_t kept = full >> lost;
  const std::uint64_t rest = full & ((std::uint64_t{1} << lost) - 1);
  const std::uint64_t half = std::uint64_t{1} << (lost - 1);
  const std::uint64_t rounded = kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
  // A carry out of the mantissa runs into the exponent field, which is what IEEE wants, up to infinity.
  const std::uint64_t base = e < 1 - kBias ? 0 : static_cast<std::uint64_t>(e + kBias - 1) << kMant;
  return static_cast<std::uint16_t>(sign | (base + rounded));
}

}  // namespace detail

inline std::uint16_t to_f16(double value) { return detail::narrow<5, 10>(value); }
inline std::uint16_t to_bf16(double value) { return detail::narrow<8, 7>(value); }

inline float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
inline float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float tiny = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal: a multiple of 2^-24, exact
  return sign ? -tiny : tiny;
}

/// `value` rounded once to float type `t` and widened again; exact types return it unchanged.
inline double round_to(DType t, double value) {
  switch (t) {
    case DType::f16:
      return from_f16(to_f16(value));
    case DType::bf16:
      return from_bf16(to_bf16(value));
    case DType::f32:
      return static_cast<float>(value);
    default:
      return value;
  }
}

/// Properties of a float type as doubles; integers and bool count as exact.
struct FloatFormat {
  int mantissa_bits;  ///< stored: 10, 7, 23, 52
  int min_exponent;   ///< of the smallest normal: -14, -126, -126, -1022
  double max_finite;
};
inline FloatFormat float_format(DType t) {
  switch (t) {
    case DType::f16:
      return {10, -14, 65504.0};
    case DType::bf16:
      return {7, -126, 0x1.fep127};
    case DType::f32:
      return {23, -126, std::numeric_limits<float>::max()};
    default:
      return {52, -1022, std::numeric_limits<double>::max()};
  }
}

/// The distance between neighbouring values of float type `t` at |value|: 2^(exponent - mantissa bits), the subnormals' grid near
/// 0. 0 for integers and bool; infinity for infinity and NaN.
inline double ulp_of(DType t, double value) {
  if (!is_float(t)) return 0;
  if (!(std::fabs(value) <= std::numeric_limits<double>::max())) return std::numeric_limits<double>::infinity();
  const FloatFormat format = float_format(t);
  // The exponent field of a double subnormal is 0, which the minimum below raises.
  const int exponent = static_cast<int>((std::bit_cast<std::uint64_t>(value) >> 52) & 0x7ff) - 1023;
  const int unit = (exponent > format.min_exponent ? exponent : format.min_exponent) - format.mantissa_bits;
  if (unit < -1022) return std::ldexp(1.0, unit);
  return std::bit_cast<double>(static_cast<std::uint64_t>(unit + 1023) << 52);
}

}  // namespace fuselab
