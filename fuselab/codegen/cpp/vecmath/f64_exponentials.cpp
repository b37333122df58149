// exp and what stands on it, in f64: the same steps as in f32, with more terms. Errors: docs/vector-math.md.
#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

const Group& f64_exponentials() {
  static const Group group = {
      // (s + lo) 2^k for results near or beyond the ends of the f64 range. |k| <= 1100. Subnormal results are rounded twice.
      {"_scale",
       DType::f64,
       3,
       "fl_scale_f64",
       R"fl(
FL_INLINE f64x16 fl_scale_f64(f64x16 s, f64x16 lo, i64x16 k) {
  i64x16 half = k >> 1;
  return (s + lo) * fl_float((half + 1023) << 52) * fl_float((k - half + 1023) << 52);
}
)fl",
       {}},
      // e^(rh+rl) - 1 = result + tl for |rh| <= ln2/2. rl may be hundreds of ulps of 1.
      {"_exp_head",
       DType::f64,
       3,
       "fl_exp_head_f64",
       R"fl(
FL_INLINE f64x16 fl_exp_head_f64(f64x16 rh, f64x16 rl, f64x16& tl) {
  f64x16 p = fl_fma(rh, fl_f64(0x1.1f8da8514e74ep-29), fl_f64(0x1.af5f2b9bb00b5p-26));
  p = fl_fma(p, rh, fl_f64(0x1.27e4cb22d9698p-22));
  p = fl_fma(p, rh, fl_f64(0x1.71ddf81b0b9e5p-19));
  p = fl_fma(p, rh, fl_f64(0x1.a01a01adcae87p-16));
  p = fl_fma(p, rh, fl_f64(0x1.a01a01aff91a0p-13));
  p = fl_fma(p, rh, fl_f64(0x1.6c16c16c14f98p-10));
  p = fl_fma(p, rh, fl_f64(0x1.111111110f683p-7));
  p = fl_fma(p, rh, fl_f64(0x1.5555555555558p-5));
  p = fl_fma(p, rh, fl_f64(0x1.5555555555559p-3));
  f64x16 sq = rh * rh;
  f64x16 th = fl_fma(sq, fl_f64(0.5), rh);
  f64x16 rest = fl_fma(fl_fma(rh, rh, -sq), fl_f64(0.5), fl_fma(sq, fl_f64(0.5), rh - th));
  f64x16 c = fl_fma(rh * sq, p, rest);
  tl = c + fl_fma(rl, th + c, rl);
  return th;
}
)fl",
       {}},
      // e^(x+xl), |xl| up to a few ulps of x.
      {"_exp_sum",
       DType::f64,
       2,
       "fl_exp_sum_f64",
       R"fl(
FL_INLINE f64x16 fl_exp_sum_f64(f64x16 x, f64x16 xl) {
  f64x16 shifted = fl_fma(x, fl_f64(0x1.71547652b82fep+0), fl_f64(0x1.8p52));
  f64x16 n = shifted - 0x1.8p52;
  f64x16 rh = fl_fma(n, fl_f64(-0x1.62e42fefa39efp-1), x);
  f64x16 tail;
  f64x16 th = fl_exp_head_f64(rh, fl_fma(n, fl_f64(-0x1.abc9e3b39803fp-56), xl), tail);
  f64x16 s = 1.0 + th;
  f64x16 lo = (th - (s - 1.0)) + tail;
  f64x16 y = fl_float(fl_bits(s + lo) + (fl_bits(shifted) << 52));
  if (fl_any(!(fl_abs(x) <= 708.0))) {
    f64x16 edge = x > 0.0 ? fl_f64(__builtin_inf()) : fl_f64(0.0);
    f64x16 near = fl_scale_f64(s, lo, fl_abs(x) <= 760.0 ? fl_bits(shifted) - 0x4338000000000000l : 0l);
    y = fl_abs(x) <= 760.0 ? near : x != x ? x : edge;
  }
  return y;
}
)fl",
       {"_exp_head", "_scale"}},
      {"exp",
       DType::f64,
       1,
       "fl_exp_f64",
       R"fl(
FL_INLINE f64x16 fl_exp_f64(f64x16 x) {
  return fl_exp_sum_f64(x, fl_f64(0.0));
}
)fl",
       {"_exp_sum"}},
      {"exp2",
       DType::f64,
       1,
       "fl_exp2_f64",
       R"fl(
FL_INLINE f64x16 fl_exp2_f64(f64x16 x) {
  f64x16 shifted = x + 0x1.8p52;
  f64x16 r = x - (shifted - 0x1.8p52);
  f64x16 rh = r * 0x1.62e42fefa39efp-1;
  f64x16 rl = fl_fma(r, fl_f64(0x1.abc9e3b39803fp-56), fl_fma(r, fl_f64(0x1.62e42fefa39efp-1), -rh));
  f64x16 tail;
  f64x16 th = fl_exp_head_f64(rh, rl, tail);
  f64x16 s = 1.0 + th;
  f64x16 lo = (th - (s - 1.0)) + tail;
  f64x16 y = fl_float(fl_bits(s + lo) + (fl_bits(shifted) << 52));
  if (fl_any(!(fl_abs(x) <= 1020.0))) {
    f64x16 edge = x > 0.0 ? fl_f64(__builtin_inf()) : fl_f64(0.0);
    f64x16 near = fl_scale_f64(s, lo, fl_abs(x) <= 1090.0 ? fl_bits(shifted) - 0x4338000000000000l : 0l);
    y = fl_abs(x) <= 1090.0 ? near : x != x ? x : edge;
  }
  return y;
}
)fl",
       {"_exp_head", "_scale"}},
      {"expm1",
       DType::f64,
       1,
       "fl_expm1_f64",
       R"fl(
FL_INLINE f64x16 fl_expm1_f64(f64x16 x) {
  f64x16 shifted = fl_fma(x, fl_f64(0x1.71547652b82fep+0), fl_f64(0x1.8p52));
  f64x16 n = shifted - 0x1.8p52;
  f64x16 rh = fl_fma(n, fl_f64(-0x1.62e42fefa39efp-1), x);
  f64x16 tail;
  f64x16 th = fl_exp_head_f64(rh, n * -0x1.abc9e3b39803fp-56, tail);
  f64x16 u = fl_float(0x3ff0000000000000l - (fl_bits(shifted) << 52));
  f64x16 nb = 1.0 - u;
  f64x16 nh = nb + th;
  f64x16 nl = (th - (nh - nb)) + (tail + ((1.0 - nb) - u));
  f64x16 y = fl_float(fl_bits(nh + nl) + (fl_bits(shifted) << 52));
  if (fl_any(!(fl_abs(x) <= 600.0))) {
    f64x16 s = 1.0 + th;
    f64x16 big =
        fl_scale_f64(s, (th - (s - 1.0)) + tail, x > 600.0 & x <= 760.0 ? fl_bits(shifted) - 0x4338000000000000l : 0l);
    y = x < -600.0 ? fl_f64(-1.0) : x > 760.0 ? fl_f64(__builtin_inf()) : x > 600.0 ? big : x != x ? x : y;
  }
  return fl_with_sign(y, x);
}
)fl",
       {"_exp_head", "_scale"}},
      {"tanh",
       DType::f64,
       1,
       "fl_tanh_f64",
       R"fl(
FL_INLINE f64x16 fl_tanh_f64(f64x16 x) {
  f64x16 a = fl_abs(x);
  a = a > 19.2 ? fl_f64(19.2) : a;
  f64x16 shifted = fl_fma(a + a, fl_f64(0x1.71547652b82fep+0), fl_f64(0x1.8p52));
  f64x16 n = shifted - 0x1.8p52;
  f64x16 rh = fl_fma(n, fl_f64(-0x1.62e42fefa39efp-1), a + a);
  f64x16 tail;
  f64x16 th = fl_exp_head_f64(rh, n * -0x1.abc9e3b39803fp-56, tail);
  f64x16 t = th + tail;
  f64x16 tl = (th - t) + tail;
  f64x16 u = fl_float(0x3ff0000000000000l - (fl_bits(shifted) << 52));
  f64x16 nb = 1.0 - u, db = 1.0 + u;
  f64x16 nh = nb + t, dh = db + t;
  f64x16 nl = (t - (nh - nb)) + (tl + ((1.0 - nb) - u)), dl = (t - (dh - db)) + (tl + ((1.0 - db) + u));
  f64x16 d1 = 1.0 / dh;
  f64x16 q = nh * d1;
  f64x16 e = fl_fma(-q, dh, nh) + fl_fma(-q, dl, nl);
  return fl_with_sign(fl_fma(e, d1, q), x);
}
)fl",
       {"_exp_head"}},
      // a / (1 + e^-(x+xl)), as in f32.
      {"_logistic",
       DType::f64,
       3,
       "fl_logistic_f64",
       R"fl(
FL_INLINE f64x16 fl_logistic_f64(f64x16 x, f64x16 xl, f64x16 a) {
  f64x16 shifted = fl_fma(-x, fl_f64(0x1.71547652b82fep+0), fl_f64(0x1.8p52));
  f64x16 n = shifted - 0x1.8p52;
  f64x16 tail;
  f64x16 th = fl_exp_head_f64(fl_fma(n, fl_f64(-0x1.62e42fefa39efp-1), -x), fl_fma(n, fl_f64(-0x1.abc9e3b39803fp-56), -xl), tail);
  f64x16 t = th + tail;
  f64x16 u = fl_float(0x3ff0000000000000l - (fl_bits(shifted) << 52));
  f64x16 y = a * u / ((1.0 + u) + t);
  // Below -36 the 1 + u loses u; beyond 700 u overflows.
  if (fl_any(!(x >= -36.0 & x <= 700.0))) {
    i64x16 low = x < -36.0 & x > -760.0;
    f64x16 w = fl_float(0x3ff0000000000000l - ((low & x > -600.0 ? fl_bits(shifted) : 0l) << 52));
    w = x > -600.0 ? w : fl_f64(0.0);
    f64x16 e = a * 0x1p-100 / (1.0 + (t + w));
    f64x16 lows = fl_scale_f64(e, fl_f64(0.0), low ? 0x4338000000000064l - fl_bits(shifted) : 0l);
    y = low ? lows : x > 700.0 ? a : x <= -760.0 ? a * 0.0 : y;
  }
  return y;
}
)fl",
       {"_exp_head", "_scale"}},
      {"sigmoid",
       DType::f64,
       1,
       "fl_sigmoid_f64",
       R"fl(
FL_INLINE f64x16 fl_sigmoid_f64(f64x16 x) {
  return fl_logistic_f64(x, fl_f64(0.0), fl_f64(1.0));
}
)fl",
       {"_logistic"}},
      {"silu",
       DType::f64,
       1,
       "fl_silu_f64",
       R"fl(
FL_INLINE f64x16 fl_silu_f64(f64x16 x) {
  return fl_logistic_f64(x, fl_f64(0.0), x);
}
)fl",
       {"_logistic"}},
      {"gelu_tanh",
       DType::f64,
       1,
       "fl_gelu_tanh_f64",
       R"fl(
FL_INLINE f64x16 fl_gelu_tanh_f64(f64x16 x) {
  f64x16 a = fl_abs(x) > 40.0 ? fl_with_sign(fl_f64(40.0), x) : x;
  f64x16 u = a * a;
  f64x16 ul = fl_fma(a, a, -u);
  f64x16 c = u * 0x1.2444f2a4d8b4bp-4;
  f64x16 w = c + 0x1.9884533d43651p+0;
  f64x16 v = w - c;
  f64x16 wl = (c - (w - v)) + (0x1.9884533d43651p+0 - v) + fl_fma(u, fl_f64(0x1.2444f2a4d8b4bp-4), -c);
  wl += fl_fma(ul, fl_f64(0x1.2444f2a4d8b4bp-4), fl_fma(u, fl_f64(-0x1.6c843a29d1c70p-61), fl_f64(-0x1.cbc0d30ebfd15p-54)));
  f64x16 z = a * w;
  f64x16 zl = fl_fma(a, wl, fl_fma(a, w, -z));
  return fl_logistic_f64(z, zl, x);
}
)fl",
       {"_logistic"}},
      {"mish",
       DType::f64,
       1,
       "fl_mish_f64",
       R"fl(
FL_INLINE f64x16 fl_mish_f64(f64x16 x) {
  f64x16 e = fl_exp_f64(x > 40.0 ? fl_f64(40.0) : x);
  f64x16 n = fl_fma(e, e, e + e);
  f64x16 y = x * n / (n + 2.0);
  return x > 40.0 ? x : y;
}
)fl",
       {"exp"}},
      {"softplus",
       DType::f64,
       1,
       "fl_softplus_f64",
       R"fl(
FL_INLINE f64x16 fl_softplus_f64(f64x16 x) {
  f64x16 l = fl_log1p_f64(fl_exp_f64(-fl_abs(x)));
  return x > 0.0 ? x + l : l;
}
)fl",
       {"exp", "log1p"}},
      {"sinh",
       DType::f64,
       1,
       "fl_sinh_f64",
       R"fl(
FL_INLINE f64x16 fl_sinh_f64(f64x16 x) {
  f64x16 a = fl_abs(x);
  f64x16 e = fl_expm1_f64(a > 700.0 ? fl_f64(700.0) : a);
  f64x16 y = 0.5 * (e + e / (e + 1.0));
  if (fl_any(a > 700.0)) {
    f64x16 half = fl_exp_f64(a * 0.5);
    y = a > 700.0 ? 0.5 * half * half : y;
  }
  return fl_with_sign(y, x);
}
)fl",
       {"exp", "expm1"}},
      {"cosh",
       DType::f64,
       1,
       "fl_cosh_f64",
       R"fl(
FL_INLINE f64x16 fl_cosh_f64(f64x16 x) {
  f64x16 a = fl_abs(x);
  f64x16 e = 0.5 * fl_exp_f64(a > 700.0 ? fl_f64(700.0) : a);
  f64x16 y = e + 0.25 / e;
  if (fl_any(a > 700.0)) {
    f64x16 half = fl_exp_f64(a * 0.5);
    y = a > 700.0 ? 0.5 * half * half : y;
  }
  return y;
}
)fl",
       {"exp"}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
