// Logarithms in f32.
//
// x = 2^e m with m in [sqrt(1/2), sqrt(2)), f = m - 1 exact; log(1+f) = f - f^2/2 + f^3 P(f) with the first two terms kept as a sum of
// two floats. The cut is a bit pattern, so the split takes only integer operations.
#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

const Group& f32_logarithms() {
  static const Group group = {
      {"log", DType::f32, 1, "fl_log_f32", R"fl(
FL_INLINE f32x16 fl_log_f32(f32x16 x) {
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
  f32x16 l = fl_fma(sq, q, fl_fma(sq, fl_f32(-0.5f), f - h)) + fl_fma(f, f, -sq) * (q - 0.5f);
  f32x16 big = n * 0x1.62e400p-1f;
  f32x16 s = big + h;
  f32x16 y = s + ((h - (s - big)) + fl_fma(n, fl_f32(0x1.7f7d1cp-20f), l));
  if (any_special) {
    f32x16 edge = x == 0.0f ? fl_f32(-__builtin_inff()) : x < 0.0f ? fl_f32(__builtin_nanf("")) : x;
    y = special & !(x < 0x1p-126f & x > 0.0f) ? edge : y;
  }
  return y;
}
)fl",
       {}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
