// Rows: activation functions, in forms that keep their accuracy in the tails.
#include "fuselab/ops/rows.h"

namespace fuselab::ops {
namespace {

/// An activation has no integer meaning in PyTorch.
Row activation(std::string name, const std::string& args = "self") { return pointwise(std::move(name), args).lower_int("-"); }

double logistic(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

}  // namespace

void add_activations(std::vector<Op>& t) {
  // A select, not max: relu keeps -0.0 and a NaN's payload.
  pointwise("relu", "self")
      .lower("select(self < 0, 0.0, self)")
      .lower_int("max(self, 0)")
      .lower_bool("-")
      .fp64([](D a, A) { return a[0] < 0 ? 0 : a[0]; })
      .exact([](I a, A, DType) { return a[0] < 0 ? std::int64_t{0} : a[0]; })
      .ulp(0)
      .monotone()
      .special("-0 -> -0; 0 -> 0; nan -> nan; -inf -> 0; inf -> inf; -1 -> 0")
      .aten("relu.default")
      .names("Relu", "Relu", "Relu")
      .doc("The argument where it is not negative, else 0.", t);
  // In f32 gelu, silu, mish, softplus, log_sigmoid and hardswish are kernel primitives of their own: their arguments' rounding
  // errors are carried along, and codegen rounds those of f16 and bf16 arguments correctly.
  // 1 + erf(x / sqrt 2) cancels for negative x; erfc does not. 1 + tanh(u) is 2 sigmoid(2u), which does not either.
  activation("gelu")
      .attr("approximate", AttrType::string, std::string("none"))
      .lower(
          "if(!wide, if(approximate == \"tanh\", gelu_tanh(self), gelu(self)), if(approximate == \"tanh\", "
          "self * sigmoid(self * fma(0.0713548162726002527, self * self, 1.59576912160573081)), "
          "0.5 * self * erfc(-0.707106781186547524 * self)))")
      .fp64([](D a, A t) {
        const double x = a[0];
        if (text(t, "approximate") == "tanh") return x * logistic(2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
        return static_cast<double>(x * std::erfc(-x / std::sqrt(2.0L)) / 2);
      })
      .ulp(9)  // below -12, where eager has no digit left; 3 above -1
      .special("0 -> 0; -0 -> -0; nan -> nan; -inf -> nan; inf -> inf")
      .aten("gelu.default")
      .names("Gelu", "Gelu", "Gelu")
      .doc("x times the normal distribution function of x; approximate=\"tanh\" uses the tanh form.", t);
  activation("silu")
      .lower("if(wide, self * sigmoid(self), silu(self))")
      .fp64([](D a, A) { return a[0] * logistic(a[0]); })
      .ulp(2)
      .special("0 -> 0; -0 -> -0; nan -> nan; inf -> inf; -inf -> nan")
      .aten("silu.default")
      .names("", "Swish", "Swish")
      .doc("x * sigmoid(x).", t);
  // tanh(log1p(e)) with e = exp(x) is n / (n + 2), n = e (e + 2): no logarithm, no cancellation. From 20 on it rounds to 1 even
  // in fp64.
  activation("mish")
      .lower("e = exp(self); n = e * (e + 2); if(wide, select(self > 20, self, self * (n / (n + 2))), mish(self))")
      .fp64([](D a, A) { return a[0] * std::tanh(a[0] > 30 ? a[0] : std::log1p(std::exp(a[0]))); })
      .ulp(4)
      .special("0 -> 0; -0 -> -0; nan -> nan; inf -> inf; -inf -> nan")
      .aten("mish.default")
      .names("Mish", "Mish", "Mish")
      .doc("x * tanh(softplus(x)).", t);
  activation("softplus")
      .attr("beta", AttrType::scalar, std::int64_t{1})
      .attr("threshold", AttrType::scalar, std::int64_t{20})
      .lower(
          "z = if(beta == 1, self, self * beta); s = if(wide, log1p(exp(z)), softplus(z)); select(z > threshold, self, if(beta "
          "== 1, s, s / beta))")
      .fp64([](D a, A t) {
        const double beta = real(t, "beta"), z = a[0] * beta;
        return z > real(t, "threshold") ? a[0] : std::log1p(std::exp(z)) / beta;
      })
      .ulp(3)
      .monotone()
      .special("nan -> nan; inf -> inf; -inf -> 0; 25 -> 25")
      .aten("softplus.default")
      .names("Softplus", "SoftplusV2", "SoftplusV2")
      .doc("log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold.", t);
  activation("log_sigmoid")
      .lower("if(wide, min(self, 0.0) - log1p(exp(-abs(self))), log_sigmoid(self))")
      .fp64([](D a, A) {
        return std::isnan(a[0]) ? kNan : a[0] >= 0 ? 0 - std::log1p(std::exp(-a[0])) : a[0] - std::log1p(std::exp(a[0]));
      })
      .ulp(2)
      .monotone()
      .special("nan -> nan; inf -> 0; -inf -> -inf")
      .aten("log_sigmoid_forward.default")
      .aten_result(0)
      .doc("log(sigmoid(x)).", t);
  activation("log_sigmoid_buffer")
      .lower("exp(-abs(self))")
      .fp64([](D a, A) { return std::exp(-std::fabs(a[0])); })
      .ulp(1)
      .special("nan -> nan; inf -> 0; 0 -> 1")
      .aten("log_sigmoid_forward.default")
      .aten_result(1)
      .doc("What PyTorch saves beside log_sigmoid: exp(-|x|).", t);
  activation("elu")
      .attr("alpha", AttrType::scalar, 1.0)
      .attr("scale", AttrType::scalar, std::int64_t{1})
      .attr("input_scale", AttrType::scalar, std::int64_t{1})
      .lower(
          "z = if(input_scale == 1, self, self * input_scale); n = if(alpha == 1 & scale == 1, expm1(z), expm1(z) * (alpha * "
          "scale)); "
          "select(self > 0, if(scale == 1, self, self * scale), n)")
      .fp64([](D a, A t) {
        const double scale = real(t, "scale");
        return a[0] > 0 ? a[0] * scale : real(t, "alpha") * scale * std::expm1(a[0] * real(t, "input_scale"));
      })
      .ulp(2.5)
      .special("0 -> 0; -0 -> -0; nan -> nan; inf -> inf; -inf -> -1")
      .aten("elu.default")
      .names("Elu", "Elu", "Elu")
      .doc("scale * x for positive x, else scale * alpha * (exp(input_scale * x) - 1).", t);
  activation("celu")
      .attr("alpha", AttrType::scalar, 1.0)
      .lower("select(self > 0, self, if(alpha == 1, expm1(self), expm1(self / alpha) * alpha))")
      .fp64([](D a, A t) { return a[0] > 0 ? a[0] : real(t, "alpha") * std::expm1(a[0] / real(t, "alpha")); })
      .ulp(2.5)
      .special("0 -> 0; -0 -> -0; nan -> nan; inf -> inf; -inf -> -1")
      .aten("celu.default")
      .names("Celu", "CeluV2", "CeluV2")
      .doc("x for positive x, else alpha * (exp(x / alpha) - 1).", t);
  activation("selu")
      .lower("select(self > 0, self * 1.0507009873554804934193349852946, expm1(self) * 1.7580993408473768599402175208123)")
      .fp64([](D a, A) {
        const double scale = 1.0507009873554804934193349852946, alpha = 1.6732632423543772848170429916717;
        return a[0] > 0 ? scale * a[0] : scale * alpha * std::expm1(a[0]);
      })
      .ulp(2.5)
      .monotone()
      .special("0 -> 0; -0 -> -0; nan -> nan; inf -> inf")
      .aten("selu.default")
      .names("Selu", "Selu", "Selu")
      .doc("elu with the self-normalising alpha and scale.", t);
  activation("leaky_relu")
      .attr("negative_slope", AttrType::scalar, 0.01)
      .lower("select(self > 0, self, self * negative_slope)")
      .fp64([](D a, A t) { return a[0] > 0 ? a[0] : a[0] * real(t, "negative_slope"); })
      .special("0 -> 0; -0 -> -0; nan -> nan; inf -> inf; -inf -> -inf")
      .aten("leaky_relu.default")
      .names("LeakyRelu", "LeakyRelu", "LeakyRelu")
      .doc("x for positive x, else x times negative_slope.", t);
  activation("prelu", "self, weight")
      .lower("select(self > 0, self, self * weight)")
      .fp64([](D a, A) { return a[0] > 0 ? a[0] : a[0] * a[1]; })
      .special("-1 0.5 -> -0.5; nan 1 -> nan; inf 0 -> inf; -inf 0 -> nan; -0 1 -> -0")
      .aten("_prelu_kernel.default")
      .names("PRelu", "PRelu", "PRelu")
      .doc("x for positive x, else x times weight.", t);
  pointwise("hardtanh", "self")
      .attr("min_val", AttrType::scalar, std::int64_t{-1})
      .attr("max_val", AttrType::scalar, std::int64_t{1})
      .lower("a = select(self < min_val, min_val, self); select(a > max_val, max_val, a)")
      .lower_bool("-")
      .fp64([](D a, A t) {
        return a[0] < real(t, "min_val") ? real(t, "min_val") : a[0] > real(t, "max_val") ? real(t, "max_val") : a[0];
      })
      .exact([](I a, A t, DType) {
        const std::int64_t low = integer(t, "min_val"), high = integer(t, "max_val");
        return a[0] < low ? low : a[0] > high ? high : a[0];
      })
      .ulp(0)
      .monotone()
      .special("-5 -> -1; 5 -> 1; -0 -> -0; nan -> nan; inf -> 1; -inf -> -1")
      .aten("hardtanh.default")
      .names("", "HardTanh", "HardTanh")
      .doc("The argument limited to [min_val, max_val].", t);
  activation("hardsigmoid")
      .lower("min(max(self + 3, 0.0), 6.0) / 6")
      .fp64([](D a, A) { return std::isnan(a[0]) ? kNan : std::fmin(std::fmax(a[0] + 3, 0), 6) / 6; })
      .ulp(1)
      .monotone()
      .special("0 -> 0.5; 3 -> 1; -3 -> 0; inf -> 1; -inf -> 0; nan -> nan")
      .aten("hardsigmoid.default")
      .names("HardSigmoid", "HardSigmoid", "HardSigmoid")
      .doc("x / 6 + 1/2 limited to [0, 1].", t);
  activation("hardswish")
      .lower("if(wide, self * (min(max(self + 3, 0.0), 6.0) / 6.0), hardswish(self))")
      .fp64([](D a, A) { return std::isnan(a[0]) ? kNan : a[0] * std::fmin(std::fmax(a[0] + 3, 0), 6) / 6; })
      .ulp(2)
      .special("0 -> 0; -0 -> -0; 3 -> 3; -3 -> -0; inf -> inf; -inf -> nan; nan -> nan")
      .aten("hardswish.default")
      .names("HardSwish", "HardSwish", "HardSwish")
      .doc("x times hardsigmoid(x).", t);
  pointwise("threshold", "self")
      .attr("threshold", AttrType::scalar)
      .attr("value", AttrType::scalar)
      .lower("select(self <= threshold, value, self)")
      .lower_bool("-")
      .fp64([](D a, A t) { return a[0] <= real(t, "threshold") ? real(t, "value") : a[0]; })
      .exact([](I a, A t, DType) { return a[0] <= integer(t, "threshold") ? integer(t, "value") : a[0]; })
      .ulp(0)
      .decides()
      .aten("threshold.default")
      .names("", "Threshold", "Threshold")
      .doc("The argument where it is above the threshold, else value.", t);
  activation("hardshrink")
      .attr("lambd", AttrType::scalar, 0.5)
      .lower("select((self >= -lambd) & (self <= lambd), 0.0, self)")
      .fp64([](D a, A t) { return std::fabs(a[0]) <= real(t, "lambd") ? 0 : a[0]; })
      .ulp(0)
      .decides()
      .special("0.5 -> 0; -0.5 -> 0; 1 -> 1; nan -> nan; -inf -> -inf")
      .aten("hardshrink.default")
      .names("Shrink", "HardShrink", "HardShrink")
      .doc("The argument where its magnitude is above lambd, else 0.", t);
  activation("softshrink")
      .attr("lambd", AttrType::scalar, 0.5)
      .lower("select(self > lambd, self - lambd, select(self < -lambd, self + lambd, self * 0.0))")
      .fp64([](D a, A t) {
        const double bound = real(t, "lambd");
        return a[0] > bound ? a[0] - bound : a[0] < -bound ? a[0] + bound : a[0] * 0;
      })
      .special("0.5 -> 0; 1 -> 0.5; -1 -> -0.5; nan -> nan; -inf -> -inf")
      .aten("softshrink.default")
      .names("Shrink", "SoftShrink", "SoftShrink")
      .doc("The argument moved towards 0 by lambd, at most to 0.", t);
}

}  // namespace fuselab::ops
