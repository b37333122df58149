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
    for (const char* name : {"sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erfc"}) add(name, 1);
    add("atan2", 2);
    add("fmod", 2);
    // exp(y log|x|) needs no more than plain f64 here: |y log|x|| stays below 104 where it matters.
    g.push_back({"pow",
                 DType::f32,
                 2,
                 "fl_pow_f32",
                 R"fl(
FL_INLINE f32x16 fl_pow_f32(f32x16 x, f32x16 y) {
  f64x16 a = fl_to_f64(x), b = fl_to_f64(y);
  f64x16 p = b * fl_log_f64(fl_abs(a));
  p = p > 1000.0 ? fl_f64(1000.0) : p < -1000.0 ? fl_f64(-1000.0) : p;
  f64x16 m = fl_exp_f64(p);
  m = fl_abs(a) == 1.0 ? fl_f64(1.0) : p == 1000.0 ? fl_f64(__builtin_inf()) : p == -1000.0 ? fl_f64(0.0) : m;
  return fl_to_f32(fl_pow_signs_f64(a, b, m));
}
)fl",
                 {"exp:f64", "log:f64", "_pow_signs:f64"}});
    return g;
  }();
  return group;
}

}  // namespace fuselab::codegen::vecmath
