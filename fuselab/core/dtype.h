// Element types, and what is asked of them everywhere: size, kind, promotion.
#pragma once
#include <cstdint>
#include <string_view>

namespace fuselab {

enum class DType : std::uint8_t { f16, bf16, f32, f64, i8, u8, i16, i32, i64, boolean };
inline constexpr int kDTypeCount = 10;

/// "f16" "bf16" "f32" "f64" "i8" "u8" "i16" "i32" "i64" "bool": the names of the text form.
std::string_view name(DType t);
/// The type of that name; throws Error("dtype.unknown") listing what exists.
DType parse_dtype(std::string_view text);

constexpr int size_of(DType t) {
  constexpr int kSize[] = {2, 2, 4, 8, 1, 1, 2, 4, 8, 1};
  return kSize[static_cast<int>(t)];
}
constexpr bool is_float(DType t) { return t <= DType::f64; }
constexpr bool is_low_precision(DType t) { return t == DType::f16 || t == DType::bf16; }
constexpr bool is_int(DType t) { return t > DType::f64 && t != DType::boolean; }
constexpr bool is_bool(DType t) { return t == DType::boolean; }

/// PyTorch's promotion of two tensor dtypes (f16+bf16 -> f32, u8+i8 -> i16, int+float -> the float, bool lowest).
DType promote(DType a, DType b);

/// The type a fused block computes in (R1): f16 and bf16 in f32, everything else in itself.
constexpr DType compute_type(DType t) { return is_low_precision(t) ? DType::f32 : t; }

}  // namespace fuselab
