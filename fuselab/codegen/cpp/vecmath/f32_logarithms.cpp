// Logarithms in f32.
//
// x = 2^e m with m in [sqrt(1/2), sqrt(2)); eighths of an octave, by the bits of m, have a short c near 1/m each, so f = m c - 1
// is exact and below 1/16; around 1 c is 1. log x = e log 2 - log c + log(1+f): the first two make an exact sum of table values'
// upper parts, log(1+f) = f - f^2/2 + f^3 P(f) with the first two terms kept as a sum of two floats. The cuts are bit patterns,
// so the split takes only integer operations.
#include <string>

#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

namespace {

/// The text of log, log2 or log10: `result` makes y, right for ordinary x, from n, the table's two parts of -log(c) in this
/// logarithm's base, h and l, where log(x) = n log(2) - log(c) + h + l in base e.
std::string logarithm(const std::string& function, const std::string& high, const std::string& low, const std::string& result) {
  return R"fl(
FL_INLINE f32x16 )fl" +
         function + R"fl((f32x16 x) {
  i32x16 special = __builtin_convertvector(fl_bits(x), u32x16) - 0x00800000u >= 0x7f000000u;
  i32x16 b = fl_bits(x), bias = 0;
  bool any_special = fl_any(special);
  if (any_special) {
    i32x16 small = x < 0x1p-126f & x > 0.0f;
    b = small ? fl_bits(x * 0x1p24f) : b;
    bias = small ? fl_i32(-24) : fl_i32(0);
  }
  i32x16 t = b - 0x3f3504f3, e = t >> 23, i = t >> 20;
  f32x16 f = fl_fma(fl_float(b - (e << 23)), fl_lookup8_f32(fl_log_c_f32, i), fl_f32(-1.0f));
  f32x16 n = __builtin_convertvector(e + bias, f32x16);
  f32x16 l, h = fl_log_head_f32(f, l);
  const f32x16 high = {)fl" +
         high + ", " + high + "};\n  const f32x16 low = {" + low + ", " + low + R"fl(};
)fl" + result +
         R"fl(  if (any_special) {
    f32x16 edge = x == 0.0f ? fl_f32(-__builtin_inff()) : x < 0.0f ? fl_f32(__builtin_nanf("")) : x;
    y = special & !(x < 0x1p-126f & x > 0.0f) ? edge : y;
  }
  return y;
}
)fl";
}

}  // namespace

const Group& f32_logarithms() {
  static const std::string log =
      logarithm("fl_log_f32",
                "-0x1.461800p-2f, -0x1.c90000p-3f, -0x1.5ff400p-3f, -0x1.f0a000p-5f, 0.0f, 0x1.933800p-4f, 0x1.a94000p-3f, "
                "0x1.269600p-2f",
                "-0x1.78438cp-19f, 0x1.070cacp-20f, 0x1.f1eb0ep-20f, -0x1.86008cp-20f, 0.0f, -0x1.0d1536p-19f, "
                "-0x1.2c3752p-19f, 0x1.089a6ep-21f",
                R"fl(  f32x16 big = fl_fma(n, fl_f32(0x1.62e400p-1f), fl_lookup8_f32(high, i));
  f32x16 s = big + h;
  f32x16 y = s + ((h - (s - big)) + fl_fma(n, fl_f32(0x1.7f7d1cp-20f), l + fl_lookup8_f32(low, i)));
)fl");
  static const std::string log2 = logarithm(
      "fl_log2_f32",
      "-0x1.d67400p-2f, -0x1.49a800p-2f, -0x1.fbc000p-3f, -0x1.664000p-4f, 0.0f, 0x1.22d800p-3f, 0x1.32c000p-2f, 0x1.a90000p-2f",
      "-0x1.3e032ep-18f, 0x1.ed0cbap-20f, -0x1.6b9026p-19f, 0x1.20a6dep-21f, 0.0f, 0x1.6e155ap-18f, -0x1.1c8f12p-22f, "
      "-0x1.a39fbep-20f",
      R"fl(  f32x16 ph = h * 0x1.715476p+0f;
  f32x16 pl = fl_fma(h, fl_f32(0x1.715476p+0f), -ph) + fl_fma(l, fl_f32(0x1.715476p+0f), h * 0x1.4ae0c0p-26f);
  f32x16 big = n + fl_lookup8_f32(high, i);
  f32x16 s = big + ph;
  f32x16 y = s + ((ph - (s - big)) + (pl + fl_lookup8_f32(low, i)));
)fl");
  static const std::string log10 =
      logarithm("fl_log10_f32",
                "-0x1.1b3e00p-3f, -0x1.8cf000p-4f, -0x1.31b400p-4f, -0x1.af6000p-6f, 0.0f, 0x1.5e3800p-5f, 0x1.715c00p-4f, "
                "0x1.ffc000p-4f",
                "-0x1.c7b254p-21f, -0x1.838864p-20f, 0x1.f54772p-21f, 0x1.b53fc6p-24f, 0.0f, 0x1.66b7eap-21f, 0x1.0ce368p-20f, "
                "-0x1.ea21c4p-23f",
                R"fl(  f32x16 ph = h * 0x1.bcb7b2p-2f;
  f32x16 pl = fl_fma(h, fl_f32(0x1.bcb7b2p-2f), -ph) + fl_fma(l, fl_f32(0x1.bcb7b2p-2f), h * -0x1.5b235ep-27f);
  f32x16 big = fl_fma(n, fl_f32(0x1.344200p-2f), fl_lookup8_f32(high, i));
  f32x16 s = big + ph;
  f32x16 y = s + ((ph - (s - big)) + fl_fma(n, fl_f32(-0x1.95ec10p-19f), pl + fl_lookup8_f32(low, i)));
)fl");
  static const Group group = {
      // table[i & 7] of a table that holds its 8 entries twice: one permute per register with AVX-512 and with AVX2.
      {"_lookup8",
       DType::f32,
       2,
       "fl_lookup8_f32",
       R"fl(
#ifdef __AVX512F__
FL_INLINE f32x16 fl_lookup8_f32(f32x16 table, i32x16 i) { return __builtin_shufflevector(table, i & 15); }
#else
typedef f32 f32x8 __attribute__((ext_vector_type(8)));
typedef i32 i32x8 __attribute__((ext_vector_type(8)));
FL_INLINE f32x16 fl_lookup8_f32(f32x16 table, i32x16 i) {
  f32x16 r;
  f32x8 low = table.lo;
  i32x8 first = i.lo, second = i.hi;
  r.lo = __builtin_shufflevector(low, first & 7);
  r.hi = __builtin_shufflevector(low, second & 7);
  return r;
}
#endif
)fl",
       {}},
      // log(1 + f) = result + l for |f| < 1/16; and the table of c.
      {"_log_head",
       DType::f32,
       2,
       "fl_log_head_f32",
       R"fl(
static const f32x16 fl_log_c_f32 = {1.375f, 1.25f, 1.1875f, 1.0625f, 1.0f, 0.90625f, 0.8125f, 0.75f,
                                    1.375f, 1.25f, 1.1875f, 1.0625f, 1.0f, 0.90625f, 0.8125f, 0.75f};
FL_INLINE f32x16 fl_log_head_f32(f32x16 f, f32x16& l) {
  f32x16 p = fl_fma(f, fl_f32(-0x1.53ffaap-3f), fl_f32(0x1.9b0b56p-3f));
  p = fl_fma(p, f, fl_f32(-0x1.0000acp-2f));
  p = fl_fma(p, f, fl_f32(0x1.555522p-2f));
  f32x16 sq = f * f;
  f32x16 h = fl_fma(sq, fl_f32(-0.5f), f);
  l = fl_fma(sq, f * p, fl_fma(sq, fl_f32(-0.5f), f - h)) + fl_fma(f, f, -sq) * -0.5f;
  return h;
}
)fl",
       {}},
      {"log", DType::f32, 1, "fl_log_f32", log, {"_log_head", "_lookup8"}},
      {"log2", DType::f32, 1, "fl_log2_f32", log2, {"_log_head", "_lookup8"}},
      {"log10", DType::f32, 1, "fl_log10_f32", log10, {"_log_head", "_lookup8"}},
      // log(1 + x + xl) = result + low for x > -1, |xl| at most half the last place of x, or 2^-24 of it. 1 + x = u + c exactly;
      // c
      // and xl are brought to the scale of u's mantissa and join f.
      {"_log1p_two",
       DType::f32,
       3,
       "fl_log1p_two_f32",
       R"fl(
FL_INLINE f32x16 fl_log1p_two_f32(f32x16 x, f32x16 xl, f32x16& low) {
  f32x16 u = 1.0f + x;
  f32x16 c = x > 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
  i32x16 t = fl_bits(u) - 0x3f3504f3, e = t >> 23, i = t >> 20;
  f32x16 k = fl_lookup8_f32(fl_log_c_f32, i);
  f32x16 f = fl_fma(fl_float(fl_bits(u) - (e << 23)), k, fl_f32(-1.0f));
  k = k * fl_float(0x3f800000 - ((e > 126 ? 126 : e) << 23));
  c = c * k;
  f32x16 g = f + c;
  c = fl_fma(xl, k, (f - g) + c);
  f32x16 n = __builtin_convertvector(e, f32x16);
  f32x16 l, h = fl_log_head_f32(g, l);
  const f32x16 high = {-0x1.461800p-2f, -0x1.c90000p-3f, -0x1.5ff400p-3f, -0x1.f0a000p-5f, 0.0f, 0x1.933800p-4f, 0x1.a94000p-3f, 0x1.269600p-2f,
                       -0x1.461800p-2f, -0x1.c90000p-3f, -0x1.5ff400p-3f, -0x1.f0a000p-5f, 0.0f, 0x1.933800p-4f, 0x1.a94000p-3f, 0x1.269600p-2f};
  const f32x16 lower = {-0x1.78438cp-19f, 0x1.070cacp-20f, 0x1.f1eb0ep-20f, -0x1.86008cp-20f, 0.0f, -0x1.0d1536p-19f, -0x1.2c3752p-19f, 0x1.089a6ep-21f,
                        -0x1.78438cp-19f, 0x1.070cacp-20f, 0x1.f1eb0ep-20f, -0x1.86008cp-20f, 0.0f, -0x1.0d1536p-19f, -0x1.2c3752p-19f, 0x1.089a6ep-21f};
  l = fl_fma(c, fl_fma(g, g, 1.0f - g), l);
  f32x16 big = fl_fma(n, fl_f32(0x1.62e400p-1f), fl_lookup8_f32(high, i));
  f32x16 s = big + h;
  low = (h - (s - big)) + fl_fma(n, fl_f32(0x1.7f7d1cp-20f), l + fl_lookup8_f32(lower, i));
  return s;
}
)fl",
       {"_log_head", "_lookup8"}},
      {"log1p",
       DType::f32,
       1,
       "fl_log1p_f32",
       R"fl(
FL_INLINE f32x16 fl_log1p_f32(f32x16 x) {
  f32x16 low, y = fl_log1p_two_f32(x, fl_f32(0.0f), low);
  y = y + low;
  if (fl_any(!(x > -1.0f & x < __builtin_inff()))) {
    f32x16 edge = x < -1.0f ? fl_f32(__builtin_nanf("")) : x == -1.0f ? fl_f32(-__builtin_inff()) : x;
    y = x > -1.0f & x < __builtin_inff() ? y : edge;
  }
  return fl_with_sign(y, x);
}
)fl",
       {"_log1p_two"}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
