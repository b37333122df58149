#include "fuselab/core/dtype.h"

#include <string>

#include "fuselab/core/error.h"

namespace fuselab {
namespace {

constexpr std::string_view kNames[kDTypeCount] = {"f16", "bf16", "f32", "f64", "i8", "u8", "i16", "i32", "i64", "bool"};

DType promote_floats(DType a, DType b) {
  if (a == b) return a;
  if (is_low_precision(a) && is_low_precision(b)) return DType::f32;  // f16 and bf16 do not contain each other
  return a > b ? a : b;                                               // the enum is ordered: 16 bits, f32, f64
}

DType promote_ints(DType a, DType b) {
  if (a == b) return a;
  if ((a == DType::u8 && b == DType::i8) || (a == DType::i8 && b == DType::u8)) return DType::i16;
  return size_of(a) >= size_of(b) ? a : b;
}

}  // namespace

std::string_view name(DType t) { return kNames[static_cast<int>(t)]; }

DType parse_dtype(std::string_view text) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kNames[i] == text) return static_cast<DType>(i);
  }
  std::string known;
  for (auto n : kNames) known += (known.empty() ? "" : " ") + std::string(n);
  fail("dtype.unknown", "unknown element type '{}'; use one of: {}", text, known);
}

DType promote(DType a, DType b) {
  if (is_float(a) && is_float(b)) return promote_floats(a, b);
  if (is_float(a)) return a;
  if (is_float(b)) return b;
  if (is_bool(a)) return b;
  if (is_bool(b)) return a;
  return promote_ints(a, b);
}

}  // namespace fuselab
