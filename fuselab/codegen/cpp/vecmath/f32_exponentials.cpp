// exp, tanh, sigmoid and silu in f32.
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
      // e^2|x| - 1 = N 2^k and e^2|x| + 1 = D 2^k, both as sums of two floats; tanh = N / D with the residual of the division
      // added.
      {"tanh",
       DType::f32,
       1,
       "fl_tanh_f32",
       R"fl(
FL_INLINE f32x16 fl_tanh_f32(f32x16 x) {
  f32x16 a = fl_abs(x);
  a = a > 9.2f ? fl_f32(9.2f) : a;
  f32x16 shifted = fl_fma(a, fl_f32(0x1.715476p+1f), fl_f32(0x1.8p23f));
  f32x16 n = shifted - 0x1.8p23f;
  f32x16 rh = fl_fma(n, fl_f32(-0x1.62e430p-1f), a + a);
  f32x16 rl = n * 0x1.05c610p-29f;
  f32x16 tail;
  f32x16 th = fl_exp_head_f32(rh, rl, tail);
  f32x16 t = th + tail;
  f32x16 tl = (th - t) + tail;
  f32x16 u = fl_float(0x3f800000 - (fl_bits(shifted) << 23));
  f32x16 nb = 1.0f - u, db = 1.0f + u;
  f32x16 nh = nb + t, dh = db + t;
  f32x16 nl = (t - (nh - nb)) + (tl + ((1.0f - nb) - u)), dl = (t - (dh - db)) + (tl + ((1.0f - db) + u));
  f32x16 d1 = 1.0f / dh;
  f32x16 q = nh * d1;
  f32x16 e = fl_fma(-q, dh, nh) + fl_fma(-q, dl, nl);
  return fl_with_sign(fl_fma(e, d1, q), x);
}
)fl",
       {"_exp_head"}},
      // a / (1 + e^-(x+xl)) = a u / (u + e^r), u = 2^-k, for a = 1 or a = x. 1 + u is exact where it counts, so
      // only the sum and the quotient round.
      {"_logistic",
       DType::f32,
       3,
       "fl_logistic_f32",
       R"fl(
FL_INLINE f32x16 fl_logistic_f32(f32x16 x, f32x16 xl, f32x16 a) {
  f32x16 shifted = fl_fma(x, fl_f32(-0x1.715476p+0f), fl_f32(0x1.8p23f));
  f32x16 n = shifted - 0x1.8p23f;
  f32x16 r = fl_fma(n, fl_f32(0x1.05c610p-29f), fl_fma(n, fl_f32(-0x1.62e430p-1f), -x)) - xl;
  f32x16 p = fl_fma(r, fl_f32(0x1.6d5f60p-10f), fl_f32(0x1.123c22p-7f));
  p = fl_fma(p, r, fl_f32(0x1.5554d8p-5f));
  p = fl_fma(p, r, fl_f32(0x1.55548ep-3f));
  p = fl_fma(p, r, fl_f32(0.5f));
  f32x16 t = fl_fma(r * r, p, r);
  f32x16 u = fl_float(0x3f800000 - (fl_bits(shifted) << 23));
  f32x16 y = a * u / ((1.0f + u) + t);
  // Below -16.5 the 1 + u loses u; beyond 80 u overflows.
  if (fl_any(!(fl_abs(x - 31.75f) <= 48.25f))) {
    i32x16 low = x < -16.5f & x > -150.0f;
    i32x16 k = low ? 0x4b400000 - fl_bits(shifted) : 0;
    f64x16 w = fl_float((__builtin_convertvector(k, i64x16) + 1023) << 52);
    f32x16 tail = fl_to_f32(fl_to_f64(a) * w / (1.0 + w + fl_to_f64(t)));
    y = low ? tail : x > 80.0f ? a : x <= -150.0f ? a * 0.0f : y;
  }
  return y;
}
)fl",
       {}},
      {"sigmoid",
       DType::f32,
       1,
       "fl_sigmoid_f32",
       R"fl(
FL_INLINE f32x16 fl_sigmoid_f32(f32x16 x) { return fl_logistic_f32(x, fl_f32(0.0f), fl_f32(1.0f)); }
)fl",
       {"_logistic"}},
      {"silu",
       DType::f32,
       1,
       "fl_silu_f32",
       R"fl(
FL_INLINE f32x16 fl_silu_f32(f32x16 x) { return fl_logistic_f32(x, fl_f32(0.0f), x); }
)fl",
       {"_logistic"}},
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
      // x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)): the argument in two floats, because its error is multiplied by its size.
      {"gelu_tanh",
       DType::f32,
       1,
       "fl_gelu_tanh_f32",
       R"fl(
FL_INLINE f32x16 fl_gelu_tanh_f32(f32x16 x) {
  f32x16 a = fl_abs(x) > 20.0f ? fl_with_sign(fl_f32(20.0f), x) : x;
  f32x16 u = a * a;
  f32x16 ul = fl_fma(a, a, -u);
  f32x16 c = u * 0x1.2444f2p-4f;
  f32x16 w = c + 0x1.988454p+0f;
  f32x16 v = w - c;
  f32x16 wl = (c - (w - v)) + (0x1.988454p+0f - v) + fl_fma(u, fl_f32(0x1.2444f2p-4f), -c);
  wl += fl_fma(ul, fl_f32(0x1.2444f2p-4f), fl_fma(u, fl_f32(0x1.49b16ap-29f), fl_f32(-0x1.857936p-25f)));
  f32x16 z = a * w;
  f32x16 zl = fl_fma(a, wl, fl_fma(a, w, -z));
  return fl_logistic_f32(z, zl, x);
}
)fl",
       {"_logistic"}},
      // x n / (n + 2), n = E (E + 2), E = e^x: tanh(log(1 + e^x)) without the logarithm. E and n in two floats.
      {"mish",
       DType::f32,
       1,
       "fl_mish_f32",
       R"fl(
FL_INLINE f32x16 fl_mish_f32(f32x16 x) {
  f32x16 a = x > 20.0f ? fl_f32(20.0f) : x;
  f32x16 shifted = fl_fma(a, fl_f32(0x1.715476p+0f), fl_f32(0x1.8p23f));
  f32x16 k = shifted - 0x1.8p23f;
  f32x16 tail;
  f32x16 th = fl_exp_head_f32(fl_fma(k, fl_f32(-0x1.62e430p-1f), a), k * 0x1.05c610p-29f, tail);
  f32x16 s = 1.0f + th;
  f32x16 lo = (th - (s - 1.0f)) + tail;
  f32x16 u = fl_float((fl_bits(shifted) << 23) + 0x3f800000);
  f32x16 eh = s + lo;
  f32x16 el = ((s - eh) + lo) * u;
  eh = eh * u;
  f32x16 n = fl_fma(eh, eh, eh + eh);
  f32x16 nl = fl_fma(eh, eh, (eh + eh) - n) + 2.0f * fl_fma(el, eh, el);
  f32x16 d = n + 2.0f;
  f32x16 d1 = 1.0f / d;
  f32x16 q = n * d1;
  f32x16 e = fl_fma(-q, d, n) + fl_fma(-q, (2.0f - d) + (n + nl), nl);
  f32x16 y = fl_fma(x, q, x * (e * d1));
  if (fl_any(!(fl_abs(x) <= 20.0f))) {
    f32x16 low = x * 0x1p-40f * fl_scale_f32(s, lo, x < 0.0f & x >= -120.0f ? fl_bits(shifted) - 0x4b400000 + 40 : 0);
    y = x > 20.0f ? x : x < -120.0f ? x * 0.0f : x < -20.0f ? low : y;
  }
  return fl_with_sign(y, x);
}
)fl",
       {"_exp_head", "_scale"}},
      {"softplus",
       DType::f32,
       1,
       "fl_softplus_f32",
       R"fl(
FL_INLINE f32x16 fl_softplus_f32(f32x16 x) {
  f32x16 l = fl_log1p_f32(fl_exp_f32(-fl_abs(x)));
  return x > 0.0f ? x + l : l;
}
)fl",
       {"exp", "log1p"}},
      // 0 - l, not -l, where the argument is positive: PyTorch's result for large ones is +0.
      {"log_sigmoid",
       DType::f32,
       1,
       "fl_log_sigmoid_f32",
       R"fl(
FL_INLINE f32x16 fl_log_sigmoid_f32(f32x16 x) {
  f32x16 l = fl_log1p_f32(fl_exp_f32(-fl_abs(x)));
  return (x < 0.0f ? x : fl_f32(0.0f)) - l;
}
)fl",
       {"exp", "log1p"}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
