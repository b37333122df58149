// exp, exp2, expm1 and tanh in f32.
//
// All take x = k ln2 + rh + rl, |rh| <= ln2/2. rh = x - k fl(ln2) is exact in one fma: it is a multiple of 2^-25 below 1/2. The
// leading terms of e^r are kept as a sum of two floats, so that only the last addition rounds. The polynomials are minimax fits
// with coefficients rounded one after another. 0x1.8p23 is added to round to an integer: its low bits then hold k.
#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

const Group& f32_exponentials() {
  static const Group group = {
      // (s + lo) 2^k with one rounding, for results near or beyond the ends of the f32 range. |k| <= 1000.
      {"_scale",
       DType::f32,
       3,
       "fl_scale_f32",
       R"fl(
FL_INLINE f32x16 fl_scale_f32(f32x16 s, f32x16 lo, i32x16 k) {
  return fl_to_f32((fl_to_f64(s) + fl_to_f64(lo)) * fl_float((__builtin_convertvector(k, i64x16) + 1023) << 52));
}
)fl",
       {}},
      // e^(rh+rl) - 1 = result + tl for |rh| <= ln2/2; the result is rh + rh^2/2 rounded, tl holds the rest (up to 1/100).
      {"_exp_head",
       DType::f32,
       3,
       "fl_exp_head_f32",
       R"fl(
FL_INLINE f32x16 fl_exp_head_f32(f32x16 rh, f32x16 rl, f32x16& tl) {
  f32x16 p = fl_fma(rh, fl_f32(0x1.a242f0p-13f), fl_f32(0x1.6d3cd0p-10f));
  p = fl_fma(p, rh, fl_f32(0x1.111004p-7f));
  p = fl_fma(p, rh, fl_f32(0x1.5554f6p-5f));
  p = fl_fma(p, rh, fl_f32(0x1.555556p-3f));
  f32x16 sq = rh * rh;
  f32x16 th = fl_fma(sq, fl_f32(0.5f), rh);
  f32x16 rest = fl_fma(fl_fma(rh, rh, -sq), fl_f32(0.5f), fl_fma(sq, fl_f32(0.5f), rh - th));
  tl = fl_fma(rh * sq, p, rest) + fl_fma(rl, th, rl);
  return th;
}
)fl",
       {}},
      {"exp",
       DType::f32,
       1,
       "fl_exp_f32",
       R"fl(
FL_INLINE f32x16 fl_exp_f32(f32x16 x) {
  f32x16 shifted = fl_fma(x, fl_f32(0x1.715476p+0f), fl_f32(0x1.8p23f));
  f32x16 n = shifted - 0x1.8p23f;
  f32x16 rh = fl_fma(n, fl_f32(-0x1.62e430p-1f), x);
  f32x16 rl = n * 0x1.05c610p-29f;
  f32x16 tail;
  f32x16 th = fl_exp_head_f32(rh, rl, tail);
  f32x16 s = 1.0f + th;
  f32x16 lo = (th - (s - 1.0f)) + tail;
  f32x16 y = fl_float(fl_bits(s + lo) + (fl_bits(shifted) << 23));
  if (fl_any(!(fl_abs(x) <= 87.33f))) {
    f32x16 edge = x > 0.0f ? fl_f32(__builtin_inff()) : fl_f32(0.0f);
    f32x16 near = fl_scale_f32(s, lo, fl_abs(x) <= 105.0f ? fl_bits(shifted) - 0x4b400000 : 0);
    y = fl_abs(x) <= 105.0f ? near : x != x ? x : edge;
  }
  return y;
}
)fl",
       {"_exp_head", "_scale"}},
      // e^(rh+rl) - 1 = result + tl for |rh| <= ln2/16, tl below 1/10000: both to 2^-34 of the result.
      {"_exp_short",
       DType::f32,
       3,
       "fl_exp_short_f32",
       R"fl(
FL_INLINE f32x16 fl_exp_short_f32(f32x16 rh, f32x16 rl, f32x16& tl) {
  f32x16 p = fl_fma(rh, fl_f32(0x1.10fdd8p-7f), fl_f32(0x1.555a12p-5f));
  p = fl_fma(p, rh, fl_f32(0x1.555556p-3f));
  f32x16 sq = rh * rh;
  f32x16 th = fl_fma(sq, fl_f32(0.5f), rh);
  f32x16 rest = fl_fma(fl_fma(rh, rh, -sq), fl_f32(0.5f), fl_fma(sq, fl_f32(0.5f), rh - th));
  tl = fl_fma(rh * sq, p, rest) + fl_fma(rl, th, rl);
  return th;
}
)fl",
       {}},
      // 2^(j/8), in two floats, for fl_lookup8_f32.
      {"_exp_table",
       DType::f32,
       1,
       "fl_exp_table_f32",
       R"fl(
static const f32x16 fl_exp_table_f32 = {
    0x1.000000p+0f, 0x1.172b84p+0f, 0x1.306fe0p+0f, 0x1.4bfdaep+0f, 0x1.6a09e6p+0f, 0x1.8ace54p+0f, 0x1.ae89fap+0f, 0x1.d5818ep+0f,
    0x1.000000p+0f, 0x1.172b84p+0f, 0x1.306fe0p+0f, 0x1.4bfdaep+0f, 0x1.6a09e6p+0f, 0x1.8ace54p+0f, 0x1.ae89fap+0f, 0x1.d5818ep+0f};
static const f32x16 fl_exp_table_low_f32 = {
    0.0f, -0x1.c15742p-27f, 0x1.4636e2p-25f, -0x1.593abcp-25f, 0x1.9fcef4p-26f, 0x1.15506ep-27f, -0x1.a94b14p-26f, -0x1.822dbcp-27f,
    0.0f, -0x1.c15742p-27f, 0x1.4636e2p-25f, -0x1.593abcp-25f, 0x1.9fcef4p-26f, 0x1.15506ep-27f, -0x1.a94b14p-26f, -0x1.822dbcp-27f};
)fl",
       {"_lookup8"}},
      // e^2|x| - 1 = N 2^k and e^2|x| + 1 = D 2^k, both as sums of two floats, with e^2|x| = 2^k 2^(j/8) e^r; tanh = N / D with
      // the residual of the division added.
      {"tanh",
       DType::f32,
       1,
       "fl_tanh_f32",
       R"fl(
FL_INLINE f32x16 fl_tanh_f32(f32x16 x) {
  f32x16 a = fl_abs(x);
  a = a > 9.2f ? fl_f32(9.2f) : a;
  f32x16 shifted = fl_fma(a, fl_f32(0x1.715476p+4f), fl_f32(0x1.8p23f));
  f32x16 n = shifted - 0x1.8p23f;
  f32x16 rh = fl_fma(n, fl_f32(-0x1.62e430p-4f), a + a);
  f32x16 tl, th = fl_exp_short_f32(rh, n * 0x1.05c610p-32f, tl);
  i32x16 i = fl_bits(shifted);
  f32x16 c = fl_lookup8_f32(fl_exp_table_f32, i), cl = fl_lookup8_f32(fl_exp_table_low_f32, i);
  f32x16 ch = c * th;
  tl = fl_fma(c, th, -ch) + fl_fma(c, tl, fl_fma(cl, th, cl));
  f32x16 t = ch + tl;
  tl = (ch - t) + tl;
  f32x16 u = fl_float(0x3f800000 - ((i >> 3) << 23));
  f32x16 nb = c - u, db = c + u;
  f32x16 nh = nb + t, dh = db + t;
  f32x16 nl = (t - (nh - nb)) + (tl + ((c - nb) - u)), dl = (t - (dh - db)) + (tl + ((c - db) + u));
  f32x16 d1 = 1.0f / dh;
  f32x16 q = nh * d1;
  f32x16 e = fl_fma(-q, dh, nh) + fl_fma(-q, dl, nl);
  return fl_with_sign(fl_fma(e, d1, q), x);
}
)fl",
       {"_exp_short", "_exp_table", "_lookup8"}},
      {"exp2",
       DType::f32,
       1,
       "fl_exp2_f32",
       R"fl(
FL_INLINE f32x16 fl_exp2_f32(f32x16 x) {
  f32x16 shifted = x + 0x1.8p23f;
  f32x16 r = x - (shifted - 0x1.8p23f);
  f32x16 rh = r * 0x1.62e430p-1f;
  f32x16 rl = fl_fma(r, fl_f32(-0x1.05c610p-29f), fl_fma(r, fl_f32(0x1.62e430p-1f), -rh));
  f32x16 tail;
  f32x16 th = fl_exp_head_f32(rh, rl, tail);
  f32x16 s = 1.0f + th;
  f32x16 lo = (th - (s - 1.0f)) + tail;
  f32x16 y = fl_float(fl_bits(s + lo) + (fl_bits(shifted) << 23));
  if (fl_any(!(fl_abs(x) <= 125.0f))) {
    f32x16 edge = x > 0.0f ? fl_f32(__builtin_inff()) : fl_f32(0.0f);
    f32x16 near = fl_scale_f32(s, lo, fl_abs(x) <= 160.0f ? fl_bits(shifted) - 0x4b400000 : 0);
    y = fl_abs(x) <= 160.0f ? near : x != x ? x : edge;
  }
  return y;
}
)fl",
       {"_exp_head", "_scale"}},
      {"expm1",
       DType::f32,
       1,
       "fl_expm1_f32",
       R"fl(
FL_INLINE f32x16 fl_expm1_f32(f32x16 x) {
  f32x16 shifted = fl_fma(x, fl_f32(0x1.715476p+0f), fl_f32(0x1.8p23f));
  f32x16 n = shifted - 0x1.8p23f;
  f32x16 rh = fl_fma(n, fl_f32(-0x1.62e430p-1f), x);
  f32x16 rl = n * 0x1.05c610p-29f;
  f32x16 tail;
  f32x16 th = fl_exp_head_f32(rh, rl, tail);
  f32x16 u = fl_float(0x3f800000 - (fl_bits(shifted) << 23));
  f32x16 nb = 1.0f - u;
  f32x16 nh = nb + th;
  f32x16 nl = (th - (nh - nb)) + (tail + ((1.0f - nb) - u));
  f32x16 y = fl_float(fl_bits(nh + nl) + (fl_bits(shifted) << 23));
  if (fl_any(!(fl_abs(x) <= 80.0f))) {
    f32x16 s = 1.0f + th;
    f32x16 big = fl_scale_f32(s, (th - (s - 1.0f)) + tail, x > 80.0f & x <= 105.0f ? fl_bits(shifted) - 0x4b400000 : 0);
    y = x < -80.0f ? fl_f32(-1.0f) : x > 105.0f ? fl_f32(__builtin_inff()) : x > 80.0f ? big : x != x ? x : y;
  }
  return fl_with_sign(y, x);
}
)fl",
       {"_exp_head", "_scale"}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
