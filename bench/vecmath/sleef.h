// SLEEF's functions on 8 doubles and 16 floats, for the reference values and the rates of bench/vecmath.py.
#pragma once
#include <sleef.h>

using d8 = double __attribute__((ext_vector_type(8)));
using f8 = float __attribute__((ext_vector_type(8)));
using f16 = float __attribute__((ext_vector_type(16)));

// SLEEF_D(exp, u10): d8 exp(d8), less than 1 ulp of double off. SLEEF_F(exp, u10): f16 finz_exp(f16), the variant that gives the
// same bits on every instruction set.
#ifdef __AVX512F__
#define SLEEF_D(f, u) \
  static inline d8 f(d8 x) { return Sleef_##f##d8_##u##avx512f(x); }
#define SLEEF_F(f, u) \
  static inline f16 finz_##f(f16 x) { return Sleef_finz_##f##f16_##u##avx512f(x); }
#define SLEEF_D2(f, u) \
  static inline d8 f(d8 x, d8 y) { return Sleef_##f##d8_##u##avx512f(x, y); }
#define SLEEF_F2(f, u) \
  static inline f16 finz_##f(f16 x, f16 y) { return Sleef_finz_##f##f16_##u##avx512f(x, y); }
#else
#define SLEEF_HALVES(V, name, call) \
  static inline V name(V x) {       \
    V r;                            \
    r.lo = call(x.lo);              \
    r.hi = call(x.hi);              \
    return r;                       \
  }
#define SLEEF_HALVES2(V, name, call) \
  static inline V name(V x, V y) {   \
    V r;                             \
    r.lo = call(x.lo, y.lo);         \
    r.hi = call(x.hi, y.hi);         \
    return r;                        \
  }
#define SLEEF_D(f, u) SLEEF_HALVES(d8, f, Sleef_##f##d4_##u##avx2)
#define SLEEF_F(f, u) SLEEF_HALVES(f16, finz_##f, Sleef_finz_##f##f8_##u##avx2)
#define SLEEF_D2(f, u) SLEEF_HALVES2(d8, f, Sleef_##f##d4_##u##avx2)
#define SLEEF_F2(f, u) SLEEF_HALVES2(f16, finz_##f, Sleef_finz_##f##f8_##u##avx2)
#endif

namespace sleef {
#define SLEEF_BOTH(f, u) SLEEF_D(f, u) SLEEF_F(f, u)
SLEEF_BOTH(exp, u10)
SLEEF_BOTH(exp2, u10)
SLEEF_BOTH(expm1, u10)
SLEEF_BOTH(log, u10)
SLEEF_BOTH(log2, u10)
SLEEF_BOTH(log10, u10)
SLEEF_BOTH(log1p, u10)
SLEEF_BOTH(sin, u10)
SLEEF_BOTH(cos, u10)
SLEEF_BOTH(tan, u10)
SLEEF_BOTH(asin, u10)
SLEEF_BOTH(acos, u10)
SLEEF_BOTH(atan, u10)
SLEEF_BOTH(sinh, u10)
SLEEF_BOTH(cosh, u10)
SLEEF_BOTH(tanh, u10)
SLEEF_BOTH(asinh, u10)
SLEEF_BOTH(acosh, u10)
SLEEF_BOTH(atanh, u10)
SLEEF_BOTH(erf, u10)
SLEEF_BOTH(erfc, u15)
SLEEF_D2(pow, u10)
SLEEF_F2(pow, u10)
SLEEF_D2(atan2, u10)
SLEEF_F2(atan2, u10)
}  // namespace sleef
