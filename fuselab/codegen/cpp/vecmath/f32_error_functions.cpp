// erf and what stands on it, in f32.
#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

const Group& f32_error_functions() {
  static const Group group = {
      // |x| < 1.25: x + x P(x^2). Above: 1 - 2^Q(|x|), Q = log2 erfc, whose error counts little because erfc(1.25) = 0.077.
      {"erf", DType::f32, 1, "fl_erf_f32", R"fl(
FL_INLINE f32x16 fl_erf_f32(f32x16 x) {
  f32x16 a = fl_abs(x);
  a = a > 3.95f ? fl_f32(3.95f) : a;
  f32x16 u = x * x;
  f32x16 p = fl_fma(u, fl_f32(-0x1.f3e67ep-18f), fl_f32(0x1.b13602p-14f));
  p = fl_fma(p, u, fl_f32(-0x1.b4876ep-11f));
  p = fl_fma(p, u, fl_f32(0x1.554a0ap-8f));
  p = fl_fma(p, u, fl_f32(-0x1.b81128p-6f));
  p = fl_fma(p, u, fl_f32(0x1.ce2dbep-4f));
  p = fl_fma(p, u, fl_f32(-0x1.812740p-2f));
  p = fl_fma(p, u, fl_f32(0x1.06eba8p-3f));
  f32x16 near = fl_fma(p, x, x);
  f32x16 q = fl_fma(a, fl_f32(0x1.d2e9dcp-13f), fl_f32(-0x1.ebe9fap-9f));
  q = fl_fma(q, a, fl_f32(0x1.dffcaap-6f));
  q = fl_fma(q, a, fl_f32(-0x1.262556p-3f));
  q = fl_fma(q, a, fl_f32(-0x1.dabdfep-1f));
  q = fl_fma(q, a, fl_f32(-0x1.9f2188p+0f));
  q = fl_fma(q, a, fl_f32(-0x1.c3bcfep-10f));
  f32x16 shifted = q + 0x1.8p23f;
  f32x16 r = q - (shifted - 0x1.8p23f);
  f32x16 e = fl_fma(r, fl_f32(0x1.60f1c6p-10f), fl_f32(0x1.3d4218p-7f));
  e = fl_fma(e, r, fl_f32(0x1.c6ab7ap-5f));
  e = fl_fma(e, r, fl_f32(0x1.ebf83ep-3f));
  e = fl_fma(e, r, fl_f32(0x1.62e432p-1f));
  e = fl_fma(e, r, fl_f32(0x1.000002p+0f));
  f32x16 scale = fl_float((fl_bits(shifted) << 23) + 0x3f800000);
  f32x16 far = fl_with_sign(fl_fma(-e, scale, fl_f32(1.0f)), x);
  return a < 1.25f ? near : far;
}
)fl",
       {}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
