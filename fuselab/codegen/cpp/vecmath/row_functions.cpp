// What softmax-shaped rows need, where a sum over the row hides the last half ULP of exp; and functions made of a corrected
// quotient.
#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

const Group& row_functions() {
  static const Group group = {
      // exp of a term of a sum: 0.9 ULP where exp has 0.54, in two thirds of its time. e^x = 2^n (1 + r + r^2 q(r)), |r| <=
      // ln2/2.
      {"exp_sum",
       DType::f32,
       1,
       "fl_exp_sum_f32",
       R"fl(
FL_INLINE f32x16 fl_exp_sum_f32(f32x16 x) {
  const f32x16 shifted = fl_fma(x, fl_f32(0x1.715476p+0f), fl_f32(0x1.8p23f));
  const f32x16 n = shifted - 0x1.8p23f;
  const f32x16 r = fl_fma(n, fl_f32(0x1.05c610p-29f), fl_fma(n, fl_f32(-0x1.62e430p-1f), x));
  f32x16 q = fl_fma(r, fl_f32(0x1.6d5f60p-10f), fl_f32(0x1.123c22p-7f));
  q = fl_fma(q, r, fl_f32(0x1.5554d8p-5f));
  q = fl_fma(q, r, fl_f32(0x1.55548ep-3f));
  q = fl_fma(q, r, fl_f32(0.5f));
  const f32x16 s = 1.0f + fl_fma(r * r, q, r);
  f32x16 y = fl_float(fl_bits(s) + (fl_bits(shifted) << 23));
  if (fl_any(!(fl_abs(x) <= 87.0f))) {  // results near or beyond the ends of the range: 2^n in two factors
    i32x16 k = fl_bits(shifted) - 0x4b400000;
    k = k < -252 ? fl_i32(-252) : k > 254 ? fl_i32(254) : k;
    const i32x16 h = k >> 1;
    const f32x16 edge = s * fl_float((h + 127) << 23) * fl_float((k - h + 127) << 23);
    y = x != x ? x : x < -104.0f ? fl_f32(0.0f) : x > 89.0f ? fl_f32(__builtin_inff()) : edge;
  }
  return y;
}
)fl",
       {}},
      // a / s for a row's sum s: one division per row (the compiler takes 1 / s out of the loop), then the quotient is corrected
      // with its exact remainder (Markstein), which rounds as division does while nothing underflows. 1 <= s, 0 <= a <= s or NaN.
      {"quotient",
       DType::f32,
       2,
       "fl_quotient_f32",
       R"fl(
FL_INLINE f32x16 fl_quotient_f32(f32x16 a, f32x16 s) {
  const f32x16 inverse = 1.0f / s;
  const f32x16 q = a * inverse;
  return fl_fma(fl_fma(-q, s, a), inverse, q);
}
)fl",
       {}},
      // x times the quotient, as eager: 0 from -3 down (NaN at -inf), x from 3 up.
      {"hardswish",
       DType::f32,
       1,
       "fl_hardswish_f32",
       R"fl(
FL_INLINE f32x16 fl_hardswish_f32(f32x16 x) {
  f32x16 a = x + 3.0f;
  a = a <= 0.0f ? fl_f32(0.0f) : a;
  a = a > 6.0f ? fl_f32(6.0f) : a;
  return x * fl_quotient_f32(a, fl_f32(6.0f));
}
)fl",
       {"quotient"}},
      // gelu of an f32 value whose result is only ever rounded to bf16: 2^-16 off at most, an eighth of a percent of bf16's half
      // ULP.
      // As fl_gelu_f32 (f32_error_functions.cpp) with shorter polynomials. A bf16 argument takes the correctly rounding form
      // instead.
      {"_gelu_to",
       DType::bf16,
       1,
       "fl_gelu_to_bf16",
       R"fl(
FL_INLINE f32x16 fl_gelu_to_bf16(f32x16 x) {
  f32x16 t = fl_abs(x);
  t = t > 15.0f ? fl_f32(15.0f) : t;
  const f32x16 w = 1.0f / (t + 0x1.aaaaaap+1f);
  const f32x16 v = t * w;
  f32x16 p = fl_fma(v, fl_f32(0x1.047eb0p-2f), fl_f32(-0x1.1e83cep-1f));
  p = fl_fma(p, v, fl_f32(-0x1.080248p-2f));
  p = fl_fma(p, v, fl_f32(0x1.08141cp+1f));
  p = fl_fma(p, v, fl_f32(-0x1.6220cep+1f));
  p = fl_fma(p, v, fl_f32(0x1.aaabb6p+0f)) * w;
  const f32x16 sq = t * t;
  const f32x16 shifted = fl_fma(sq, fl_f32(-0x1.715476p-1f), fl_f32(0x1.8p23f));
  const f32x16 n = shifted - 0x1.8p23f;
  const f32x16 r = fl_fma(sq, fl_f32(-0.5f), n * -0x1.62e430p-1f);
  f32x16 e = fl_fma(r, fl_f32(0x1.521498p-5f), fl_f32(0x1.572598p-3f));
  e = fl_fma(e, r, fl_f32(0x1.0006fap-1f));
  e = fl_fma(fl_fma(r * r, e, r), p, p);
  const f32x16 g = x * (e * fl_float((fl_bits(shifted) << 23) + 0x3f800000));
  f32x16 y = x > 0.0f ? x - g : g;
  if (fl_any(!(fl_abs(x) <= 12.0f))) {
    const f32x16 edge = x * fl_scale_f32(e * 0x1p64f, fl_f32(0.0f), fl_bits(shifted) - 0x4b400000) * 0x1p-64f;
    y = x > 12.0f ? x : x < -14.5f ? x * 0.0f : x < -12.0f ? edge : y;
  }
  return y;
}
)fl",
       {"_scale:f32"}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
