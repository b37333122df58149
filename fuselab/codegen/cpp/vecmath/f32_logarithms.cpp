// Logarithms in f32.
//
// x = 2^e m with m in [sqrt(1/2), sqrt(2)), f = m - 1 exact; log(1+f) = f - f^2/2 + f^3 P(f) with the first two terms kept as a
// sum of two floats. The cut is a bit pattern, so the split takes only integer operations.
#include <string>

#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

namespace {

/// The text of log, log2 or log10: `result` makes y, right for ordinary x, from n, h and l, where log(x) = n log(2) + h + l.
std::string logarithm(const std::string& function, const std::string& result) {
  return R"fl(
FL_INLINE f32x16 )fl" +
         function + R"fl((f32x16 x) {
  i32x16 special = __builtin_convertvector(fl_bits(x), u32x16) - 0x00800000u >= 0x7f000000u;
  i32x16 b = fl_bits(x), bias = 0;
  bool any_special = fl_any(special);
  if (any_special) {
    i32x16 small = x < 0x1p-126f & x > 0.0f;
    b = small ? fl_bits(x * 0x1p24f) : b;
    bias = small ? fl_i32(-24) : fl_i32(0);
  }
  i32x16 e = (b - 0x3f3504f3) >> 23;
  f32x16 f = fl_float(b - (e << 23)) - 1.0f;
  f32x16 n = __builtin_convertvector(e + bias, f32x16);
  f32x16 l, h = fl_log_head_f32(f, l);
)fl" + result +
         R"fl(  if (any_special) {
    f32x16 edge = x == 0.0f ? fl_f32(-__builtin_inff()) : x < 0.0f ? fl_f32(__builtin_nanf("")) : x;
    y = special & !(x < 0x1p-126f & x > 0.0f) ? edge : y;
  }
  return y;
}
)fl";
}

}  // namespace

const Group& f32_logarithms() {
  static const std::string log = logarithm("fl_log_f32", R"fl(  f32x16 big = n * 0x1.62e400p-1f;
  f32x16 s = big + h;
  f32x16 y = s + ((h - (s - big)) + fl_fma(n, fl_f32(0x1.7f7d1cp-20f), l));
)fl");
  static const std::string log2 = logarithm("fl_log2_f32", R"fl(  f32x16 hl = h + l;
  l = (h - hl) + l;
  f32x16 ph = hl * 0x1.715476p+0f;
  f32x16 pl = fl_fma(hl, fl_f32(0x1.715476p+0f), -ph) + fl_fma(hl, fl_f32(0x1.4ae0c0p-26f), l * 0x1.715476p+0f);
  f32x16 s = n + ph;
  f32x16 y = s + ((ph - (s - n)) + pl);
)fl");
  static const std::string log10 = logarithm("fl_log10_f32", R"fl(  f32x16 hl = h + l;
  l = (h - hl) + l;
  f32x16 ph = hl * 0x1.bcb7b2p-2f;
  f32x16 pl = fl_fma(hl, fl_f32(0x1.bcb7b2p-2f), -ph) + fl_fma(hl, fl_f32(-0x1.5b235ep-27f), l * 0x1.bcb7b2p-2f);
  f32x16 big = n * 0x1.344200p-2f;
  f32x16 s = big + ph;
  f32x16 y = s + ((ph - (s - big)) + fl_fma(n, fl_f32(-0x1.95ec10p-19f), pl));
)fl");
  static const Group group = {
      // log(1 + f) = result + l for f in [sqrt(1/2) - 1, sqrt(2) - 1].
      {"_log_head",
       DType::f32,
       2,
       "fl_log_head_f32",
       R"fl(
FL_INLINE f32x16 fl_log_head_f32(f32x16 f, f32x16& l) {
  f32x16 p = fl_fma(f, fl_f32(0x1.146fe0p-4f), fl_f32(-0x1.ddff7cp-4f));
  p = fl_fma(p, f, fl_f32(0x1.e6bfecp-4f));
  p = fl_fma(p, f, fl_f32(-0x1.fc28fcp-4f));
  p = fl_fma(p, f, fl_f32(0x1.233ba6p-3f));
  p = fl_fma(p, f, fl_f32(-0x1.555c44p-3f));
  p = fl_fma(p, f, fl_f32(0x1.99a476p-3f));
  p = fl_fma(p, f, fl_f32(-0x1.000006p-2f));
  p = fl_fma(p, f, fl_f32(0x1.555548p-2f));
  f32x16 sq = f * f;
  f32x16 h = fl_fma(sq, fl_f32(-0.5f), f);
  f32x16 q = f * p;
  l = fl_fma(sq, q, fl_fma(sq, fl_f32(-0.5f), f - h)) + fl_fma(f, f, -sq) * (q - 0.5f);
  return h;
}
)fl",
       {}},
      {"log", DType::f32, 1, "fl_log_f32", log, {"_log_head"}},
      {"log2", DType::f32, 1, "fl_log2_f32", log2, {"_log_head"}},
      {"log10", DType::f32, 1, "fl_log10_f32", log10, {"_log_head"}},
      // 1 + x = u + c exactly; c is brought to the scale of u's mantissa and joins f.
      {"log1p",
       DType::f32,
       1,
       "fl_log1p_f32",
       R"fl(
FL_INLINE f32x16 fl_log1p_f32(f32x16 x) {
  f32x16 u = 1.0f + x;
  f32x16 c = x > 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
  i32x16 e = (fl_bits(u) - 0x3f3504f3) >> 23;
  f32x16 f = fl_float(fl_bits(u) - (e << 23)) - 1.0f;
  c = c * fl_float(0x3f800000 - ((e > 126 ? 126 : e) << 23));
  f32x16 g = f + c;
  c = (f - g) + c;
  f32x16 n = __builtin_convertvector(e, f32x16);
  f32x16 l, h = fl_log_head_f32(g, l);
  l = fl_fma(c, fl_fma(g, g, 1.0f - g), l);
  f32x16 big = n * 0x1.62e400p-1f;
  f32x16 s = big + h;
  f32x16 y = s + ((h - (s - big)) + fl_fma(n, fl_f32(0x1.7f7d1cp-20f), l));
  if (fl_any(!(x > -1.0f & x < __builtin_inff()))) {
    f32x16 edge = x < -1.0f ? fl_f32(__builtin_nanf("")) : x == -1.0f ? fl_f32(-__builtin_inff()) : x;
    y = x > -1.0f & x < __builtin_inff() ? y : edge;
  }
  return fl_with_sign(y, x);
}
)fl",
       {"_log_head"}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
