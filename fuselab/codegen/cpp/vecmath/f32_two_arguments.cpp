// pow and atan2 in f32.
#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

const Group& f32_two_arguments() {
  static const Group group = {
      // x^y from m = |x|^y: signs, domain and the cases that ignore a NaN, as in C.
      {"_pow_signs",
       DType::f32,
       3,
       "fl_pow_signs_f32",
       R"fl(
FL_INLINE f32x16 fl_pow_signs_f32(f32x16 x, f32x16 y, f32x16 m) {
  f32x16 ay = fl_abs(y), hy = 0.5f * ay;
  i32x16 whole = ay >= 0x1p23f | (ay + 0x1p23f) - 0x1p23f == ay;
  i32x16 odd = whole & ay < 0x1p24f & !(hy >= 0x1p23f | (hy + 0x1p23f) - 0x1p23f == hy);
  f32x16 r = fl_bits(x) < 0 & odd ? -m : m;
  r = x < 0.0f & x > -__builtin_inff() & !whole ? fl_f32(__builtin_nanf("")) : r;
  r = x != x | y != y ? x + y : r;
  return y == 0.0f | x == 1.0f ? fl_f32(1.0f) : r;
}
)fl",
       {}},
      // 2^(y log2|x|): log2|x| = s + r in two floats, 2^-34 off relatively (as f32_logarithms.cpp); the product z + zl too; then
      // 2^k 2^(j/8) e^t with only the last addition rounded at full size.
      {"pow",
       DType::f32,
       2,
       "fl_pow_f32",
       R"fl(
FL_INLINE f32x16 fl_pow_f32(f32x16 x, f32x16 y) {
  f32x16 a = fl_abs(x), bias = fl_f32(0.0f);
  i32x16 b = fl_bits(a);
  if (fl_any(a < 0x1p-126f)) {
    b = a < 0x1p-126f ? fl_bits(a * 0x1p24f) : b;
    bias = a < 0x1p-126f ? fl_f32(-24.0f) : bias;
  }
  i32x16 t = b - 0x3f3504f3, e = t >> 23, i = t >> 20;
  f32x16 f = fl_fma(fl_float(b - (e << 23)), fl_lookup8_f32(fl_log_c_f32, i), fl_f32(-1.0f));
  const f32x16 high = {-0x1.d67400p-2f, -0x1.49a800p-2f, -0x1.fbc000p-3f, -0x1.664000p-4f, 0.0f, 0x1.22d800p-3f, 0x1.32c000p-2f, 0x1.a90000p-2f,
                       -0x1.d67400p-2f, -0x1.49a800p-2f, -0x1.fbc000p-3f, -0x1.664000p-4f, 0.0f, 0x1.22d800p-3f, 0x1.32c000p-2f, 0x1.a90000p-2f};
  const f32x16 low = {-0x1.3e032ep-18f, 0x1.ed0cbap-20f, -0x1.6b9026p-19f, 0x1.20a6dep-21f, 0.0f, 0x1.6e155ap-18f, -0x1.1c8f12p-22f, -0x1.a39fbep-20f,
                      -0x1.3e032ep-18f, 0x1.ed0cbap-20f, -0x1.6b9026p-19f, 0x1.20a6dep-21f, 0.0f, 0x1.6e155ap-18f, -0x1.1c8f12p-22f, -0x1.a39fbep-20f};
  f32x16 p = fl_fma(f, fl_f32(0x1.254c06p-3f), fl_f32(-0x1.56a11ep-3f));
  p = fl_fma(p, f, fl_f32(0x1.99979cp-3f));
  p = fl_fma(p, f, fl_f32(-0x1.ffffa0p-3f));
  p = fl_fma(p, f, fl_f32(0x1.555556p-2f));
  f32x16 sq = f * f;
  f32x16 cubic = sq * (f * p);
  f32x16 square = fl_fma(sq, fl_f32(-0.5f), f);
  f32x16 h = square + cubic;
  f32x16 l = ((square - h) + cubic) + (fl_fma(sq, fl_f32(-0.5f), f - square) + fl_fma(f, f, -sq) * -0.5f);
  f32x16 ph = h * 0x1.715476p+0f;
  f32x16 pl = fl_fma(h, fl_f32(0x1.715476p+0f), -ph) + fl_fma(l, fl_f32(0x1.715476p+0f), h * 0x1.4ae0c0p-26f);
  f32x16 big = __builtin_convertvector(e, f32x16) + bias + fl_lookup8_f32(high, i);
  f32x16 s = big + ph;
  f32x16 r = (ph - (s - big)) + (pl + fl_lookup8_f32(low, i));
  f32x16 sum = s + r;
  r = (s - sum) + r;
  s = sum;
  f32x16 z = y * s;
  f32x16 zl = fl_fma(y, r, fl_fma(y, s, -z));
  f32x16 shifted = fl_fma(z, fl_f32(8.0f), fl_f32(0x1.8p23f));
  f32x16 d = fl_fma(shifted - 0x1.8p23f, fl_f32(-0.125f), z);
  i32x16 k = fl_bits(shifted);
  f32x16 c = fl_lookup8_f32(fl_exp_table_f32, k), cl = fl_lookup8_f32(fl_exp_table_low_f32, k);
  f32x16 th = d * 0x1.62e430p-1f;
  f32x16 tl = fl_fma(d, fl_f32(0x1.62e430p-1f), -th) + fl_fma(d, fl_f32(-0x1.05c610p-29f), zl * 0x1.62e430p-1f);
  th += tl;
  f32x16 q = fl_fma(th, fl_f32(0x1.555a68p-5f), fl_f32(0x1.555c80p-3f));
  q = fl_fma(q, th, fl_f32(0.5f));
  f32x16 v = fl_fma(c, fl_fma(th * th, q, th), cl);
  f32x16 m = fl_float(fl_bits(c + v) + ((k >> 3) << 23));
  if (fl_any(!(x >= 0x1p-126f & x < __builtin_inff() & fl_abs(z) <= 125.0f))) {
    i32x16 inside = fl_abs(z) <= 160.0f, large = (a > 1.0f) == (y > 0.0f);
    f32x16 near = fl_scale_f32(c, v, inside ? (k - 0x4b400000) >> 3 : 0);
    m = fl_abs(z) <= 125.0f ? m : inside ? near : z > 0.0f ? fl_f32(__builtin_inff()) : fl_f32(0.0f);
    i32x16 end = fl_abs(y) == __builtin_inff() | !(a > 0.0f & a < __builtin_inff());
    m = end ? (large ? fl_f32(__builtin_inff()) : fl_f32(0.0f)) : m;
    m = a == 1.0f ? fl_f32(1.0f) : m;
    m = fl_pow_signs_f32(x, y, m);
  }
  return m;
}
)fl",
       {"_pow_signs", "_scale", "_lookup8", "_log_head", "_exp_table"}},
      // atan(min / max) = atan(c) + atan(q), q = (min - c max) / (max + c min) in two floats, c the nearest eighth of the
      // quotient;
      // then from pi/2 or pi where |y| > |x| or x < 0. One rounding at the end. What could overflow or underflow goes through
      // f64.
      {"atan2",
       DType::f32,
       2,
       "fl_atan2_f32",
       R"fl(
FL_INLINE f32x16 fl_atan2_f32(f32x16 y, f32x16 x) {
  const f32x16 angle = {0x0.0p+0f,      0x1.fd5baap-4f, 0x1.f5b760p-3f, 0x1.6f6194p-2f, 0x1.dac670p-2f,
                        0x1.1e00bap-1f, 0x1.4978fap-1f, 0x1.700a7cp-1f, 0x1.921fb6p-1f};
  const f32x16 angle_low = {0x0.0p+0f,       -0x1.54f424p-30f, -0x1.b4dfc8p-29f, 0x1.e4def0p-30f, 0x1.586ed4p-28f,
                            0x1.7bdfd6p-26f, 0x1.934f70p-28f,  0x1.5e118cp-27f,  -0x1.777a5cp-26f};
  f32x16 ay = fl_abs(y), ax = fl_abs(x);
  i32x16 steep = ay > ax;
  f32x16 big = steep ? ay : ax, small = steep ? ax : ay;
  f32x16 shifted = fl_fma(small / big, fl_f32(8.0f), fl_f32(0x1.8p23f));
  f32x16 c = (shifted - 0x1.8p23f) * 0.125f;
  f32x16 n = fl_fma(-c, big, small);
  f32x16 d = fl_fma(c, small, big);
  f32x16 dl = fl_fma(c, small, big - d);
  f32x16 d1 = 1.0f / d;
  f32x16 q = n * d1;
  f32x16 ql = (fl_fma(-q, d, n) - q * dl) * d1;
  f32x16 u = q * q;
  f32x16 p = fl_fma(u, fl_f32(0x1.97e960p-3f), fl_f32(-0x1.55550ep-2f));
  ql = fl_fma(u * q, p, ql + fl_lookup_f32(angle_low, fl_bits(shifted)));
  f32x16 base = fl_lookup_f32(angle, fl_bits(shifted));
  f32x16 h = base + q;
  f32x16 l = (q - (h - base)) + ql;
  i32x16 left = fl_bits(x) < 0, minus = steep != left;
  f32x16 turn = steep ? fl_f32(0x1.921fb6p+0f) : left ? fl_f32(0x1.921fb6p+1f) : fl_f32(0.0f);
  f32x16 turn_low = steep ? fl_f32(-0x1.777a5cp-25f) : left ? fl_f32(-0x1.777a5cp-24f) : fl_f32(0.0f);
  i32x16 flip = minus & (i32)0x80000000;
  h = fl_float(fl_bits(h) ^ flip);
  l = fl_float(fl_bits(l) ^ flip);
  f32x16 s = turn + h;
  f32x16 r = s + ((h - (s - turn)) + (l + turn_low));
  i32x16 plain = big >= 0x1p-60f & big <= 0x1p100f & (small >= 0x1p-100f | small == 0.0f);
  if (fl_any(!plain)) r = plain ? r : fl_to_f32(fl_atan2_f64(fl_to_f64(y), fl_to_f64(x)));
  return fl_with_sign(r, y);
}
)fl",
       {"_lookup", "atan2:f64"}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
