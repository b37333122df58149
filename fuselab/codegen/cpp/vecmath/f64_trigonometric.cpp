// sin cos tan, their inverses and fmod in f64.
#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

const Group& f64_trigonometric() {
  static const Group group = {
      // |x| = n pi/2 + result + rl; the low two bits of q are n mod 4.
      {"_angle",
       DType::f64,
       3,
       "fl_angle_f64",
       R"fl(
FL_INLINE f64x16 fl_angle_f64(f64x16 a, f64x16& rl, i64x16& q) {
  f64x16 shifted = fl_fma(a, fl_f64(0x1.45f306dc9c883p-1), fl_f64(0x1.8p52));
  f64x16 n = shifted - 0x1.8p52;
  f64x16 r1 = fl_fma(n, fl_f64(-0x1.921fb54442d18p+0), a);
  f64x16 rh = fl_fma(n, fl_f64(-0x1.1a62633200000p-54), r1);
  rl = fl_fma(n, fl_f64(-0x1.1a62633200000p-54), r1 - rh);
  rl = fl_fma(n, fl_f64(-0x1.27044533e63a0p-142), fl_fma(n, fl_f64(0x1.747f23e32ed70p-87), rl));
  q = fl_bits(shifted);
  if (fl_any(!(a <= 1.0e6))) {
    for (int i = 0; i < 16; ++i) {
      if (a[i] <= 1.0e6) continue;
      f64 h = __builtin_nan(""), l = 0.0;
      if (a[i] < __builtin_inf()) q[i] = fl_large_angle(a[i], &h, &l);
      rh[i] = h;
      rl[i] = l;
    }
  }
  return rh;
}
)fl",
       {"_large_angle"}},
      {"_sin_head",
       DType::f64,
       3,
       "fl_sin_head_f64",
       R"fl(
FL_INLINE f64x16 fl_sin_head_f64(f64x16 rh, f64x16 rl, f64x16& low) {
  f64x16 u = rh * rh;
  f64x16 p = fl_fma(u, fl_f64(-0x1.aacf23d3b00fbp-41), fl_f64(0x1.6120f0e5e1f4ep-33));
  p = fl_fma(p, u, fl_f64(-0x1.ae64533fd1070p-26));
  p = fl_fma(p, u, fl_f64(0x1.71de3a53ce547p-19));
  p = fl_fma(p, u, fl_f64(-0x1.a01a01a019372p-13));
  p = fl_fma(p, u, fl_f64(0x1.111111111110fp-7));
  f64x16 c = u * -0x1.5555555555555p-3;
  f64x16 cl = fl_fma(fl_fma(rh, rh, -u), fl_f64(-0x1.5555555555555p-3), fl_fma(u, fl_f64(-0x1.5555555555555p-3), -c));
  f64x16 m = rh * c;
  f64x16 ml = fl_fma(rh, fl_fma(u * u, p, cl), fl_fma(rh, c, -m));
  f64x16 s = rh + m;
  low = ((rh - s) + m) + fl_fma(rl, fl_fma(u, fl_f64(-0.5), fl_f64(1.0)), ml);
  return s;
}
)fl",
       {}},
      {"_cos_head",
       DType::f64,
       3,
       "fl_cos_head_f64",
       R"fl(
FL_INLINE f64x16 fl_cos_head_f64(f64x16 rh, f64x16 rl, f64x16& low) {
  f64x16 u = rh * rh;
  f64x16 p = fl_fma(u, fl_f64(0x1.aac3dc1ce7905p-45), fl_f64(-0x1.93933440b409cp-37));
  p = fl_fma(p, u, fl_f64(0x1.1eed8ca026e58p-29));
  p = fl_fma(p, u, fl_f64(-0x1.27e4fb75fa5a9p-22));
  p = fl_fma(p, u, fl_f64(0x1.a01a01a018dbbp-16));
  p = fl_fma(p, u, fl_f64(-0x1.6c16c16c16c10p-10));
  p = fl_fma(p, u, fl_f64(0x1.5555555555555p-5));
  f64x16 h = fl_fma(u, fl_f64(-0.5), fl_f64(1.0));
  f64x16 l = fl_fma(u, fl_f64(-0.5), 1.0 - h);
  low = fl_fma(u * u, p, l) - fl_fma(fl_fma(rh, rh, -u), fl_f64(0.5), rh * rl);
  return h;
}
)fl",
       {}},
      {"sin",
       DType::f64,
       1,
       "fl_sin_f64",
       R"fl(
FL_INLINE f64x16 fl_sin_f64(f64x16 x) {
  f64x16 rl, sl, cl;
  i64x16 q;
  f64x16 rh = fl_angle_f64(fl_abs(x), rl, q);
  f64x16 sh = fl_sin_head_f64(rh, rl, sl);
  f64x16 ch = fl_cos_head_f64(rh, rl, cl);
  f64x16 y = (q & 1l) != 0 ? ch + cl : sh + sl;
  return fl_float(fl_bits(y) ^ ((q << 62) & (i64)0x8000000000000000ul) ^ (fl_bits(x) & (i64)0x8000000000000000ul));
}
)fl",
       {"_angle", "_sin_head", "_cos_head"}},
      {"cos",
       DType::f64,
       1,
       "fl_cos_f64",
       R"fl(
FL_INLINE f64x16 fl_cos_f64(f64x16 x) {
  f64x16 rl, sl, cl;
  i64x16 q;
  f64x16 rh = fl_angle_f64(fl_abs(x), rl, q);
  f64x16 sh = fl_sin_head_f64(rh, rl, sl);
  f64x16 ch = fl_cos_head_f64(rh, rl, cl);
  f64x16 y = (q & 1l) != 0 ? sh + sl : ch + cl;
  return fl_float(fl_bits(y) ^ (((q + 1l) << 62) & (i64)0x8000000000000000ul));
}
)fl",
       {"_angle", "_sin_head", "_cos_head"}},
      {"tan",
       DType::f64,
       1,
       "fl_tan_f64",
       R"fl(
FL_INLINE f64x16 fl_tan_f64(f64x16 x) {
  f64x16 rl, sl, cl;
  i64x16 q;
  f64x16 rh = fl_angle_f64(fl_abs(x), rl, q);
  f64x16 sh = fl_sin_head_f64(rh, rl, sl);
  f64x16 ch = fl_cos_head_f64(rh, rl, cl);
  i64x16 odd = (q & 1l) != 0;
  f64x16 t = sh + sl, d = ch + cl;
  sl = (sh - t) + sl;
  cl = (ch - d) + cl;
  f64x16 nh = odd ? d : t, nl = odd ? cl : sl, dh = odd ? -t : d, dl = odd ? -sl : cl;
  f64x16 d1 = 1.0 / dh;
  f64x16 y = nh * d1;
  f64x16 e = fl_fma(-y, dh, nh) + fl_fma(-y, dl, nl);
  y = fl_fma(e, d1, y);
  return fl_float(fl_bits(y) ^ (fl_bits(x) & (i64)0x8000000000000000ul));
}
)fl",
       {"_angle", "_sin_head", "_cos_head"}},
      // atan(n / d) for n, d >= 0: one of n/d, (n-d)/(n+d) + pi/4, -d/n + pi/2, so that the argument of the polynomial is below
      // 0.42.
      {"_atan_head",
       DType::f64,
       2,
       "fl_atan_head_f64",
       R"fl(
FL_INLINE f64x16 fl_atan_head_f64(f64x16 n, f64x16 d) {
  i64x16 mid = n > d * 0x1.a8279a0p-2, high = n > d * 0x1.3504f33p+1;
  f64x16 num = high ? -d : mid ? n - d : n;
  f64x16 den = high ? n : mid ? n + d : d;
  f64x16 base = high ? fl_f64(0x1.921fb54442d18p+0) : mid ? fl_f64(0x1.921fb54442d18p-1) : fl_f64(0.0);
  f64x16 base_low = high ? fl_f64(0x1.1a62633145c07p-54) : mid ? fl_f64(0x1.1a62633145c07p-55) : fl_f64(0.0);
  f64x16 s = num / den;
  f64x16 sl = fl_fma(-s, den, num) / den;
  f64x16 u = s * s;
  f64x16 p = fl_fma(u, fl_f64(-0x1.a93be2ca7654cp-7), fl_f64(0x1.e51cccc37dfe8p-6));
  p = fl_fma(p, u, fl_f64(-0x1.4c2fdd0455357p-5));
  p = fl_fma(p, u, fl_f64(0x1.817b5ff768c8ep-5));
  p = fl_fma(p, u, fl_f64(-0x1.ae892b1cb9c38p-5));
  p = fl_fma(p, u, fl_f64(0x1.e1d2a6a5d720cp-5));
  p = fl_fma(p, u, fl_f64(-0x1.11108d03800ecp-4));
  p = fl_fma(p, u, fl_f64(0x1.3b13aafcccd97p-4));
  p = fl_fma(p, u, fl_f64(-0x1.745d17129d405p-4));
  p = fl_fma(p, u, fl_f64(0x1.c71c71c60e01ep-4));
  p = fl_fma(p, u, fl_f64(-0x1.2492492490a34p-3));
  p = fl_fma(p, u, fl_f64(0x1.9999999999970p-3));
  p = fl_fma(p, u, fl_f64(-0x1.5555555555555p-2));
  f64x16 t = fl_fma(s * u, p, sl + base_low);
  f64x16 y = base + s;
  return y + ((base == 0.0 ? (s - y) : s - (y - base)) + t);
}
)fl",
       {}},
      {"atan",
       DType::f64,
       1,
       "fl_atan_f64",
       R"fl(
FL_INLINE f64x16 fl_atan_f64(f64x16 x) {
  return fl_with_sign(fl_atan_head_f64(fl_abs(x) > 0x1p60 ? fl_f64(0x1p60) : fl_abs(x), fl_f64(1.0)), x);
}
)fl",
       {"_atan_head"}},
      {"atan2",
       DType::f64,
       2,
       "fl_atan2_f64",
       R"fl(
FL_INLINE f64x16 fl_atan2_f64(f64x16 x, f64x16 y) {
  // atan2(x, y): x is the ordinate.
  f64x16 n = fl_abs(x), d = fl_abs(y);
  i64x16 huge = n > 0x1p1000 | d > 0x1p1000, tiny = n < 0x1p-900 & d < 0x1p-900;
  i64x16 n_infinite = n == __builtin_inf(), d_infinite = d == __builtin_inf();
  f64x16 scale = huge ? fl_f64(0x1p-4) : tiny ? fl_f64(0x1p100) : fl_f64(1.0);
  n = n_infinite ? fl_f64(1.0) : d_infinite ? fl_f64(0.0) : n * scale;
  d = d_infinite | (n == 0.0 & d == 0.0) ? fl_f64(1.0) : n_infinite ? fl_f64(0.0) : d * scale;
  f64x16 r = fl_atan_head_f64(n, d);
  f64x16 y2 = fl_bits(y) < 0l ? 0x1.921fb54442d18p+1 - (r - 0x1.1a62633145c07p-53) : r;
  return x != x | y != y ? x + y : fl_with_sign(y2, x);
}
)fl",
       {"_atan_head"}},
      // asin(s + low) for s = a (a <= 1/2) or sqrt((1 - a) / 2): result + low.
      {"_asin_head",
       DType::f64,
       2,
       "fl_asin_head_f64",
       R"fl(
FL_INLINE f64x16 fl_asin_head_f64(f64x16 a, f64x16& low) {
  i64x16 big = a > 0.5;
  f64x16 z = big ? fl_fma(a, fl_f64(-0.5), fl_f64(0.5)) : a * a;
  f64x16 s = big ? __builtin_elementwise_sqrt(z) : a;
  f64x16 sl = big & s > 0.0 ? fl_fma(-s, s, z) / (s + s) : fl_f64(0.0);
  f64x16 p = fl_fma(z, fl_f64(0x1.1415e7afa7366p-5), fl_f64(-0x1.ae1411776b644p-6));
  p = fl_fma(p, z, fl_f64(0x1.9806f89db9a86p-6));
  p = fl_fma(p, z, fl_f64(0x1.5319d572d2c28p-11));
  p = fl_fma(p, z, fl_f64(0x1.4858b48ce2cf9p-7));
  p = fl_fma(p, z, fl_f64(0x1.36b2bab14d8fep-7));
  p = fl_fma(p, z, fl_f64(0x1.7ba68c78263bap-7));
  p = fl_fma(p, z, fl_f64(0x1.c980a3c7dad47p-7));
  p = fl_fma(p, z, fl_f64(0x1.1c4f87a51232ep-6));
  p = fl_fma(p, z, fl_f64(0x1.6e8b9ad6de7c1p-6));
  p = fl_fma(p, z, fl_f64(0x1.f1c71ca91185ep-6));
  p = fl_fma(p, z, fl_f64(0x1.6db6db6d46b5ap-5));
  p = fl_fma(p, z, fl_f64(0x1.3333333333a62p-4));
  p = fl_fma(p, z, fl_f64(0x1.5555555555553p-3));
  low = fl_fma(s * z, p, sl);
  return s;
}
)fl",
       {}},
      {"asin",
       DType::f64,
       1,
       "fl_asin_f64",
       R"fl(
FL_INLINE f64x16 fl_asin_f64(f64x16 x) {
  f64x16 a = fl_abs(x);
  f64x16 low, s = fl_asin_head_f64(a, low);
  f64x16 far = 0x1.921fb54442d18p+0 - 2.0 * s;
  f64x16 far_low = (0x1.921fb54442d18p+0 - far) - 2.0 * s;
  f64x16 y = a > 0.5 ? far + (far_low - 2.0 * low + 0x1.1a62633145c07p-54) : s + low;
  return fl_with_sign(a > 1.0 ? fl_f64(__builtin_nan("")) : y, x);
}
)fl",
       {"_asin_head"}},
      {"acos",
       DType::f64,
       1,
       "fl_acos_f64",
       R"fl(
FL_INLINE f64x16 fl_acos_f64(f64x16 x) {
  f64x16 a = fl_abs(x);
  f64x16 low, s = fl_asin_head_f64(a, low);
  i64x16 big = a > 0.5;
  f64x16 part = big ? 2.0 * s : x, part_low = big ? 2.0 * low : fl_with_sign(low, x);
  // x > 1/2: part; x < -1/2: pi - part; between: pi/2 - part.
  f64x16 base = !big ? fl_f64(0x1.921fb54442d18p+0) : x < 0.0 ? fl_f64(0x1.921fb54442d18p+1) : fl_f64(0.0);
  f64x16 base_low = !big ? fl_f64(0x1.1a62633145c07p-54) : x < 0.0 ? fl_f64(0x1.1a62633145c07p-53) : fl_f64(0.0);
  f64x16 y = base - part;
  f64x16 r = y + (((base - y) - part) + (base_low - part_low));
  r = big & x > 0.0 ? part + part_low : r;
  return a > 1.0 ? fl_f64(__builtin_nan("")) : r;
}
)fl",
       {"_asin_head"}},
      {"fmod",
       DType::f64,
       2,
       "fl_fmod_f64",
       R"fl(
FL_INLINE f64x16 fl_fmod_f64(f64x16 x, f64x16 y) {
  f64x16 a = fl_abs(x), b = fl_abs(y);
  i64x16 tiny = a < 0x1p-900;
  f64x16 scale = tiny ? fl_f64(0x1p100) : fl_f64(1.0);
  i64x16 easy = !(a >= b) | b == 0.0 | !(a < __builtin_inf());
  a = (easy ? fl_f64(0.0) : a) * scale;
  b = (easy ? fl_f64(1.0) : b) * scale;
  // Take out a multiple of b 2^e below 2^29 at a time (2^52 where e is capped); each remainder is exact.
  while (fl_any(a >= b)) {
    i64x16 eb = b < 0x1p-900 ? (fl_bits(b * 0x1p52) >> 52) - 52l : fl_bits(b) >> 52;
    i64x16 e = (fl_bits(a) >> 52) - eb - 27l;
    e = e < 0l ? 0l : e > 2046l ? 2046l : e;
    i64x16 half = e >> 1;
    f64x16 t = b * fl_float((half + 1023l) << 52) * fl_float((e - half + 1023l) << 52);
    f64x16 q = a / t;
    q = (q + 0x1.8p52) - 0x1.8p52;
    f64x16 r = fl_fma(-q, t, a);
    r = r < 0.0 ? r + t : r;
    a = a >= b ? r : a;
  }
  f64x16 r = easy ? fl_abs(x) : a * (tiny ? fl_f64(0x1p-100) : fl_f64(1.0));
  r = y == 0.0 | fl_abs(x) == __builtin_inf() ? fl_f64(__builtin_nan("")) : fl_with_sign(r, x);
  return x != x | y != y ? x + y : r;
}
)fl",
       {}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
