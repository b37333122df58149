// f32 functions that are rarely used: the f64 function, rounded once, so the result is nearly always the nearest f32.
#include <deque>

#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

const Group& f32_through_f64() {
  static const Group group = [] {
    static std::deque<std::string> kept;  // the Functions hold views of these
    const auto keep = [](std::string text) { return std::string_view(kept.emplace_back(std::move(text))); };
    Group g;
    const auto add = [&](const std::string& name, int args) {
      const std::string symbol = "fl_" + name + "_f32";
      const std::string head = args == 1 ? "(f32x16 x)" : "(f32x16 x, f32x16 y)",
                        call = args == 1 ? "(fl_to_f64(x))" : "(fl_to_f64(x), fl_to_f64(y))";
      g.push_back({keep(name),
                   DType::f32,
                   args,
                   keep(symbol),
                   keep("\nFL_INLINE f32x16 " + symbol + head + " { return fl_to_f32(fl_" + name + "_f64" + call + "); }\n"),
                   {keep(name + ":f64")}});
    };
    for (const char* name : {"sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh"}) add(name, 1);
    add("fmod", 2);
    // e^(-a^2) e^(a^2) erfc(a) for a = |x|, as the f64 text (f64_error_functions.cpp) with polynomials that suffice for f32:
    // 2^-33 off in all. a^2 is exact in f64.
    g.push_back({"erfc",
                 DType::f32,
                 1,
                 "fl_erfc_f32",
                 R"fl(
FL_INLINE f32x16 fl_erfc_f32(f32x16 x) {
  f64x16 a = fl_to_f64(fl_abs(x));
  a = a > 10.2 ? fl_f64(10.2) : a;
  f64x16 c = 0x1.ae147ae147ae1p-2 * a;
  f64x16 w = 1.0 / (1.0 + c);
  f64x16 v = c * w;
  f64x16 s = v - 0.40625;
  f64x16 p = fl_fma(s, fl_f64(-0x1.3b511a3ef493ep-7), fl_f64(-0x1.4ff7752c6f811p-6));
  p = fl_fma(p, s, fl_f64(0x1.08d1138ae8774p-6));
  p = fl_fma(p, s, fl_f64(0x1.7330e7e3820a5p-5));
  p = fl_fma(p, s, fl_f64(-0x1.3d109e5d82791p-7));
  p = fl_fma(p, s, fl_f64(-0x1.5bb4ff6f9d5ccp-4));
  p = fl_fma(p, s, fl_f64(0x1.ae20fc0dbab17p-9));
  p = fl_fma(p, s, fl_f64(0x1.739297aa49915p-3));
  p = fl_fma(p, s, fl_f64(-0x1.3232a83741e26p-4));
  p = fl_fma(p, s, fl_f64(-0x1.c98b8296852f1p-2));
  p = fl_fma(p, s, fl_f64(0x1.0357a400c9841p+0));
  p = fl_fma(p, s, fl_f64(-0x1.35fd939360d93p+0));
  f64x16 u = a * a;
  f64x16 shifted = fl_fma(u, fl_f64(-0x1.71547652b82fep+0), fl_f64(0x1.8p52));
  f64x16 r = fl_fma(shifted - 0x1.8p52, fl_f64(-0x1.62e42fefa39efp-1), -u);
  f64x16 e = fl_fma(r, fl_f64(0x1.a1ce2f0664262p-13), fl_f64(0x1.6d99065cc1c15p-10));
  e = fl_fma(e, r, fl_f64(0x1.111064cb86609p-7));
  e = fl_fma(e, r, fl_f64(0x1.55547d2d14543p-5));
  e = fl_fma(e, r, fl_f64(0x1.555555b9a3f02p-3));
  e = fl_fma(e, r, fl_f64(0x1.00000044c0c2dp-1));
  e = fl_fma(e, r, fl_f64(0x1.ffffffffc50d1p-1));
  e = fl_float(fl_bits(fl_fma(e, r, fl_f64(1.0))) + (fl_bits(shifted) << 52));
  f32x16 y = fl_to_f32(fl_fma(p, v, fl_f64(1.0)) * w * e);
  f32x16 left = fl_to_f32(2.0 - fl_fma(p, v, fl_f64(1.0)) * w * e);
  return x < 0.0f ? left : y;
}
)fl",
                 {}});
    return g;
  }();
  return group;
}

}  // namespace fuselab::codegen::vecmath
