// f16 and bf16: the f32 function, then the few inputs where rounding twice would miss.
//
// A correctly rounded f32 value can land exactly in the middle of two f16 values although the exact one lies to a side; rounding
// to even then goes wrong half of the time. For the inputs listed (found by trying all 2^16 against MPFR) the result is the f32
// beside the middle, on the right side. f32 results of other inputs are not touched, and the f32 functions keep their error
// bound.
#include <fmt/format.h>

#include <deque>

#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {
namespace {

enum class Parity { none, odd, even };

struct Repair {
  std::string_view name;
  DType type;
  Parity parity;                              ///< of the function: the rows then name positive inputs only
  std::vector<std::pair<float, float>> rows;  ///< input, f32 result
};

const std::vector<Repair>& repairs() {
  static const std::vector<Repair> all = {
      {"acos",
       DType::f16,
       Parity::none,
       {{-0x1.2c0000p-18f, 0x1.922002p+0f}, {-0x1.2bc000p-4f, 0x1.a4dffep+0f}, {-0x1.1d0000p-1f, 0x1.14a002p+1f}}},
      {"acosh", DType::f16, Parity::none, {{0x1.390000p+0f, 0x1.4fa002p-1f}}},
      {"asinh", DType::f16, Parity::odd, {{0x1.af4000p-3f, 0x1.ac2002p-3f}, {0x1.c7c000p+3f, 0x1.acdffep+1f}}},
      {"atan",
       DType::f16,
       Parity::odd,
       {{0x1.d14000p-6f, 0x1.d12002p-6f}, {0x1.ad4000p-3f, 0x1.a72002p-3f}, {0x1.9b8000p+2f, 0x1.6aa002p+0f}}},
      {"cos", DType::f16, Parity::even, {{0x1.df0000p-5f, 0x1.ff2002p-1f}}},
      {"cosh", DType::f16, Parity::even, {{0x1.000000p-5f, 0x1.002002p+0f}}},
      {"erf", DType::f16, Parity::odd, {{0x1.848000p-10f, 0x1.b65ffep-10f}}},
      {"erfc", DType::f16, Parity::none, {{0x1.c5c000p-13f, 0x1.ffdffep-1f}, {-0x1.c5c000p-12f, 0x1.002002p+0f}}},
      {"exp", DType::f16, Parity::none, {{0x1.de4000p-8f, 0x1.01dffep+0f}, {0x1.73c000p-6f, 0x1.05dffep+0f}}},
      {"exp2", DType::f16, Parity::none, {{0x1.714000p-11f, 0x1.002002p+0f}}},
      {"expm1", DType::f16, Parity::none, {{0x1.6a0000p-11f, 0x1.6a2002p-11f}}},
      {"gelu",
       DType::f16,
       Parity::none,
       {{0x1.000000p-24f, 0x1.000002p-25f},
        {0x1.954000p-12f, 0x1.955ffep-13f},
        {0x1.5f0000p-10f, 0x1.5f5ffep-11f},
        {-0x1.954000p-12f, -0x1.952002p-13f},
        {-0x1.5f0000p-10f, -0x1.5ea002p-11f}}},
      {"gelu_tanh",
       DType::f16,
       Parity::none,
       {{0x1.5f0000p-10f, 0x1.5f5ffep-11f},
        {0x1.69c000p-2f, 0x1.cda002p-3f},
        {-0x1.954000p-12f, -0x1.952002p-13f},
        {-0x1.69c000p-2f, -0x1.05dffep-3f}}},
      {"hardswish",
       DType::f16,
       Parity::none,
       {{0x1.000000p-24f, 0x1.000002p-25f}, {0x1.004000p-2f, 0x1.15a002p-3f}, {0x1.ffc000p-1f, 0x1.552002p-1f}}},
      {"log", DType::f16, Parity::none, {{0x1.5e0000p-8f, -0x1.4edffep+2f}}},
      {"log10",
       DType::f16,
       Parity::none,
       {{0x1.e3c000p-3f, -0x1.40dffep-1f},
        {0x1.fe0000p-3f, -0x1.352002p-1f},
        {0x1.f84000p+6f, 0x1.0cdffep+1f},
        {0x1.740000p+11f, 0x1.bca002p+1f},
        {0x1.674000p+13f, 0x1.03dffep+2f}}},
      {"log1p", DType::f16, Parity::none, {{0x1.80c000p-8f, 0x1.7fa002p-8f}, {-0x1.7f4000p-8f, -0x1.805ffep-8f}}},
      {"log_sigmoid", DType::f16, Parity::none, {{0x1.0c0000p-14f, -0x1.62dffep-1f}}},
      {"mish",
       DType::f16,
       Parity::none,
       {{0x1.a14000p-10f, 0x1.f52002p-11f},
        {-0x1.efc000p-12f, -0x1.295ffep-12f},
        {-0x1.400000p-11f, -0x1.7fdffep-12f},
        {-0x1.294000p+3f, -0x1.c22002p-11f}}},
      {"sigmoid",
       DType::f16,
       Parity::none,
       {{0x1.800000p-9f, 0x1.005ffep-1f},
        {0x1.c00000p-8f, 0x1.00dffep-1f},
        {0x1.600000p-7f, 0x1.015ffep-1f},
        {-0x1.800000p-10f, 0x1.ffa002p-2f},
        {-0x1.400000p-9f, 0x1.ff6002p-2f},
        {-0x1.c00000p-9f, 0x1.ff2002p-2f},
        {-0x1.200000p-8f, 0x1.fee002p-2f},
        {-0x1.600000p-8f, 0x1.fea002p-2f},
        {-0x1.e00000p-8f, 0x1.fe2002p-2f}}},
      {"silu", DType::f16, Parity::none, {{0x1.000000p-24f, 0x1.000002p-25f}}},
      {"sin", DType::f16, Parity::odd, {{0x1.acc000p-3f, 0x1.a9a002p-3f}, {0x1.2c0000p+8f, -0x1.ffdffep-1f}}},
      {"sinh", DType::f16, Parity::odd, {{0x1.3c8000p+1f, 0x1.78a002p+2f}}},
      {"softplus", DType::f16, Parity::none, {{-0x1.0c0000p-14f, 0x1.62dffep-1f}}},
      {"tan",
       DType::f16,
       Parity::odd,
       {{0x1.250000p-5f, 0x1.252002p-5f}, {0x1.7b4000p+6f, 0x1.445ffep-1f}, {0x1.d28000p+14f, 0x1.fa2002p+2f}}},
  };
  return all;
}

std::string text_of(const Repair& r, const std::string& symbol) {
  std::string text = fmt::format("\nFL_INLINE f32x16 {}(f32x16 x) {{\n  f32x16 y = fl_{}_f32(x), a = {};\n", symbol, r.name,
                                 r.parity == Parity::none ? "x" : "fl_abs(x)");
  for (const auto& [input, output] : r.rows) {
    const std::string value = r.parity == Parity::odd
                                  ? fmt::format("fl_float(fl_bits(fl_f32({:a}f)) ^ (fl_bits(x) & (i32)0x80000000))", output)
                                  : fmt::format("fl_f32({:a}f)", output);
    text += fmt::format("  y = a == {:a}f ? {} : y;\n", input, value);
  }
  return text + "  return y;\n}\n";
}

/// x / 2 + (a little) x^2 for subnormal bf16 x: the middle of two bf16 values when x is odd, and a little more.
std::string half_text(const std::string& name) {
  return fmt::format(R"fl(
FL_INLINE f32x16 fl_{0}_bf16(f32x16 x) {{
  f32x16 y = fl_{0}_f32(x);
  return fl_abs(x) < 0x1p-125f & x != 0.0f ? fl_float(fl_bits(y) + (x > 0.0f ? fl_i32(1) : fl_i32(-1))) : y;
}}
)fl",
                     name);
}

}  // namespace

const Group& low_precision() {
  static const Group group = [] {
    static std::deque<std::string> kept;  // the Functions hold views of these
    const auto keep = [](std::string text) { return std::string_view(kept.emplace_back(std::move(text))); };
    Group g;
    for (const Repair& r : repairs()) {
      const std::string symbol = fmt::format("fl_{}_{}", r.name, name(r.type));
      g.push_back({r.name, r.type, 1, keep(symbol), keep(text_of(r, symbol)), {keep(std::string(r.name) + ":f32")}});
    }
    for (const char* half : {"silu", "gelu", "gelu_tanh", "hardswish"}) {
      g.push_back({half,
                   DType::bf16,
                   1,
                   keep(fmt::format("fl_{}_bf16", half)),
                   keep(half_text(half)),
                   {keep(std::string(half) + ":f32")}});
    }
    return g;
  }();
  return group;
}

}  // namespace fuselab::codegen::vecmath
