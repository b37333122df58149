// What the vector-math functions must give: MPFR for the exact value, the C library in double for speed. Used by the exhaustive
// program and by the unit test; independent of the texts under test.
#pragma once
#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace vecmath_reference {

/// MPFR variables of one evaluation. 200 bits: enough for every f64 result of functions without cancellation above 2^-90.
class Number {
 public:
  Number() { mpfr_init2(value, 200); }
  explicit Number(double x) : Number() { mpfr_set_d(value, x, MPFR_RNDN); }
  ~Number() { mpfr_clear(value); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  mpfr_t value;
};

struct Reference {
  const char* name;
  int args;
  double (*fast)(double x, double y);  ///< within an ulp or two of double
  void (*exact)(mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y);
};

inline double sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

inline void exact_sigmoid(mpfr_ptr r, mpfr_srcptr x) {
  mpfr_neg(r, x, MPFR_RNDN);
  mpfr_exp(r, r, MPFR_RNDN);
  mpfr_add_ui(r, r, 1, MPFR_RNDN);
  mpfr_ui_div(r, 1, r, MPFR_RNDN);
}

#define FL_UNARY(name, fast_expression, exact_call)                      \
  {#name, 1, [](double x, double) -> double { return fast_expression; }, \
   [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr) { exact_call; }}

inline constexpr Reference kReferences[] = {
    FL_UNARY(exp, std::exp(x), mpfr_exp(r, x, MPFR_RNDN)),
    FL_UNARY(exp2, std::exp2(x), mpfr_exp2(r, x, MPFR_RNDN)),
    FL_UNARY(expm1, std::expm1(x), mpfr_expm1(r, x, MPFR_RNDN)),
    FL_UNARY(log, std::log(x), mpfr_log(r, x, MPFR_RNDN)),
    FL_UNARY(log2, std::log2(x), mpfr_log2(r, x, MPFR_RNDN)),
    FL_UNARY(log10, std::log10(x), mpfr_log10(r, x, MPFR_RNDN)),
    FL_UNARY(log1p, std::log1p(x), mpfr_log1p(r, x, MPFR_RNDN)),
    FL_UNARY(sin, std::sin(x), mpfr_sin(r, x, MPFR_RNDN)),
    FL_UNARY(cos, std::cos(x), mpfr_cos(r, x, MPFR_RNDN)),
    FL_UNARY(tan, std::tan(x), mpfr_tan(r, x, MPFR_RNDN)),
    FL_UNARY(asin, std::asin(x), mpfr_asin(r, x, MPFR_RNDN)),
    FL_UNARY(acos, std::acos(x), mpfr_acos(r, x, MPFR_RNDN)),
    FL_UNARY(atan, std::atan(x), mpfr_atan(r, x, MPFR_RNDN)),
    FL_UNARY(sinh, std::sinh(x), mpfr_sinh(r, x, MPFR_RNDN)),
    FL_UNARY(cosh, std::cosh(x), mpfr_cosh(r, x, MPFR_RNDN)),
    FL_UNARY(tanh, std::tanh(x), mpfr_tanh(r, x, MPFR_RNDN)),
    FL_UNARY(asinh, std::asinh(x), mpfr_asinh(r, x, MPFR_RNDN)),
    FL_UNARY(acosh, std::acosh(x), mpfr_acosh(r, x, MPFR_RNDN)),
    FL_UNARY(atanh, std::atanh(x), mpfr_atanh(r, x, MPFR_RNDN)),
    FL_UNARY(erf, std::erf(x), mpfr_erf(r, x, MPFR_RNDN)),
    FL_UNARY(erfc, std::erfc(x), mpfr_erfc(r, x, MPFR_RNDN)),
    FL_UNARY(recip, 1 / x, mpfr_ui_div(r, 1, x, MPFR_RNDN)),
    FL_UNARY(rsqrt, 1 / std::sqrt(x), if (mpfr_zero_p(x)) mpfr_ui_div(r, 1, x, MPFR_RNDN); else mpfr_rec_sqrt(r, x, MPFR_RNDN)),
    FL_UNARY(sigmoid, vecmath_reference::sigmoid(x), exact_sigmoid(r, x)),
    FL_UNARY(silu, x* vecmath_reference::sigmoid(x), exact_sigmoid(r, x); mpfr_mul(r, r, x, MPFR_RNDN)),
    FL_UNARY(gelu, 0.5 * x * std::erfc(-x * 0.70710678118654752440), Number half(0.5);
             mpfr_sqrt(half.value, half.value, MPFR_RNDN); mpfr_mul(r, x, half.value, MPFR_RNDN); mpfr_neg(r, r, MPFR_RNDN);
             mpfr_erfc(r, r, MPFR_RNDN); mpfr_mul(r, r, x, MPFR_RNDN); mpfr_div_2ui(r, r, 1, MPFR_RNDN)),
    FL_UNARY(gelu_tanh, x* vecmath_reference::sigmoid(1.5957691216057307117 * (x + 0.044715 * x * x * x)), Number c;
             mpfr_const_pi(c.value, MPFR_RNDN); mpfr_ui_div(c.value, 8, c.value, MPFR_RNDN);
             mpfr_sqrt(c.value, c.value, MPFR_RNDN); Number k; mpfr_set_str(k.value, "0.044715", 10, MPFR_RNDN);
             mpfr_mul(r, x, x, MPFR_RNDN); mpfr_mul(r, r, k.value, MPFR_RNDN); mpfr_add_ui(r, r, 1, MPFR_RNDN);
             mpfr_mul(r, r, x, MPFR_RNDN); mpfr_mul(r, r, c.value, MPFR_RNDN); exact_sigmoid(r, r); mpfr_mul(r, r, x, MPFR_RNDN)),
    FL_UNARY(softplus, std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))), mpfr_exp(r, x, MPFR_RNDN);
             mpfr_log1p(r, r, MPFR_RNDN); if (mpfr_cmp_ui(x, 1000) > 0) mpfr_set(r, x, MPFR_RNDN)),
    // +0 where the exponential underflows in f32: 0 - 0, as in PyTorch.
    FL_UNARY(log_sigmoid, x > 103.97207708399179 ? 0.0 : std::fmin(x, 0.0) - std::log1p(std::exp(-std::fabs(x))),
             mpfr_neg(r, x, MPFR_RNDN);
             mpfr_exp(r, r, MPFR_RNDN); mpfr_log1p(r, r, MPFR_RNDN); mpfr_neg(r, r, MPFR_RNDN);
             if (mpfr_cmp_d(x, 103.97207708399179) > 0) mpfr_set_zero(r, 1);
             if (mpfr_cmp_si(x, -1000) < 0) mpfr_set(r, x, MPFR_RNDN)),
    FL_UNARY(hardswish, std::isnan(x) ? x : x* std::fmin(std::fmax(x + 3, 0.0), 6.0) / 6, mpfr_add_ui(r, x, 3, MPFR_RNDN);
             if (mpfr_cmp_ui(r, 0) < 0) mpfr_set_zero(r, 1); if (mpfr_cmp_ui(r, 6) > 0) mpfr_set_ui(r, 6, MPFR_RNDN);
             mpfr_div_ui(r, r, 6, MPFR_RNDN); mpfr_mul(r, r, x, MPFR_RNDN)),
    FL_UNARY(mish,
             std::exp(std::fmin(x, 40.0)) * (std::exp(std::fmin(x, 40.0)) + 2) /
                 (std::exp(std::fmin(x, 40.0)) * (std::exp(std::fmin(x, 40.0)) + 2) + 2) * x,
             mpfr_exp(r, x, MPFR_RNDN);
             Number n; mpfr_add_ui(n.value, r, 2, MPFR_RNDN); mpfr_mul(n.value, n.value, r, MPFR_RNDN);
             mpfr_add_ui(r, n.value, 2, MPFR_RNDN); mpfr_div(r, n.value, r, MPFR_RNDN); mpfr_mul(r, r, x, MPFR_RNDN);
             if (mpfr_cmp_ui(x, 1000) > 0) mpfr_set(r, x, MPFR_RNDN)),
    {"pow", 2, [](double x, double y) -> double { return std::pow(x, y); },
     [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y) { mpfr_pow(r, x, y, MPFR_RNDN); }},
    {"atan2", 2, [](double x, double y) -> double { return std::atan2(x, y); },
     [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y) { mpfr_atan2(r, x, y, MPFR_RNDN); }},
    {"fmod", 2, [](double x, double y) -> double { return std::fmod(x, y); },
     [](mpfr_ptr r, mpfr_srcptr x, mpfr_srcptr y) { mpfr_fmod(r, x, y, MPFR_RNDN); }},
};
#undef FL_UNARY

inline const Reference* find(std::string_view name) {
  for (const Reference& r : kReferences) {
    if (name == r.name) return &r;
  }
  return nullptr;
}

/// A binary floating-point format: significant bits with the hidden one, least exponent of the last place, largest finite value.
struct Format {
  int bits;
  int least;
  double largest;
};
inline constexpr Format kF16{11, -24, 65504.0};
inline constexpr Format kBF16{8, -133, 3.38953138925153547590e38};
inline constexpr Format kF32{24, -149, 3.40282346638528859812e38};
inline constexpr Format kF64{53, -1074, 1.79769313486231570815e308};

/// The size of the last place of a value in the format.
inline int last_place(const Format& f, long exponent) {  // |v| in [2^(exponent-1), 2^exponent)
  const long place = exponent - f.bits;
  return static_cast<int>(place < f.least ? f.least : place);
}

/// Nearest value of the format, ties to even.
inline double rounded(const Format& f, mpfr_srcptr v) {
  if (mpfr_nan_p(v) || mpfr_inf_p(v) || mpfr_zero_p(v)) return mpfr_get_d(v, MPFR_RNDN);
  const int place = last_place(f, mpfr_get_exp(v));
  Number n;
  mpfr_mul_2si(n.value, v, -place, MPFR_RNDN);
  mpfr_rint_roundeven(n.value, n.value, MPFR_RNDN);
  mpfr_mul_2si(n.value, n.value, place, MPFR_RNDN);
  const double d = mpfr_get_d(n.value, MPFR_RNDN);
  if (d == 0) return std::copysign(0.0, mpfr_signbit(v) ? -1.0 : 1.0);
  return std::fabs(d) > f.largest ? std::copysign(INFINITY, d) : d;
}

inline double rounded(const Format& f, double v) {
  if (!std::isfinite(v) || v == 0) return v;
  int exponent;
  std::frexp(v, &exponent);
  const int place = last_place(f, exponent);
  const double d = std::ldexp(std::nearbyint(std::ldexp(v, -place)), place);
  return std::fabs(d) > f.largest ? std::copysign(INFINITY, d) : d == 0 ? std::copysign(0.0, v) : d;
}

/// The function's value rounded to the format: by the fast reference where its error cannot matter, by MPFR elsewhere.
inline double rounded_value(const Reference& r, const Format& f, double x) {
  const double fast = r.fast(x, x), low = rounded(f, fast * (1 - 0x1p-40)), high = rounded(f, fast * (1 + 0x1p-40));
  if (low == high && low != 0 && std::isfinite(low) && std::fabs(fast) > 1e-290) return low;
  const Number a(x);
  Number exact;
  r.exact(exact.value, a.value, a.value);
  return rounded(f, exact.value);
}

/// |y - exact| in last places of the exact value.
inline double error_ulp(const Format& f, double y, mpfr_srcptr exact) {
  Number d(y);
  const int place = mpfr_zero_p(exact) ? f.least : last_place(f, mpfr_get_exp(exact));
  mpfr_sub(d.value, d.value, exact, MPFR_RNDN);
  mpfr_mul_2si(d.value, d.value, -place, MPFR_RNDN);
  return std::fabs(mpfr_get_d(d.value, MPFR_RNDN));
}
inline double error_ulp(const Format& f, double y,
                        double exact) {  // f32 or shorter: |exact| and the last place are normal doubles
  const int exponent = static_cast<int>(std::bit_cast<std::uint64_t>(exact) >> 52 & 0x7ff) - 1022;
  const auto places = static_cast<std::uint64_t>(1023 - last_place(f, exponent));
  return std::fabs(y - exact) * std::bit_cast<double>(places << 52);
}

}  // namespace vecmath_reference
