// erf and what stands on it, in f32.
#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

const Group& f32_error_functions() {
  static const Group group = {
      // table[i & 15]: one permute with AVX-512, four and two blends with AVX2. No memory is gathered.
      {"_lookup",
       DType::f32,
       2,
       "fl_lookup_f32",
       R"fl(
#ifdef __AVX512F__
FL_INLINE f32x16 fl_lookup_f32(f32x16 table, i32x16 i) { return __builtin_shufflevector(table, i & 15); }
#else
typedef f32 f32x8 __attribute__((ext_vector_type(8)));
typedef i32 i32x8 __attribute__((ext_vector_type(8)));
FL_INLINE f32x8 fl_lookup_f32x8(f32x16 table, i32x8 i) {
  f32x8 high = __builtin_shufflevector(table.hi, i & 7);
  f32x8 low = __builtin_shufflevector(table.lo, i & 7);
  return (i & 8) != 0 ? high : low;
}
FL_INLINE f32x16 fl_lookup_f32(f32x16 table, i32x16 i) {
  f32x16 r;
  r.lo = fl_lookup_f32x8(table, i.lo);
  r.hi = fl_lookup_f32x8(table, i.hi);
  return r;
}
#endif
)fl",
       {}},
      // erf around the nearest of the nodes 0, 1/4, ... 15/4: value in two floats and a polynomial of degree 6 in the distance d.
      // For the nodes below 1 the polynomial approximates erf(x) - x and x is added last (around 0 in the same fma), so the error
      // stays
      // relative to x. Beyond 3.92 the result is 1.
      {"erf",
       DType::f32,
       1,
       "fl_erf_f32",
       R"fl(
FL_INLINE f32x16 fl_erf_f32(f32x16 x) {
  const f32x16 value = {
      0x0.0p+0f, 0x0.0p+0f, 0x0.0p+0f, 0x0.0p+0f, 0x1.af767ap-1f, 0x1.d8865ep-1f, 0x1.eea556p-1f, 0x1.f92d08p-1f,
      0x1.fd9ae2p-1f, 0x1.ff4048p-1f, 0x1.ffcaa8p-1f, 0x1.fff2d0p-1f, 0x1.fffd1ap-1f, 0x1.ffff70p-1f, 0x1.ffffe8p-1f,
      0x1.fffffcp-1f};
  const f32x16 value_low = {
      0x0.0p+0f, 0x1.af54e2p-6f, 0x1.4fdeb8p-6f, -0x1.3e368ap-5f, 0x1.d068d2p-27f, -0x1.9d22aep-27f, -0x1.1d8700p-26f,
      -0x1.00e83ep-26f, -0x1.7b13bcp-26f, -0x1.3fa0d6p-26f, 0x1.e9926ap-26f, -0x1.3eea54p-27f, 0x1.88274cp-26f,
      -0x1.825fc0p-27f, -0x1.de5510p-26f, 0x1.78b2f8p-28f};
  const f32x16 c1 = {
      0x1.06eba8p-3f, 0x1.eba2c0p-5f, -0x1.f081aep-4f, -0x1.6da37ap-2f, 0x1.a911f2p-2f, 0x1.e46530p-3f, 0x1.e72372p-4f,
      0x1.b0552ep-5f, 0x1.529b9ep-6f, 0x1.d4143ap-8f, 0x1.1d8318p-9f, 0x1.3360d6p-11f, 0x1.240900p-13f, 0x1.e9b638p-16f,
      0x1.6a59dep-18f, 0x1.d93854p-21f};
  const f32x16 c2 = {
      0x1.85ec82p-22f, -0x1.0f5d10p-2f, -0x1.c1efc0p-2f, -0x1.edc596p-2f, -0x1.a911f0p-2f, -0x1.2ebf3ep-2f, -0x1.6d5a96p-3f,
      -0x1.7a4a8ap-4f, -0x1.529b9ep-5f, -0x1.074b60p-6f, -0x1.64e3dcp-8f, -0x1.a6a51cp-10f, -0x1.b60d6cp-12f,
      -0x1.8de3eep-14f, -0x1.3d0e7cp-16f, -0x1.bb96bep-19f};
  const f32x16 c3 = {
      -0x1.812cf6p-2f, -0x1.3c96b8p-2f, -0x1.2bf542p-3f, 0x1.b6dddap-6f, 0x1.1b5d6cp-3f, 0x1.571c74p-3f, 0x1.1c2a7ep-3f,
      0x1.714a96p-4f, 0x1.8b0c02p-5f, 0x1.63efdep-6f, 0x1.119cdep-7f, 0x1.69caacp-9f, 0x1.9dac1ep-11f, 0x1.9a90e0p-13f,
      0x1.62b202p-15f, 0x1.0b4aacp-17f};
  const f32x16 c4 = {
      0x1.d1e49ep-12f, 0x1.040846p-3f, 0x1.76e6aap-3f, 0x1.34d6eap-3f, 0x1.1b6038p-4f, -0x1.939828p-8f, -0x1.6d5956p-5f,
      -0x1.8a0d8ap-5f, -0x1.1a2d38p-5f, -0x1.38aac4p-6f, -0x1.1a8a52p-7f, -0x1.ab0af6p-9f, -0x1.11c4d6p-10f,
      -0x1.2c74c8p-12f, -0x1.1bf8d6p-14f, -0x1.d26af0p-17f};
  const f32x16 c5 = {
      0x1.c02944p-4f, 0x1.465b62p-4f, 0x1.e5ee76p-8f, -0x1.b0d8acp-5f, -0x1.18c528p-4f, -0x1.818f0cp-5f, -0x1.eb39f2p-7f,
      0x1.a5b0fcp-8f, 0x1.aa2964p-7f, 0x1.5cab3ap-7f, 0x1.91cc38p-8f, 0x1.6b844ap-9f, 0x1.0d47c0p-10f, 0x1.4defecp-12f,
      0x1.5f21c4p-14f, 0x1.3bacbep-16f};
  const f32x16 c6 = {
      0x1.5a0a0ap-8f, -0x1.4725d6p-5f, -0x1.918b0cp-5f, -0x1.000b9ep-5f, 0x1.2b48a6p-8f, 0x1.5aa906p-6f, 0x1.3b7ef2p-6f,
      0x1.25c64ap-7f, 0x1.09a7cap-11f, -0x1.7896bap-9f, -0x1.6dc4e8p-9f, -0x1.b345b8p-10f, -0x1.8567eap-11f,
      -0x1.175264p-12f, -0x1.4b244ap-14f, -0x1.1f1846p-16f};
  f32x16 a = fl_abs(x);
  a = a > 3.925f ? fl_f32(3.925f) : a;
  f32x16 shifted = (a > 3.8f ? fl_f32(3.8f) : a) + 0x1.8p21f;
  i32x16 i = fl_bits(shifted);
  f32x16 d = a - (shifted - 0x1.8p21f);
  f32x16 p = fl_fma(fl_lookup_f32(c6, i), d, fl_lookup_f32(c5, i));
  p = fl_fma(p, d, fl_lookup_f32(c4, i));
  p = fl_fma(p, d, fl_lookup_f32(c3, i));
  p = fl_fma(p, d, fl_lookup_f32(c2, i));
  p = fl_fma(p, d, fl_lookup_f32(c1, i));
  f32x16 base = a < 0.875f ? a : fl_lookup_f32(value, i);
  f32x16 y = base + fl_fma(p, d, fl_lookup_f32(value_low, i));
  return fl_with_sign(a < 0.125f ? fl_fma(p, a, a) : y, x);
}
)fl",
       {"_lookup"}},
      // x Phi(x), t Phi(-t) = e^(-t^2/2) v Q(v), v = c t / (t + c), c = 3.765625, t = |x|: no cancellation for negative x, and
      // v is t where t is tiny. Q has degree 8; c is where that is best. The exponent of e is -r/2 after the power of 2 is
      // taken out; t^2 enters in two floats. Beyond 12 the first lines give no sensible number.
      {"gelu",
       DType::f32,
       1,
       "fl_gelu_f32",
       R"fl(
FL_INLINE f32x16 fl_gelu_f32(f32x16 x) {
  f32x16 t = fl_abs(x);
  f32x16 v = t * (0x1.e2p+1f / (t + 0x1.e2p+1f));
  f32x16 p = fl_fma(v, fl_f32(0x1.94dea6p-21f), fl_f32(-0x1.3fcd0ap-17f));
  p = fl_fma(p, v, fl_f32(0x1.b06fe4p-16f));
  p = fl_fma(p, v, fl_f32(0x1.2fe314p-13f));
  p = fl_fma(p, v, fl_f32(-0x1.6fa42ep-12f));
  p = fl_fma(p, v, fl_f32(-0x1.2258b4p-7f));
  p = fl_fma(p, v, fl_f32(0x1.2c8dd6p-4f));
  p = fl_fma(p, v, fl_f32(-0x1.108ce2p-2f));
  p = fl_fma(p, v, fl_f32(0.5f));
  f32x16 sq = t * t;
  f32x16 shifted = fl_fma(sq, fl_f32(-0x1.715476p-1f), fl_f32(0x1.8p23f));
  f32x16 n = shifted - 0x1.8p23f;
  f32x16 r = fl_fma(n, fl_f32(0x1.62e400p+0f), sq);
  r = fl_fma(n, fl_f32(0x1.7f7d1cp-19f), r) + fl_fma(t, t, -sq);
  f32x16 e = fl_fma(r, fl_f32(0x1.6d5f60p-16f), fl_f32(-0x1.123c22p-12f));
  e = fl_fma(e, r, fl_f32(0x1.5554d8p-9f));
  e = fl_fma(e, r, fl_f32(-0x1.55548ep-6f));
  e = fl_fma(e, r, fl_f32(0.125f));
  e = fl_fma(e, r, fl_f32(-0.5f));
  e = fl_fma(e * r, p, p);
  f32x16 tail = fl_float(fl_bits(e) + (fl_bits(shifted) << 23));
  f32x16 y = fl_fma(-v, tail, fl_f32(-0.0f) > x ? fl_f32(-0.0f) : x);  // -0 for -0
  if (fl_any(!(t <= 12.0f))) {
    f32x16 edge = -v * fl_scale_f32(e * 0x1p64f, fl_f32(0.0f), fl_bits(shifted) - 0x4b400000) * 0x1p-64f;
    y = x > 12.0f ? x : x < -14.5f ? x * 0.0f : x < -12.0f ? edge : y;
  }
  return y;
}
)fl",
       {"_scale"}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
