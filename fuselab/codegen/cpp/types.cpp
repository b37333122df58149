#include "fuselab/codegen/cpp/types.h"

#include <fmt/format.h>

#include <cmath>

namespace fuselab::codegen::cpp {

std::string memory_type(DType t) {
  switch (t) {
    case DType::bf16:
      return "u16";
    case DType::boolean:
      return "u8";
    default:
      return std::string(name(t));
  }
}

std::string vector_type(DType t) {
  if (t == DType::boolean) return "i32x16";
  return t == DType::bf16 ? "u16x16" : std::string(name(t)) + "x16";
}

std::string memory_vector(DType t) { return t == DType::boolean ? "u8x16" : vector_type(t); }

std::string literal(const Scalar& v, DType t) {
  const bool truth = std::holds_alternative<bool>(v) && std::get<bool>(v);
  double d = 0;
  std::int64_t i = 0;
  if (const auto* x = std::get_if<double>(&v)) {
    d = *x;
    i = std::abs(d) < 9.2e18 ? static_cast<std::int64_t>(d) : 0;
  } else {
    i = std::holds_alternative<bool>(v) ? truth : std::get<std::int64_t>(v);
    d = static_cast<double>(i);
  }
  if (is_bool(t)) return (std::holds_alternative<double>(v) ? d != 0 : i != 0) ? "-1" : "0";
  if (!is_float(t)) {
    switch (t) {
      case DType::i8:
        i = static_cast<std::int8_t>(i);  // NOLINT(bugprone-signed-char-misuse): a number, not a character
        break;
      case DType::u8:
        i = static_cast<std::uint8_t>(i);
        break;
      case DType::i16:
        i = static_cast<std::int16_t>(i);
        break;
      case DType::i32:
        i = static_cast<std::int32_t>(i);
        break;
      default:
        break;
    }
    return i == INT64_MIN   ? "(-9223372036854775807l - 1)"
           : i == INT32_MIN ? "(-2147483647 - 1)"
                            : fmt::format("{}{}", i, t == DType::i64 ? "l" : "");
  }
  if (t != DType::f64) {
    if (const auto* whole = std::get_if<std::int64_t>(&v)) d = static_cast<double>(static_cast<float>(*whole));
    d = static_cast<double>(static_cast<float>(d));
  }
  const char* suffix = t == DType::f64 ? "" : "f";
  if (std::isnan(d)) return fmt::format("__builtin_nan{}(\"\")", suffix);
  if (std::isinf(d)) return fmt::format("{}__builtin_inf{}()", d < 0 ? "-" : "", suffix);
  if (d == std::floor(d) && std::abs(d) < 1e6 && !(d == 0 && std::signbit(d)))
    return fmt::format("{}.0{}", static_cast<std::int64_t>(d), suffix);
  return fmt::format("{:a}{}", d, suffix);
}

std::string splat(const std::string& scalar, DType t) { return fmt::format("({})({})", vector_type(t), scalar); }

std::string widen_mask(const std::string& mask, DType t) {
  switch (size_of(t)) {
    case 8:
      return fmt::format("__builtin_convertvector({}, i64x16)", mask);
    case 2:
      return fmt::format("__builtin_convertvector({}, i16x16)", mask);
    case 1:
      return is_bool(t) ? mask : fmt::format("__builtin_convertvector({}, i8x16)", mask);
    default:
      return mask;
  }
}

std::string select(const std::string& c, const std::string& a, const std::string& b, DType t) {
  return fmt::format("({} ? {} : {})", widen_mask(c, t), a, b);
}

namespace {

std::string to_f32(const std::string& v, DType from, Used& used) {
  switch (from) {
    case DType::f32:
      return v;
    case DType::bf16:
      used.insert("bf16");
      return fmt::format("fl_f32_from_bf16({})", v);
    case DType::f16:
      used.insert("f16");
      return fmt::format("fl_f32_from_f16({})", v);
    case DType::boolean:
      return fmt::format("__builtin_convertvector({} & 1, f32x16)", v);
    default:
      return fmt::format("__builtin_convertvector({}, f32x16)", v);
  }
}

}  // namespace

std::string convert(const std::string& v, DType from, DType to, Used& used) {
  if (from == to) return v;
  if (is_bool(to)) {
    if (from == DType::bf16 || from == DType::f16) return convert(to_f32(v, from, used), DType::f32, to, used);
    return fmt::format("__builtin_convertvector({} != {}, i32x16)", v, splat("0", from));
  }
  if (to == DType::bf16) {
    used.insert("bf16");
    return fmt::format("fl_bf16_from_f32({})", to_f32(v, from, used));
  }
  if (to == DType::f16) return fmt::format("__builtin_convertvector({}, f16x16)", to_f32(v, from, used));
  if (to == DType::f32) return to_f32(v, from, used);
  if (is_low_precision(from)) return convert(to_f32(v, from, used), DType::f32, to, used);
  if (from == DType::boolean) return fmt::format("__builtin_convertvector({} & 1, {})", v, vector_type(to));
  if (is_float(from) && is_int(to)) {
    // Out of range a C++ conversion is undefined; the vector instructions answer with the smallest integer, narrow types take its
    // low bits.
    used.insert("to_int");
    const std::string wide = to == DType::i64 ? "i64" : "i32";
    const std::string whole = fmt::format("fl_to_{}({})", wide, v);
    return to == DType::i64 || to == DType::i32 ? whole : fmt::format("__builtin_convertvector({}, {})", whole, vector_type(to));
  }
  return fmt::format("__builtin_convertvector({}, {})", v, vector_type(to));
}

}  // namespace fuselab::codegen::cpp
