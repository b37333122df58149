// erf, erfc and gelu in f64.
#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

const Group& f64_error_functions() {
  static const Group group = {
      // e^(a^2) erfc(a) for 0 <= a <= 27.5: w (1 + v P(v - 0.46)), w = 1 / (1 + 0.42 a), v = 1 - w. Centred, so that nothing
      // cancels.
      {"_erfcx",
       DType::f64,
       1,
       "fl_erfcx_f64",
       R"fl(
FL_INLINE f64x16 fl_erfcx_f64(f64x16 a) {
  f64x16 c = 0x1.ae147ae147ae1p-2 * a;
  f64x16 w = 1.0 / (1.0 + c);
  f64x16 v = c * w;
  f64x16 s = v - 0.4609375;
  f64x16 p = fl_fma(s, fl_f64(0x1.3b122b26fe088p-7), fl_f64(-0x1.75d54e9a26245p-8));
  p = fl_fma(p, s, fl_f64(-0x1.35e351a4ec245p-6));
  p = fl_fma(p, s, fl_f64(0x1.bf86d2f118fd6p-9));
  p = fl_fma(p, s, fl_f64(0x1.522835decc6c2p-6));
  p = fl_fma(p, s, fl_f64(0x1.105057e573eaep-7));
  p = fl_fma(p, s, fl_f64(-0x1.b123cb36f6be2p-7));
  p = fl_fma(p, s, fl_f64(-0x1.36f60fc004653p-6));
  p = fl_fma(p, s, fl_f64(-0x1.e73000586a5b8p-11));
  p = fl_fma(p, s, fl_f64(0x1.6396dc99e3f9fp-6));
  p = fl_fma(p, s, fl_f64(0x1.1ac9212fd4a2ep-6));
  p = fl_fma(p, s, fl_f64(-0x1.0718639d66d16p-6));
  p = fl_fma(p, s, fl_f64(-0x1.0fd2a3230b356p-5));
  p = fl_fma(p, s, fl_f64(0x1.1b79ae7225eadp-8));
  p = fl_fma(p, s, fl_f64(0x1.a449dc3c9c11dp-5));
  p = fl_fma(p, s, fl_f64(0x1.746eba0f5c7c0p-7));
  p = fl_fma(p, s, fl_f64(-0x1.5ae64be849083p-4));
  p = fl_fma(p, s, fl_f64(-0x1.956a3bec88285p-6));
  p = fl_fma(p, s, fl_f64(0x1.6d8ff33a091cdp-3));
  p = fl_fma(p, s, fl_f64(-0x1.20c18a85f6df1p-5));
  p = fl_fma(p, s, fl_f64(-0x1.d2c6bbe872f00p-2));
  p = fl_fma(p, s, fl_f64(0x1.ed6148ac0930dp-1));
  p = fl_fma(p, s, fl_f64(-0x1.28270e391e14fp+0));
  return fl_fma(p, v, fl_f64(1.0)) * w;
}
)fl",
       {}},
      {"erf",
       DType::f64,
       1,
       "fl_erf_f64",
       R"fl(
FL_INLINE f64x16 fl_erf_f64(f64x16 x) {
  f64x16 a = fl_abs(x);
  a = a > 6.0 ? fl_f64(6.0) : a;
  f64x16 u = a * a;
  f64x16 p = fl_fma(u, fl_f64(-0x1.29e118e65c555p-38), fl_f64(0x1.7f170a8cd8252p-34));
  p = fl_fma(p, u, fl_f64(-0x1.4e63575700726p-30));
  p = fl_fma(p, u, fl_f64(0x1.fc43ef843dd91p-27));
  p = fl_fma(p, u, fl_f64(-0x1.5f6d9cb1a84ecp-23));
  p = fl_fma(p, u, fl_f64(0x1.b9e6518ccf4e5p-20));
  p = fl_fma(p, u, fl_f64(-0x1.f4d2562a00100p-17));
  p = fl_fma(p, u, fl_f64(0x1.f9a326c2d844fp-14));
  p = fl_fma(p, u, fl_f64(-0x1.c02db3fef0139p-11));
  p = fl_fma(p, u, fl_f64(0x1.565bcd0e65191p-8));
  p = fl_fma(p, u, fl_f64(-0x1.b82ce312889c2p-6));
  p = fl_fma(p, u, fl_f64(0x1.ce2f21a042bdep-4));
  p = fl_fma(p, u, fl_f64(-0x1.812746b0379e7p-2));
  p = fl_fma(p, u, fl_f64(0x1.06eba8214db69p-3));
  f64x16 y = fl_fma(p, a, a);
  if (fl_any(!(a <= 0.9))) {
    f64x16 far = 1.0 - fl_erfcx_f64(a) * fl_exp_sum_f64(-u, -fl_fma(a, a, -u));
    y = a <= 0.9 ? y : far;
  }
  return fl_with_sign(y, x);
}
)fl",
       {"_erfcx", "_exp_sum"}},
      {"erfc",
       DType::f64,
       1,
       "fl_erfc_f64",
       R"fl(
FL_INLINE f64x16 fl_erfc_f64(f64x16 x) {
  f64x16 a = fl_abs(x);
  a = a > 27.5 ? fl_f64(27.5) : a;
  f64x16 u = a * a;
  f64x16 y = fl_erfcx_f64(a) * fl_exp_sum_f64(-u, -fl_fma(a, a, -u));
  return x < 0.0 ? 2.0 - y : y;
}
)fl",
       {"_erfcx", "_exp_sum"}},
      {"gelu",
       DType::f64,
       1,
       "fl_gelu_f64",
       R"fl(
FL_INLINE f64x16 fl_gelu_f64(f64x16 x) {
  f64x16 t = fl_abs(x);
  t = t > 38.8 ? fl_f64(38.8) : t;
  f64x16 u = t * t;
  f64x16 c = 0.5 * fl_erfcx_f64(t * 0x1.6a09e667f3bcdp-1) * fl_exp_sum_f64(-0.5 * u, -0.5 * fl_fma(t, t, -u));
  f64x16 y = x > 0.0 ? fl_fma(-x, c, x) : x * c;
  return x < -38.7 ? x * 0.0 : y == y ? y : x;
}
)fl",
       {"_erfcx", "_exp_sum"}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
