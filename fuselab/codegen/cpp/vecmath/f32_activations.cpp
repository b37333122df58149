// sigmoid and softplus in f32, and what is made of them.
#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

const Group& f32_activations() {
  static const Group group = {
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
  // Below -23.5 ln2 = -16.29 the 1 + u loses u; beyond 80 u overflows.
  if (fl_any(!(fl_abs(x - 31.875f) <= 48.125f))) {
    i32x16 low = x < -16.25f & x > -150.0f;
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
      // max(x, 0) + log(1 + e^-|x|), with e^-|x| in two floats and one rounding at the end.
      {"softplus",
       DType::f32,
       1,
       "fl_softplus_f32",
       R"fl(
FL_INLINE f32x16 fl_softplus_f32(f32x16 x) {
  f32x16 a = -fl_abs(x);
  a = a < -105.0f ? fl_f32(-105.0f) : a;
  f32x16 shifted = fl_fma(a, fl_f32(0x1.715476p+0f), fl_f32(0x1.8p23f));
  f32x16 k = shifted - 0x1.8p23f;
  f32x16 tail;
  f32x16 th = fl_exp_head_f32(fl_fma(k, fl_f32(-0x1.62e430p-1f), a), k * 0x1.05c610p-29f, tail);
  f32x16 s = 1.0f + th;
  f32x16 lo = (th - (s - 1.0f)) + tail;
  f32x16 v = fl_float((fl_bits(shifted) << 23) + 0x3f800000);
  f32x16 eh = s + lo;
  f32x16 el = ((s - eh) + lo) * v;
  eh = eh * v;
  i32x16 small = a < -80.0f;
  if (fl_any(small)) {
    eh = small ? fl_scale_f32(s, lo, small ? fl_bits(shifted) - 0x4b400000 : 0) : eh;
    el = small ? fl_f32(0.0f) : el;
  }
  f32x16 l, h = fl_log1p_two_f32(eh, el, l);
  f32x16 m = x > 0.0f ? x : fl_f32(0.0f);
  f32x16 more = m > h ? m : h, less = m > h ? h : m;
  f32x16 y = more + less;
  y = y + ((less - (y - more)) + l);
  return x != x | x > 100.0f ? x : y;
}
)fl",
       {"_exp_head", "_scale", "_log1p_two"}},
      // 0 - softplus(-x): +0 for large arguments, as PyTorch.
      {"log_sigmoid",
       DType::f32,
       1,
       "fl_log_sigmoid_f32",
       R"fl(
FL_INLINE f32x16 fl_log_sigmoid_f32(f32x16 x) { return 0.0f - fl_softplus_f32(-x); }
)fl",
       {"softplus"}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
