// Logarithms, powers and inverse hyperbolic functions in f64.
#include <string>

#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

namespace {

/// The text of log, log2 or log10: `result` makes y, right for ordinary x, from n, h and l, where log(x) = n log(2) + h + l.
std::string logarithm(const std::string& function, const std::string& result) {
  return R"fl(
FL_INLINE f64x16 )fl" +
         function + R"fl((f64x16 x) {
  i64x16 special = __builtin_convertvector(fl_bits(x), u64x16) - 0x0010000000000000ul >= 0x7fe0000000000000ul;
  i64x16 b = fl_bits(x), bias = (i64x16)(0l);
  bool any_special = fl_any(special);
  if (any_special) {
    i64x16 small = x < 0x1p-1022 & x > 0.0;
    b = small ? fl_bits(x * 0x1p54) : b;
    bias = small ? (i64x16)(-54l) : (i64x16)(0l);
  }
  i64x16 e = (b - 0x3fe6a09e667f3bcdl) >> 52;
  f64x16 f = fl_float(b - (e << 52)) - 1.0;
  f64x16 n = fl_small_int_f64(e + bias);
  f64x16 l, h = fl_log_head_f64(f, l);
)fl" + result +
         R"fl(  if (any_special) {
    f64x16 edge = x == 0.0 ? fl_f64(-__builtin_inf()) : x < 0.0 ? fl_f64(__builtin_nan("")) : x;
    y = special & !(x < 0x1p-1022 & x > 0.0) ? edge : y;
  }
  return y;
}
)fl";
}

}  // namespace

const Group& f64_logarithms() {
  static const std::string log = logarithm("fl_log_f64", R"fl(  f64x16 big = n * 0x1.62e42fefa3800p-1;
  f64x16 s = big + h;
  f64x16 y = s + ((h - (s - big)) + fl_fma(n, fl_f64(0x1.ef35793c76730p-45), l));
)fl");
  static const std::string log2 = logarithm("fl_log2_f64", R"fl(  f64x16 hl = h + l;
  l = (h - hl) + l;
  f64x16 ph = hl * 0x1.71547652b82fep+0;
  f64x16 pl = fl_fma(hl, fl_f64(0x1.71547652b82fep+0), -ph) + fl_fma(hl, fl_f64(0x1.777d0ffda0d24p-56), l * 0x1.71547652b82fep+0);
  f64x16 s = n + ph;
  f64x16 y = s + ((ph - (s - n)) + pl);
)fl");
  static const std::string log10 = logarithm("fl_log10_f64", R"fl(  f64x16 hl = h + l;
  l = (h - hl) + l;
  f64x16 ph = hl * 0x1.bcb7b1526e50ep-2;
  f64x16 pl = fl_fma(hl, fl_f64(0x1.bcb7b1526e50ep-2), -ph) + fl_fma(hl, fl_f64(0x1.95355baaafad3p-57), l * 0x1.bcb7b1526e50ep-2);
  f64x16 big = n * 0x1.34413509f7800p-2;
  f64x16 s = big + ph;
  f64x16 y = s + ((ph - (s - big)) + fl_fma(n, fl_f64(0x1.fef311f12b358p-46), pl));
)fl");
  static const Group group = {
      // |k| < 2^51 to f64 without a conversion instruction, which AVX2 lacks.
      {"_small_int",
       DType::f64,
       1,
       "fl_small_int_f64",
       R"fl(
FL_INLINE f64x16 fl_small_int_f64(i64x16 k) { return fl_float(k + 0x4338000000000000l) - 0x1.8p52; }
)fl",
       {}},
      // log(1 + f) = result + l for f in [sqrt(1/2) - 1, sqrt(2) - 1]: f - f^2/2 + s (f^2/2 + s^2 R(s^2)), s = f / (2 + f).
      {"_log_head",
       DType::f64,
       2,
       "fl_log_head_f64",
       R"fl(
FL_INLINE f64x16 fl_log_head_f64(f64x16 f, f64x16& l) {
  f64x16 s = f / (2.0 + f);
  f64x16 z = s * s;
  f64x16 p = fl_fma(z, fl_f64(0x1.0f6288bffa55dp-3), fl_f64(0x1.0f5cd6f654414p-3));
  p = fl_fma(p, z, fl_f64(0x1.3b20ab0175c6bp-3));
  p = fl_fma(p, z, fl_f64(0x1.745cde3863d2ap-3));
  p = fl_fma(p, z, fl_f64(0x1.c71c7258f6e89p-3));
  p = fl_fma(p, z, fl_f64(0x1.249249242b447p-2));
  p = fl_fma(p, z, fl_f64(0x1.9999999999dffp-2));
  p = fl_fma(p, z, fl_f64(0x1.5555555555555p-1));
  f64x16 sq = f * f;
  f64x16 h = fl_fma(sq, fl_f64(-0.5), f);
  l = fl_fma(sq, fl_f64(-0.5), f - h) - 0.5 * fl_fma(f, f, -sq);
  l = fl_fma(s, fl_fma(sq, fl_f64(0.5), z * p), l);
  return h;
}
)fl",
       {}},
      {"log", DType::f64, 1, "fl_log_f64", log, {"_log_head", "_small_int"}},
      {"log2", DType::f64, 1, "fl_log2_f64", log2, {"_log_head", "_small_int"}},
      {"log10", DType::f64, 1, "fl_log10_f64", log10, {"_log_head", "_small_int"}},
      {"log1p",
       DType::f64,
       1,
       "fl_log1p_f64",
       R"fl(
FL_INLINE f64x16 fl_log1p_f64(f64x16 x) {
  f64x16 u = 1.0 + x;
  f64x16 c = x > 1.0 ? 1.0 - (u - x) : x - (u - 1.0);
  i64x16 e = (fl_bits(u) - 0x3fe6a09e667f3bcdl) >> 52;
  f64x16 f = fl_float(fl_bits(u) - (e << 52)) - 1.0;
  c = c * fl_float(0x3ff0000000000000l - ((e > 1000l ? 1000l : e) << 52));
  f64x16 g = f + c;
  c = (f - g) + c;
  f64x16 n = fl_small_int_f64(e);
  f64x16 l, h = fl_log_head_f64(g, l);
  l = fl_fma(c, fl_fma(g, g, 1.0 - g), l);
  f64x16 big = n * 0x1.62e42fefa3800p-1;
  f64x16 s = big + h;
  f64x16 y = s + ((h - (s - big)) + fl_fma(n, fl_f64(0x1.ef35793c76730p-45), l));
  if (fl_any(!(x > -1.0 & x < __builtin_inf()))) {
    f64x16 edge = x < -1.0 ? fl_f64(__builtin_nan("")) : x == -1.0 ? fl_f64(-__builtin_inf()) : x;
    y = x > -1.0 & x < __builtin_inf() ? y : edge;
  }
  return fl_with_sign(y, x);
}
)fl",
       {"_log_head", "_small_int"}},
      // log(x) = result + low, about 2^-68 off, for finite x > 0: 2 s + 2/3 s^3 + s^5 A(s^2), s = f / (2 + f) in two floats.
      {"_log_two",
       DType::f64,
       2,
       "fl_log_two_f64",
       R"fl(
FL_INLINE f64x16 fl_log_two_f64(f64x16 x, f64x16& low) {
  i64x16 b = fl_bits(x), bias = (i64x16)(0l);
  i64x16 small = x < 0x1p-1022;
  if (fl_any(small)) {
    b = small ? fl_bits(x * 0x1p54) : b;
    bias = small ? (i64x16)(-54l) : (i64x16)(0l);
  }
  i64x16 e = (b - 0x3fe6a09e667f3bcdl) >> 52;
  f64x16 f = fl_float(b - (e << 52)) - 1.0;
  f64x16 n = fl_small_int_f64(e + bias);
  f64x16 dh = 2.0 + f;
  f64x16 dl = f - (dh - 2.0);
  f64x16 d1 = 1.0 / dh;
  f64x16 s = f * d1;
  f64x16 sl = fl_fma(-s, dl, fl_fma(-s, dh, f)) * d1;
  f64x16 z = s * s;
  f64x16 zl = fl_fma(s, s, -z) + 2.0 * s * sl;
  f64x16 p = fl_fma(z, fl_f64(0x1.c31cf42991185p-4), fl_f64(0x1.aaebc4b850f52p-4));
  p = fl_fma(p, z, fl_f64(0x1.e20b821ab8e4fp-4));
  p = fl_fma(p, z, fl_f64(0x1.1110944b9bc07p-3));
  p = fl_fma(p, z, fl_f64(0x1.3b13b311c988cp-3));
  p = fl_fma(p, z, fl_f64(0x1.745d17417eb1bp-3));
  p = fl_fma(p, z, fl_f64(0x1.c71c71c72277fp-3));
  p = fl_fma(p, z, fl_f64(0x1.249249249246fp-2));
  p = fl_fma(p, z, fl_f64(0x1.999999999999ap-2));
  p *= z;
  f64x16 w = p + 0x1.5555555555555p-1;
  f64x16 wl = (p - (w - 0x1.5555555555555p-1)) + 0x1.5555555555555p-55;
  f64x16 v = z * w;
  f64x16 vl = fl_fma(z, w, -v) + fl_fma(z, wl, zl * w);
  f64x16 q = s * v;
  f64x16 ql = fl_fma(s, v, -q) + fl_fma(s, vl, sl * v);
  f64x16 big = n * 0x1.62e42fefa3800p-1;
  f64x16 a = big + (s + s);
  f64x16 al = (s + s) - (a - big);
  f64x16 y = a + q;
  al += (q - (y - a)) + (fl_fma(n, fl_f64(0x1.ef35793c76730p-45), ql) + (sl + sl));
  f64x16 r = y + al;
  low = (y - r) + al;
  return r;
}
)fl",
       {"_small_int"}},
      // x^y from m = |x|^y: signs, domain and the cases that ignore a NaN, as in C.
      {"_pow_signs",
       DType::f64,
       3,
       "fl_pow_signs_f64",
       R"fl(
FL_INLINE f64x16 fl_pow_signs_f64(f64x16 x, f64x16 y, f64x16 m) {
  f64x16 ay = fl_abs(y), hy = 0.5 * ay;
  i64x16 whole = ay >= 0x1p52 | (ay + 0x1p52) - 0x1p52 == ay;
  i64x16 odd = whole & ay < 0x1p53 & !(hy >= 0x1p52 | (hy + 0x1p52) - 0x1p52 == hy);
  i64x16 negative = fl_bits(x) < 0l;
  f64x16 r = negative & odd ? -m : m;
  r = x < 0.0 & x > -__builtin_inf() & !whole ? fl_f64(__builtin_nan("")) : r;
  r = x != x | y != y ? x + y : r;
  return y == 0.0 | x == 1.0 ? fl_f64(1.0) : r;
}
)fl",
       {}},
      {"pow",
       DType::f64,
       2,
       "fl_pow_f64",
       R"fl(
FL_INLINE f64x16 fl_pow_f64(f64x16 x, f64x16 y) {
  f64x16 a = fl_abs(x);
  i64x16 inside = a > 0.0 & a < __builtin_inf();
  f64x16 low, h = fl_log_two_f64(inside ? a : fl_f64(1.0), low);
  f64x16 p = y * h;
  f64x16 m = fl_exp_sum_f64(p, fl_fma(y, h, -p) + y * low);
  i64x16 large = (a > 1.0) == (y > 0.0);
  m = fl_abs(y) == __builtin_inf() | !inside ? (large ? fl_f64(__builtin_inf()) : fl_f64(0.0)) : m;
  m = fl_abs(y) == __builtin_inf() & a == 1.0 ? fl_f64(1.0) : m;
  return fl_pow_signs_f64(x, y, m);
}
)fl",
       {"_log_two", "_exp_sum", "_pow_signs"}},
      {"asinh",
       DType::f64,
       1,
       "fl_asinh_f64",
       R"fl(
FL_INLINE f64x16 fl_asinh_f64(f64x16 x) {
  f64x16 a = fl_abs(x);
  f64x16 c = a > 0x1p28 ? fl_f64(1.0) : a;
  f64x16 y = fl_log1p_f64(c + c * c / (1.0 + __builtin_elementwise_sqrt(fl_fma(c, c, fl_f64(1.0)))));
  if (fl_any(a > 0x1p28)) y = a > 0x1p28 ? fl_log_f64(a) + 0x1.62e42fefa39efp-1 : y;
  return fl_with_sign(x != x ? x : y, x);
}
)fl",
       {"log", "log1p"}},
      {"acosh",
       DType::f64,
       1,
       "fl_acosh_f64",
       R"fl(
FL_INLINE f64x16 fl_acosh_f64(f64x16 x) {
  f64x16 t = (x > 0x1p28 ? fl_f64(2.0) : x) - 1.0;
  f64x16 y = fl_log1p_f64(t + __builtin_elementwise_sqrt(fl_fma(t, t, t + t)));
  if (fl_any(x > 0x1p28)) y = x > 0x1p28 ? fl_log_f64(x) + 0x1.62e42fefa39efp-1 : y;
  return x < 1.0 ? fl_f64(__builtin_nan("")) : y;
}
)fl",
       {"log", "log1p"}},
      {"atanh",
       DType::f64,
       1,
       "fl_atanh_f64",
       R"fl(
FL_INLINE f64x16 fl_atanh_f64(f64x16 x) {
  f64x16 a = fl_abs(x);
  return fl_with_sign(0.5 * fl_log1p_f64((a + a) / (1.0 - a)), x);
}
)fl",
       {"log1p"}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
