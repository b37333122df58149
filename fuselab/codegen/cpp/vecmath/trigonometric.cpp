// sin, cos and tan in f32, and the reduction of large arguments that f32 and f64 share.
//
// |x| = n pi/2 + rh + rl. Up to 12000 pi/2 is taken in four floats: x - n P1 is exact (a multiple of 2^-24 below 1), and P2 has
// 11 bits, so that the rounding of the second step is found exactly (all is a multiple of 2^-36). Beyond that each such lane goes
// through a 192-bit product with the bits of 2/pi, so no argument is too large.
#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

const Group& trigonometric() {
  static const Group group = {
      // Quadrant (mod 4) of x >= 2^10 and x - quadrant pi/2 in two doubles, for finite x.
      {"_large_angle",
       DType::f64,
       3,
       "fl_large_angle",
       R"fl(
static __attribute__((noinline)) i64 fl_large_angle(f64 x, f64* rh, f64* rl) {
  static const u64 bits[] = {
      0x0000000000000000ul, 0xa2f9836e4e441529ul, 0xfc2757d1f534ddc0ul, 0xdb6295993c439041ul, 0xfe5163abdebbc561ul,
      0xb7246e3a424dd2e0ul, 0x06492eea09d1921cul, 0xfe1deb1cb129a73eul, 0xe88235f52ebb4484ul, 0xe99c7026b45f7e41ul,
      0x3991d639835339f4ul, 0x9c845f8bbdf9283bul, 0x1ff897ffde05980ful, 0xef2f118b5a0a6d1ful, 0x6d367ecf27cb09b7ul,
      0x4f463f669e5fea2dul, 0x7527bac7ebe5f17bul, 0x3d0739f78a5292eaul, 0x6bfb5fb11f8d5d08ul, 0x56033046fc7b6babul,
      0xf0cfbc209af4361dul,};
  u64 b = __builtin_bit_cast(u64, x);
  i64 shift = (i64)(b >> 52) - 1075;
  u64 m = (b & 0xffffffffffffful) | 0x10000000000000ul;
  // 2/pi = 0.b1 b2 ...; the bits before number shift - 1 only add multiples of 4 to the product. Bit i of the table is b(i - 63).
  u64 at = (u64)(shift + 62);
  u64 w[3];
  for (int i = 0; i < 3; ++i) {
    u64 k = at / 64 + i;
    w[i] = at % 64 == 0 ? bits[k] : (bits[k] << at % 64) | (bits[k + 1] >> (64 - at % 64));
  }
  unsigned __int128 low = (unsigned __int128)m * w[2];
  unsigned __int128 mid = (unsigned __int128)m * w[1] + (u64)(low >> 64);
  u64 top = m * w[0] + (u64)(mid >> 64);
  // The product mod 4 is top.mid.low * 2^-190: two bits of quadrant, then the fraction, taken to the nearest quadrant.
  i64 q = (i64)((top >> 61) + 1) >> 1;
  unsigned __int128 f = ((unsigned __int128)top << 64 | (u64)mid) << 2 | (u64)low >> 62;
  bool minus = (u64)(f >> 127) != 0;
  if (minus) f = -f;
  f64 h = (f64)(u64)(f >> 64), l = (f64)(u64)f;
  f64 fh = h * 0x1p-64, fl = (h >= 0x1p53 ? (f64)(i64)((u64)(f >> 64) - (u64)h) * 0x1p-64 : 0.0) + l * 0x1p-128;
  f64 s = fh + fl;
  fl = (fh - s) + fl;
  f64 y = s * 0x1.921fb54442d18p+0;
  f64 yl = __builtin_fma(s, 0x1.921fb54442d18p+0, -y) + __builtin_fma(s, 0x1.1a62633145c07p-54, fl * 0x1.921fb54442d18p+0);
  *rh = minus ? -y : y;
  *rl = minus ? -yl : yl;
  return q & 3;
}
)fl",
       {}},
      // |x| = n pi/2 + result + rl; the low two bits of q are n mod 4.
      {"_angle",
       DType::f32,
       3,
       "fl_angle_f32",
       R"fl(
FL_INLINE f32x16 fl_angle_f32(f32x16 a, f32x16& rl, i32x16& q) {
  f32x16 shifted = fl_fma(a, fl_f32(0x1.45f306p-1f), fl_f32(0x1.8p23f));
  f32x16 n = shifted - 0x1.8p23f;
  f32x16 r1 = fl_fma(n, fl_f32(-0x1.921fb6p+0f), a);
  f32x16 rh = fl_fma(n, fl_f32(0x1.778000p-25f), r1);
  rl = fl_fma(n, fl_f32(0x1.778000p-25f), r1 - rh);
  rl = fl_fma(n, fl_f32(-0x1.898cc6p-64f), fl_fma(n, fl_f32(-0x1.68c234p-39f), rl));
  q = fl_bits(shifted);
  if (fl_any(!(a <= 12000.0f))) {
    for (int i = 0; i < 16; ++i) {
      if (a[i] <= 12000.0f) continue;
      f64 h = __builtin_nan(""), l = 0.0;
      if (a[i] < __builtin_inff()) q[i] = (i32)fl_large_angle(a[i], &h, &l);
      rh[i] = (f32)h;
      rl[i] = (f32)(h - (f64)rh[i]);
    }
  }
  return rh;
}
)fl",
       {"_large_angle:f64"}},
      // sin(rh + rl) = result + low, |rh| <= pi/4: rh - rh^3/6 in two floats, because r^3/6 reaches a tenth of the result.
      {"_sin_head",
       DType::f32,
       3,
       "fl_sin_head_f32",
       R"fl(
FL_INLINE f32x16 fl_sin_head_f32(f32x16 rh, f32x16 rl, f32x16& low) {
  f32x16 u = rh * rh;
  f32x16 p = fl_fma(u, fl_f32(0x1.7ccf18p-19f), fl_f32(-0x1.a05ba8p-13f));
  p = fl_fma(p, u, fl_f32(0x1.111176p-7f));
  f32x16 c = u * -0x1.555556p-3f;
  f32x16 cl = fl_fma(fl_fma(rh, rh, -u), fl_f32(-0x1.555556p-3f), fl_fma(u, fl_f32(-0x1.555556p-3f), -c));
  f32x16 m = rh * c;
  f32x16 ml = fl_fma(rh, fl_fma(u * u, p, cl), fl_fma(rh, c, -m));
  f32x16 s = rh + m;
  low = ((rh - s) + m) + fl_fma(rl, fl_fma(u, fl_f32(-0.5f), fl_f32(1.0f)), ml);
  return s;
}
)fl",
       {}},
      // cos(rh + rl) = result + low, |rh| <= pi/4
      {"_cos_head",
       DType::f32,
       3,
       "fl_cos_head_f32",
       R"fl(
FL_INLINE f32x16 fl_cos_head_f32(f32x16 rh, f32x16 rl, f32x16& low) {
  f32x16 u = rh * rh;
  f32x16 p = fl_fma(u, fl_f32(-0x1.371c16p-22f), fl_f32(0x1.a075d8p-16f));
  p = fl_fma(p, u, fl_f32(-0x1.6c1762p-10f));
  p = fl_fma(p, u, fl_f32(0x1.555556p-5f));
  f32x16 h = fl_fma(u, fl_f32(-0.5f), fl_f32(1.0f));
  f32x16 l = fl_fma(u, fl_f32(-0.5f), 1.0f - h);
  low = fl_fma(u * u, p, l) - fl_fma(fl_fma(rh, rh, -u), fl_f32(0.5f), rh * rl);
  return h;
}
)fl",
       {}},
      {"sin",
       DType::f32,
       1,
       "fl_sin_f32",
       R"fl(
FL_INLINE f32x16 fl_sin_f32(f32x16 x) {
  f32x16 rl, sl, cl;
  i32x16 q;
  f32x16 rh = fl_angle_f32(fl_abs(x), rl, q);
  f32x16 sh = fl_sin_head_f32(rh, rl, sl);
  f32x16 ch = fl_cos_head_f32(rh, rl, cl);
  f32x16 y = (q & 1) != 0 ? ch + cl : sh + sl;
  return fl_float(fl_bits(y) ^ ((q << 30) & (i32)0x80000000) ^ (fl_bits(x) & (i32)0x80000000));
}
)fl",
       {"_angle", "_sin_head", "_cos_head"}},
      {"cos",
       DType::f32,
       1,
       "fl_cos_f32",
       R"fl(
FL_INLINE f32x16 fl_cos_f32(f32x16 x) {
  f32x16 rl, sl, cl;
  i32x16 q;
  f32x16 rh = fl_angle_f32(fl_abs(x), rl, q);
  f32x16 sh = fl_sin_head_f32(rh, rl, sl);
  f32x16 ch = fl_cos_head_f32(rh, rl, cl);
  f32x16 y = (q & 1) != 0 ? sh + sl : ch + cl;
  return fl_float(fl_bits(y) ^ (((q + 1) << 30) & (i32)0x80000000));
}
)fl",
       {"_angle", "_sin_head", "_cos_head"}},
      {"tan",
       DType::f32,
       1,
       "fl_tan_f32",
       R"fl(
FL_INLINE f32x16 fl_tan_f32(f32x16 x) {
  f32x16 rl, sl, cl;
  i32x16 q;
  f32x16 rh = fl_angle_f32(fl_abs(x), rl, q);
  f32x16 sh = fl_sin_head_f32(rh, rl, sl);
  f32x16 ch = fl_cos_head_f32(rh, rl, cl);
  i32x16 odd = (q & 1) != 0;
  f32x16 t = sh + sl, d = ch + cl;
  sl = (sh - t) + sl;
  cl = (ch - d) + cl;
  f32x16 nh = odd ? d : t, nl = odd ? cl : sl, dh = odd ? -t : d, dl = odd ? -sl : cl;
  f32x16 d1 = 1.0f / dh;
  f32x16 y = nh * d1;
  f32x16 e = fl_fma(-y, dh, nh) + fl_fma(-y, dl, nl);
  y = fl_fma(e, d1, y);
  return fl_float(fl_bits(y) ^ (fl_bits(x) & (i32)0x80000000));
}
)fl",
       {"_angle", "_sin_head", "_cos_head"}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
