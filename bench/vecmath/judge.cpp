// The judge of f32 functions: exact values in double (SLEEF, less than 1 ulp of double off in each step), MPFR where these cannot
// tell which f32 is the nearest, and tallies of errors. Also loops over SLEEF's f32 functions, to time them. bench/vecmath.py
// calls it.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "bench/vecmath/sleef.h"
#include "tests/exhaustive/vecmath_reference.h"

namespace ref = vecmath_reference;

namespace {

using l8 = std::int64_t __attribute__((ext_vector_type(8)));
using i8 = std::int32_t __attribute__((ext_vector_type(8)));
// Every double above is within this of the exact value, relatively. What lies closer than that to the middle of two f32 goes to
// MPFR.
constexpr double kSure = 0x1p-44;

struct Function {
  const char* name;
  d8 (*exact)(d8 x, d8 y);
  f16 (*sleef)(f16 x, f16 y);  // nullptr: SLEEF has none
};

d8 lesser(d8 x, double y) { return x > y ? d8(y) : x; }
d8 magnitude(d8 x) { return __builtin_elementwise_abs(x); }
d8 sigmoid(d8 x) { return 1.0 / (1.0 + sleef::exp(-x)); }
d8 softplus(d8 x) {
  const d8 l = sleef::log1p(sleef::exp(-magnitude(x)));
  return x > 0.0 ? x + l : l;
}
d8 mish(d8 x) {
  const d8 e = sleef::exp(lesser(x, 40.0)), n = e * (e + 2.0);
  return x * (n / (n + 2.0));
}
d8 hardswish(d8 x) {
  d8 q = x + 3.0;
  q = q < 0.0 ? d8(0.0) : q;
  return x * (lesser(q, 6.0) / 6.0);
}
d8 log_sigmoid(d8 x) { return x > 103.97207708399179 ? d8(0.0) : -softplus(-x); }  // +0 there: 0 - 0, as PyTorch
d8 each(double (*f)(double, double), d8 x, d8 y) {
  d8 r;
  for (int i = 0; i < 8; ++i) r[i] = f(x[i], y[i]);
  return r;
}

#define BOTH(name) {#name, [](d8 x, d8) { return sleef::name(x); }, [](f16 x, f16) { return sleef::finz_##name(x); }}
#define OURS(name, expression) {#name, [](d8 x, d8) -> d8 { return expression; }, nullptr}

constexpr Function kFunctions[] = {
    BOTH(exp),
    BOTH(exp2),
    BOTH(expm1),
    BOTH(log),
    BOTH(log2),
    BOTH(log10),
    BOTH(log1p),
    BOTH(sin),
    BOTH(cos),
    BOTH(tan),
    BOTH(asin),
    BOTH(acos),
    BOTH(atan),
    BOTH(sinh),
    BOTH(cosh),
    BOTH(tanh),
    BOTH(asinh),
    BOTH(acosh),
    BOTH(atanh),
    BOTH(erf),
    BOTH(erfc),
    OURS(recip, 1.0 / x),
    OURS(rsqrt, 1.0 / __builtin_elementwise_sqrt(x)),
    OURS(sigmoid, sigmoid(x)),
    OURS(silu, x* sigmoid(x)),
    OURS(gelu, 0.5 * x * sleef::erfc(x * -0.70710678118654752440)),
    OURS(gelu_tanh, x* sigmoid(1.5957691216057307118 * (x + 0.044715 * x * x * x))),
    OURS(softplus, softplus(x)),
    OURS(log_sigmoid, log_sigmoid(x)),
    OURS(hardswish, hardswish(x)),
    OURS(mish, mish(x)),
    // The C library's pow is good to 0.52 ulp of double even where y log x is large.
    {"pow", [](d8 x, d8 y) { return each(std::pow, x, y); }, [](f16 x, f16 y) { return sleef::finz_pow(x, y); }},
    {"atan2", [](d8 x, d8 y) { return each(std::atan2, x, y); }, [](f16 x, f16 y) { return sleef::finz_atan2(x, y); }},
    {"fmod", [](d8 x, d8 y) { return each(std::fmod, x, y); }, nullptr},
};

/// The functions that are x/2 and a positive second term near 0: the exact value lies just above the middle of two subnormals.
bool half_and_more(std::string_view name) {
  return name == "silu" || name == "gelu" || name == "gelu_tanh" || name == "hardswish";
}

/// The nearest f32 to the exact value of f(x, y).
float nearest(const Function& f, float x, float y) {
  if (std::fabs(x) < 0x1p-126f && half_and_more(f.name)) return static_cast<float>(std::nextafter(0.5 * x, 1.0));
  const ref::Number a(x), b(y);
  ref::Number exact;
  ref::find(f.name)->exact(exact.value, a.value, b.value);
  return static_cast<float>(ref::rounded(ref::kF32, exact.value));
}

}  // namespace

extern "C" {

struct Tally {
  double max, sum;  // of errors in ulp of the exact value, where that and the result are finite
  float at, at2;    // where the largest error is
  std::uint64_t inputs, counted, misrounded, special,
      asked;  // special: wrong NaN, infinity, sign of zero; asked: decided by MPFR
};

int judge_find(const char* name) {
  for (std::size_t i = 0; i < std::size(kFunctions); ++i) {
    if (std::strcmp(kFunctions[i].name, name) == 0) return static_cast<int>(i);
  }
  return -1;
}

/// exact[i] = f(x[i], y[i]) in double, n a multiple of 8.
void judge_exact(int f, const float* x, const float* y, double* exact, long n) {
  const auto call = kFunctions[f].exact;
  for (long i = 0; i < n; i += 8) {
    f8 a, b;
    std::memcpy(&a, x + i, sizeof a);
    std::memcpy(&b, y + i, sizeof b);
    const d8 r = call(__builtin_convertvector(a, d8), __builtin_convertvector(b, d8));
    std::memcpy(exact + i, &r, sizeof r);
  }
}

/// Adds what `got` is worth against `exact` to the tally, n a multiple of 8.
void judge_compare(int f, const float* x, const float* y, const double* exact, const float* got, long n, Tally* tally) {
  const Function& function = kFunctions[f];
  d8 worst = 0.0, sum = 0.0;
  l8 worst_at = -1, counted = 0, misrounded = 0;
  l8 at = {0, 1, 2, 3, 4, 5, 6, 7};
  for (long i = 0; i < n; i += 8, at += 8) {
    d8 e;
    f8 g;
    std::memcpy(&e, exact + i, sizeof e);
    std::memcpy(&g, got + i, sizeof g);
    const f8 want = __builtin_convertvector(e, f8);
    const d8 have = __builtin_convertvector(g, d8), wide = __builtin_convertvector(want, d8);
    const l8 finite = magnitude(have) < INFINITY & magnitude(wide) < INFINITY;
    l8 places = (__builtin_bit_cast(l8, e) >> 52) & 0x7ff;
    places = places < 1023 - 126 ? l8(1023 - 126) : places;  // below the normal range the last place stays that of its edge
    const d8 scale = __builtin_bit_cast(d8, (1023 + 23 + 1023 - places) << 52);
    const d8 error = finite != 0 ? magnitude(have - e) * scale : d8(0.0);
    sum += error;
    worst_at = error > worst ? at : worst_at;
    worst = error > worst ? error : worst;
    counted -= finite;
    const i8 apart = __builtin_bit_cast(i8, g) != __builtin_bit_cast(i8, want), both_nan = (g != g) & (want != want);
    const l8 wrong = __builtin_convertvector(apart & ~both_nan, l8);
    misrounded -= wrong;
    const f8 low = __builtin_convertvector(e * (1 - kSure), f8), high = __builtin_convertvector(e * (1 + kSure), f8);
    const l8 unsure = __builtin_convertvector((low != high) & (low == low), l8);
    const l8 odd = wrong & (~finite | (have == 0.0));  // the sign of zero, NaN and infinities
    if (__builtin_reduce_or(unsure | odd) == 0) continue;
    for (int k = 0; k < 8; ++k) {
      float nearest_here = want[k];
      if (unsure[k]) {
        nearest_here = nearest(function, x[i + k], y[i + k]);
        ++tally->asked;
        const bool was = wrong[k] != 0, is = std::bit_cast<int>(nearest_here) != std::bit_cast<int>(g[k]);
        misrounded[k] += static_cast<int>(is) - static_cast<int>(was);
      }
      const float mine = g[k];
      const bool same = (std::isnan(mine) && std::isnan(nearest_here)) || mine == nearest_here;
      if (!same && (!std::isfinite(mine) || !std::isfinite(nearest_here))) ++tally->special;
      if (mine == 0 && nearest_here == 0 && std::signbit(mine) != std::signbit(nearest_here)) ++tally->special;
    }
  }
  tally->inputs += static_cast<std::uint64_t>(n);
  for (int k = 0; k < 8; ++k) {
    tally->sum += sum[k];
    tally->counted += static_cast<std::uint64_t>(counted[k]);
    tally->misrounded += static_cast<std::uint64_t>(misrounded[k]);
    if (worst[k] > tally->max) {
      tally->max = worst[k];
      tally->at = x[worst_at[k]];
      tally->at2 = y[worst_at[k]];
    }
  }
}

/// How many results differ in their bits; every NaN counts as the same one.
std::uint64_t judge_differ(const float* a, const float* b, long n) {
  std::uint64_t count = 0;
  for (long i = 0; i < n; ++i) {
    count += std::bit_cast<int>(a[i]) != std::bit_cast<int>(b[i]) && (a[i] == a[i] || b[i] == b[i]);
  }
  return count;
}

/// The patterns first, first + stride, ... as floats.
void judge_patterns(std::uint64_t first, std::uint64_t stride, float* x, long n) {
  for (long i = 0; i < n; ++i)
    x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(first + static_cast<std::uint64_t>(i) * stride));
}

/// Pairs number first, first + 1, ... of a fixed sequence for the function: special values with each other, then by turns any
/// bits, moderate numbers, bases near 1 (pow) or near-equal magnitudes (atan2, fmod), small integers and halves, and results
/// spread over the whole range of f32.
void judge_pairs(int f, std::uint64_t first, float* x, float* y, long n) {
  static constexpr std::array<float, 34> special = {0.0f,
                                                    -0.0f,
                                                    1.0f,
                                                    -1.0f,
                                                    0.5f,
                                                    -0.5f,
                                                    2.0f,
                                                    -2.0f,
                                                    3.0f,
                                                    -3.0f,
                                                    1.5f,
                                                    -1.5f,
                                                    10.0f,
                                                    -10.0f,
                                                    0.1f,
                                                    -0.1f,
                                                    INFINITY,
                                                    -INFINITY,
                                                    NAN,
                                                    0x1p-149f,
                                                    -0x1p-149f,
                                                    0x1p-126f,
                                                    -0x1p-126f,
                                                    0x1.fffffep127f,
                                                    -0x1.fffffep127f,
                                                    0x1.fffffep-1f,
                                                    -0x1.fffffep-1f,
                                                    0x1.000002p0f,
                                                    -0x1.000002p0f,
                                                    0x1p24f,
                                                    16777215.0f,
                                                    -16777215.0f,
                                                    0x1p31f,
                                                    -0x1p63f};
  const bool power = std::strcmp(kFunctions[f].name, "pow") == 0;
  for (long i = 0; i < n; ++i) {
    const std::uint64_t at = first + static_cast<std::uint64_t>(i);
    if (at < special.size() * special.size()) {
      x[i] = special[at / special.size()];
      y[i] = special[at % special.size()];
      continue;
    }
    std::uint64_t r = at * 0x9e3779b97f4a7c15ull;  // splitmix64
    const auto next = [&r] {
      std::uint64_t z = (r += 0x9e3779b97f4a7c15ull);
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
      return z ^ (z >> 31);
    };
    const auto unit = [&next] { return static_cast<double>(static_cast<std::int64_t>(next())) * 0x1p-63; };  // -1 .. 1
    const auto any = [&next] { return std::bit_cast<float>(static_cast<std::uint32_t>(next() >> 32)); };
    switch (at % 8) {
      case 0:
        x[i] = any();
        y[i] = any();
        break;
      case 1:
      case 2:
        x[i] = static_cast<float>(std::ldexp(unit(), static_cast<int>(next() % 16) - 7));
        y[i] = static_cast<float>(std::ldexp(unit(), static_cast<int>(next() % 16) - 7));
        break;
      case 3:
        x[i] = power ? static_cast<float>(1 + std::ldexp(unit(), -static_cast<int>(next() % 24))) : any();
        y[i] = power ? static_cast<float>(std::ldexp(unit(), static_cast<int>(next() % 32)))
                     : static_cast<float>(x[i] * std::ldexp(unit(), static_cast<int>(next() % 9) - 4));
        break;
      case 4:
        x[i] = static_cast<float>(static_cast<double>(static_cast<std::int64_t>(next() % 41) - 20) / 2);
        y[i] = static_cast<float>(static_cast<double>(static_cast<std::int64_t>(next() % 401) - 200) / 2);
        break;
      default:  // pow: y log2|x| spread evenly over -150 .. 130
        x[i] = any();
        y[i] = power ? static_cast<float>((unit() * 140 - 10) / std::log2(std::fabs(static_cast<double>(x[i]))))
                     : static_cast<float>(x[i] * std::ldexp(unit(), static_cast<int>(next() % 64) - 32));
        if (at % 2 == 0 && power) x[i] = std::fabs(x[i]);
    }
  }
}

/// y[i] = SLEEF's f(x[i], x2[i]), n a multiple of 16; false: it has none.
bool judge_sleef(int f, const float* x, const float* x2, float* y, long n);
}

template <int I>
void sleef_loop(const float* x, const float* x2, float* y, long n) {
  if constexpr (kFunctions[I].sleef != nullptr) {
    for (long i = 0; i < n; i += 16) {
      f16 a, b;
      std::memcpy(&a, x + i, sizeof a);
      std::memcpy(&b, x2 + i, sizeof b);
      const f16 r = kFunctions[I].sleef(a, b);
      std::memcpy(y + i, &r, sizeof r);
    }
  }
}

template <std::size_t... I>
bool sleef_dispatch(int f, const float* x, const float* x2, float* y, long n, std::index_sequence<I...>) {
  static constexpr void (*loops[])(const float*, const float*, float*, long) = {&sleef_loop<static_cast<int>(I)>...};
  if (kFunctions[f].sleef == nullptr) return false;
  loops[f](x, x2, y, n);
  return true;
}

bool judge_sleef(int f, const float* x, const float* x2, float* y, long n) {
  return sleef_dispatch(f, x, x2, y, n, std::make_index_sequence<std::size(kFunctions)>());
}
