// Rows: elementary functions. Their accuracy is the kernel primitive's (docs/precision.md).
#include <numbers>

#include "fuselab/ops/rows.h"

namespace fuselab::ops {
namespace {

/// A function that turns integers into floating point and is one kernel primitive.
Row function(std::string name, double (*meaning)(D, A)) {
  const std::string aten = name + ".default";
  std::string recipe = name + "(self)";
  return pointwise(std::move(name), "self")
      .type(TypeRule::promote_float)
      .lower(std::move(recipe))
      .fp64(meaning)
      .ulp(1)
      .aten(aten);
}

}  // namespace

void add_math(std::vector<Op>& t) {
  function("exp", [](D a, A) { return std::exp(a[0]); })
      .monotone()
      .special("0 -> 1; -0 -> 1; inf -> inf; -inf -> 0; nan -> nan")
      .names("Exp", "Exp", "Exp")
      .doc("e to the power of the argument.", t);
  function("exp2", [](D a, A) { return std::exp2(a[0]); })
      .monotone()
      .special("0 -> 1; 3 -> 8; -1 -> 0.5; inf -> inf; -inf -> 0; nan -> nan")
      .doc("2 to the power of the argument.", t);
  function("expm1", [](D a, A) { return std::expm1(a[0]); })
      .monotone()
      .special("0 -> 0; -0 -> -0; inf -> inf; -inf -> -1; nan -> nan")
      .names("", "Expm1", "Expm1")
      .doc("exp(x) - 1 without cancellation near 0.", t);
  function("log", [](D a, A) { return std::log(a[0]); })
      .monotone()
      .special("0 -> -inf; -0 -> -inf; 1 -> 0; inf -> inf; -1 -> nan; nan -> nan")
      .names("Log", "Log", "Log")
      .doc("Natural logarithm.", t);
  function("log2", [](D a, A) { return std::log2(a[0]); })
      .monotone()
      .special("0 -> -inf; 1 -> 0; 8 -> 3; 0.5 -> -1; inf -> inf; -1 -> nan; nan -> nan")
      .doc("Logarithm to base 2.", t);
  function("log10", [](D a, A) { return std::log10(a[0]); })
      .monotone()
      .special("0 -> -inf; 1 -> 0; inf -> inf; -1 -> nan; nan -> nan")
      .doc("Logarithm to base 10.", t);
  function("log1p", [](D a, A) { return std::log1p(a[0]); })
      .monotone()
      .special("0 -> 0; -0 -> -0; -1 -> -inf; -2 -> nan; inf -> inf; nan -> nan")
      .names("", "Log1p", "Log1p")
      .doc("log(1 + x) without cancellation near 0.", t);
  function("sqrt", [](D a, A) { return std::sqrt(a[0]); })
      .ulp(0.5)
      .monotone()
      .special("0 -> 0; -0 -> -0; 4 -> 2; inf -> inf; -1 -> nan; nan -> nan")
      .names("Sqrt", "Sqrt", "Sqrt")
      .doc("Square root, correctly rounded.", t);
  function("rsqrt", [](D a, A) { return 1 / std::sqrt(a[0]); })
      .monotone()
      .special("0 -> inf; -0 -> -inf; 4 -> 0.5; inf -> 0; -1 -> nan; nan -> nan")
      .names("", "Rsqrt", "Rsqrt")
      .doc("1 / sqrt(x).", t);
  function("reciprocal", [](D a, A) { return 1 / a[0]; })
      .lower("1 / self")
      .ulp(0.5)
      .special("0 -> inf; -0 -> -inf; inf -> 0; -inf -> -0; 2 -> 0.5; nan -> nan")
      .names("Reciprocal", "Reciprocal", "Reciprocal")
      .doc("1 / x, correctly rounded.", t);
  function("sin", [](D a, A) { return std::sin(a[0]); })
      .period(2 * std::numbers::pi)
      .special("0 -> 0; -0 -> -0; inf -> nan; -inf -> nan; nan -> nan")
      .names("Sin", "Sin", "Sin")
      .doc("Sine of an angle in radians.", t);
  function("cos", [](D a, A) { return std::cos(a[0]); })
      .period(2 * std::numbers::pi)
      .special("0 -> 1; -0 -> 1; inf -> nan; -inf -> nan; nan -> nan")
      .names("Cos", "Cos", "Cos")
      .doc("Cosine of an angle in radians.", t);
  function("tan", [](D a, A) { return std::tan(a[0]); })
      .monotone()
      .period(std::numbers::pi)
      .special("0 -> 0; -0 -> -0; inf -> nan; -inf -> nan; nan -> nan")
      .names("Tan", "Tan", "Tan")
      .doc("Tangent of an angle in radians.", t);
  function("tanh", [](D a, A) { return std::tanh(a[0]); })
      .monotone()
      .special("0 -> 0; -0 -> -0; inf -> 1; -inf -> -1; nan -> nan")
      .names("Tanh", "Tanh", "Tanh")
      .doc("Hyperbolic tangent.", t);
  function("sinh", [](D a, A) { return std::sinh(a[0]); })
      .ulp(1.5, 2)
      .monotone()
      .special("0 -> 0; -0 -> -0; inf -> inf; -inf -> -inf; nan -> nan")
      .names("Sinh", "Sinh", "Sinh")
      .doc("Hyperbolic sine.", t);
  function("cosh", [](D a, A) { return std::cosh(a[0]); })
      .ulp(1.5)
      .special("0 -> 1; -0 -> 1; inf -> inf; -inf -> inf; nan -> nan")
      .names("Cosh", "Cosh", "Cosh")
      .doc("Hyperbolic cosine.", t);
  function("asin", [](D a, A) { return std::asin(a[0]); })
      .ulp(1.5)
      .monotone()
      .special("0 -> 0; -0 -> -0; 2 -> nan; -2 -> nan; inf -> nan; nan -> nan")
      .names("Asin", "Asin", "Asin")
      .doc("Angle whose sine is the argument, in [-pi/2, pi/2].", t);
  function("acos", [](D a, A) { return std::acos(a[0]); })
      .ulp(1.5)
      .special("1 -> 0; 2 -> nan; -2 -> nan; inf -> nan; nan -> nan")
      .names("Acos", "Acos", "Acos")
      .doc("Angle whose cosine is the argument, in [0, pi].", t);
  function("atan", [](D a, A) { return std::atan(a[0]); })
      .ulp(1.5)
      .monotone()
      .special("0 -> 0; -0 -> -0; nan -> nan")
      .names("Atan", "Atan", "Atan")
      .doc("Angle whose tangent is the argument, in [-pi/2, pi/2].", t);
  function("asinh", [](D a, A) { return std::asinh(a[0]); })
      .ulp(1.5)
      .monotone()
      .special("0 -> 0; -0 -> -0; inf -> inf; -inf -> -inf; nan -> nan")
      .names("Asinh", "Asinh", "Asinh")
      .doc("Inverse of the hyperbolic sine.", t);
  function("acosh", [](D a, A) { return std::acosh(a[0]); })
      .ulp(1.5, 2)
      .special("1 -> 0; 0.5 -> nan; -inf -> nan; inf -> inf; nan -> nan")
      .names("Acosh", "Acosh", "Acosh")
      .doc("Inverse of the hyperbolic cosine, at least 0.", t);
  function("atanh", [](D a, A) { return std::atanh(a[0]); })
      .ulp(1.5, 2)
      .monotone()
      .special("0 -> 0; -0 -> -0; 1 -> inf; -1 -> -inf; 2 -> nan; nan -> nan")
      .names("Atanh", "Atanh", "Atanh")
      .doc("Inverse of the hyperbolic tangent.", t);
  function("sigmoid", [](D a, A) { return a[0] >= 0 ? 1 / (1 + std::exp(-a[0])) : std::exp(a[0]) / (1 + std::exp(a[0])); })
      .ulp(2)
      .monotone()
      .special("0 -> 0.5; inf -> 1; -inf -> 0; nan -> nan")
      .names("Sigmoid", "Sigmoid", "Sigmoid")
      .doc("1 / (1 + exp(-x)), accurate in both tails.", t);
  function("erf", [](D a, A) { return std::erf(a[0]); })
      .monotone()
      .special("0 -> 0; -0 -> -0; inf -> 1; -inf -> -1; nan -> nan")
      .names("Erf", "Erf", "Erf")
      .doc("Error function.", t);
  // In long double: the C library's double erfc is off by up to 3 ULP near 1.2 (measured with 200 bits).
  function("erfc", [](D a, A) { return static_cast<double>(std::erfc(static_cast<long double>(a[0]))); })
      .ulp(1, 5.5)  // f64: 5.30 at most, of 3.6 million values in [-6, 27.3]; f32 is rounded from it
      .monotone()
      .special("0 -> 1; inf -> 0; -inf -> 2; nan -> nan")
      .names("", "Erfc", "Erfc")
      .doc("1 - erf(x), accurate where that is small.", t);
  pointwise("atan2", "self, other")
      .type(TypeRule::promote_float)
      .lower("atan2(self, other)")
      .fp64([](D a, A) { return std::atan2(a[0], a[1]); })
      .ulp(1)
      .special("0 1 -> 0; -0 1 -> -0; 0 0 -> 0; -0 0 -> -0; 1 inf -> 0; -1 inf -> -0; nan 1 -> nan; 1 nan -> nan")
      .aten("atan2.default")
      .names("", "Atan2", "Atan2")
      .doc("Angle of the point (other, self), in (-pi, pi].", t);
  // Equal infinities are their own result: their difference would be NaN.
  pointwise("logaddexp", "self, other")
      .lower("select((self == other) & isinf(self), self, max(self, other) + log1p(exp(-abs(self - other))))")
      .lower_int("-")
      .fp64([](D a, A) {
        if (std::isnan(a[0]) || std::isnan(a[1])) return kNan;
        const double high = std::fmax(a[0], a[1]), low = std::fmin(a[0], a[1]);
        return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
      })
      .ulp(2)
      .monotone()
      .special("inf inf -> inf; -inf -inf -> -inf; inf -inf -> inf; nan 1 -> nan; 1 nan -> nan; -inf 2 -> 2")
      .aten("logaddexp.default")
      .doc("log(exp(self) + exp(other)) without overflow.", t);
  pointwise("xlogy", "self, other")
      .type(TypeRule::promote_float)
      .lower("select((self == 0) & !isnan(other), 0.0, self * log(other))")
      .fp64([](D a, A) { return std::isnan(a[1]) ? kNan
                                : a[0] == 0      ? 0
                                                 : a[0] * std::log(a[1]); })
      .ulp(1.5)
      .special("0 0 -> 0; 0 inf -> 0; 0 nan -> nan; nan 1 -> nan; 1 0 -> -inf; 1 -1 -> nan; 2 1 -> 0")
      .aten("xlogy.Tensor, xlogy.Scalar_Self, xlogy.Scalar_Other")
      .names("", "Xlogy", "Xlogy")
      .doc("self * log(other), 0 where self is 0.", t);
  // Number exponents take the forms eager takes, which differ from C's pow at -0 and -inf.
  pointwise("pow", "self, exponent")
      .strides(StrideRule::base_number)
      .lower(
          "if(is(exponent, 2), self * self, if(is(exponent, 1), self, if(is(exponent, 0.5), sqrt(self), "
          "if(is(exponent, 3), self * self * self, if(is(exponent, -1), 1 / self, if(is(exponent, -2), 1 / (self * self), "
          "if(is(exponent, -0.5), rsqrt(self), pow(self, exponent))))))))")
      .lower_int("if(is(exponent, 2), self * self, if(is(exponent, 1), self, ipow(self, exponent)))")
      .lower_bool("-")
      .fp64([](D a, A) { return std::pow(a[0], a[1]); })
      .fp64_of_number([](D a, A) {
        return a[1] == 0.5 ? std::sqrt(a[0]) : a[1] == -0.5 ? 1 / std::sqrt(a[0]) : std::pow(a[0], a[1]);
      })
      .exact([](I a, A, DType) {
        if (a[1] < 0)
          return a[0] == 1    ? std::int64_t{1}
                 : a[0] == -1 ? (a[1] % 2 != 0 ? std::int64_t{-1} : std::int64_t{1})
                              : std::int64_t{0};
        std::int64_t result = 1, base = a[0];
        for (std::uint64_t e = static_cast<std::uint64_t>(a[1]); e != 0; e >>= 1, base = wrap_mul(base, base)) {
          if ((e & 1) != 0) result = wrap_mul(result, base);
        }
        return result;
      })
      .ulp(1.5)
      .special(
          "nan 0 -> 1; 1 nan -> 1; 0 0 -> 1; -2 3 -> -8; -2 2 -> 4; -8 0.25 -> nan; 0 -1 -> inf; -0 -1 -> -inf; inf -1 -> 0; "
          "2 inf -> inf; 0.5 inf -> 0; -1 inf -> 1; -inf 3 -> -inf; 2 -inf -> 0")
      .aten("pow.Tensor_Tensor, pow.Tensor_Scalar, pow.Scalar")
      .names("Pow", "Pow", "Pow")
      .doc("self to the power of exponent; integers wrap, and a negative integer exponent gives 0, 1 or -1.", t);
}

}  // namespace fuselab::ops
