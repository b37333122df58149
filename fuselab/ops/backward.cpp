// Rows: derivatives of pointwise operators. Where the derivative jumps, the operator decides on its rounded argument (R3).
#include "fuselab/ops/rows.h"

namespace fuselab::ops {
namespace {

Row gradient(std::string name, const std::string& args) {
  const std::string aten = name + ".default";
  return pointwise(std::move(name), args).lower_int("-").aten(aten);
}

double logistic(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

}  // namespace

void add_backward(std::vector<Op>& t) {
  gradient("gelu_backward", "grad_output, self")
      .attr("approximate", AttrType::string, std::string("none"))
      .lower(
          "v = self * fma(0.0713548162726002527, self * self, 1.59576912160573081); s = sigmoid(v); "
          "dv = fma(0.214064448817800758, self * self, 1.59576912160573081); "
          "cdf = 0.5 * erfc(-0.707106781186547524 * self); pdf = 0.398942280401432678 * exp(-0.5 * self * self); "
          "grad_output * if(approximate == \"tanh\", fma(self * s, sigmoid(-v) * dv, s), fma(self, pdf, cdf))")
      .fp64([](D a, A t) {
        const double x = a[1];
        if (text(t, "approximate") == "tanh") {
          const double k = 2 * std::sqrt(2 / M_PI), v = k * (x + 0.044715 * x * x * x), s = logistic(v);
          return a[0] * (s + x * s * logistic(-v) * k * (1 + 3 * 0.044715 * x * x));
        }
        return a[0] * (std::erfc(-x / std::sqrt(2.0)) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI));
      })
      .ulp(8)
      .special("1 0 -> 0.5; 1 nan -> nan; nan 0 -> nan")
      .names("", "GeluGrad", "GeluGrad")
      .doc("Derivative of gelu.", t);
  gradient("silu_backward", "grad_output, self")
      .lower("s = sigmoid(self); grad_output * (s * fma(self, 1 - s, 1))")
      .fp64([](D a, A) { return a[0] * logistic(a[1]) * (1 + a[1] * logistic(-a[1])); })
      .ulp(6)
      .special("1 0 -> 0.5; 1 nan -> nan; nan 0 -> nan")
      .names("", "SwishGrad", "SwishGrad")
      .doc("Derivative of silu.", t);
  gradient("tanh_backward", "grad_output, output")
      .lower("grad_output * fma(-output, output, 1)")
      .fp64([](D a, A) { return a[0] * (1 - a[1]) * (1 + a[1]); })
      .ulp(1)
      .special("1 0 -> 1; 1 1 -> 0; 1 -1 -> 0; inf 1 -> nan; 1 nan -> nan")
      .names("", "TanhGrad", "TanhGrad")
      .doc("Derivative of tanh, from its result.", t);
  gradient("sigmoid_backward", "grad_output, output")
      .lower("grad_output * ((1 - output) * output)")
      .fp64([](D a, A) { return a[0] * (1 - a[1]) * a[1]; })
      .ulp(1.5)
      .special("1 0.5 -> 0.25; 1 1 -> 0; 1 0 -> 0; inf 1 -> nan; 1 nan -> nan")
      .names("", "SigmoidGrad", "SigmoidGrad")
      .doc("Derivative of sigmoid, from its result.", t);
  pointwise("threshold_backward", "grad_output~, self")
      .attr("threshold", AttrType::scalar, std::int64_t{0})
      .lower("select(self <= threshold, 0.0, grad_output)")
      .lower_int("select(self <= threshold, 0, grad_output)")
      .lower_bool("-")
      .fp64([](D a, A t) { return a[1] <= real(t, "threshold") ? 0 : a[0]; })
      .exact([](I a, A t, DType) { return a[1] <= integer(t, "threshold") ? std::int64_t{0} : a[0]; })
      .ulp(0)
      .decides()
      .special("2 0 -> 0; 2 1 -> 2; 2 nan -> 2; nan -1 -> 0; 2 -0 -> 0")
      .aten("threshold_backward.default")
      .names("", "ReluGrad", "ReluGrad")
      .doc("The gradient where the argument is above the threshold, else 0 (relu's derivative).", t);
  gradient("hardtanh_backward", "grad_output~, self")
      .attr("min_val", AttrType::scalar, std::int64_t{-1})
      .attr("max_val", AttrType::scalar, std::int64_t{1})
      .lower("select((self > min_val) & (self < max_val), grad_output, 0.0)")
      .fp64([](D a, A t) { return a[1] > real(t, "min_val") && a[1] < real(t, "max_val") ? a[0] : 0; })
      .ulp(0)
      .decides()
      .special("2 0 -> 2; 2 1 -> 0; 2 -1 -> 0; 2 nan -> 0")
      .names("", "HardtanhGrad", "HardtanhGrad")
      .doc("The gradient strictly inside (min_val, max_val), else 0.", t);
  gradient("leaky_relu_backward", "grad_output~, self")
      .attr("negative_slope", AttrType::scalar, 0.01)
      .attr("self_is_result", AttrType::boolean, false)
      .lower("select(self > 0, grad_output, grad_output * negative_slope)")
      .fp64([](D a, A t) { return a[1] > 0 ? a[0] : a[0] * real(t, "negative_slope"); })
      .decides()
      .special("2 1 -> 2; nan -1 -> nan; inf -1 -> inf")
      .names("", "LeakyReluGrad", "LeakyReluGrad")
      .doc("Derivative of leaky_relu.", t);
  gradient("elu_backward", "grad_output~, self_or_result")
      .attr("alpha", AttrType::scalar, 1.0)
      .attr("scale", AttrType::scalar, std::int64_t{1})
      .attr("input_scale", AttrType::scalar, std::int64_t{1})
      .attr("is_result", AttrType::boolean, false)
      .lower(
          "c = alpha * scale; "
          "n = if(is_result, (self_or_result + c) * input_scale, exp(self_or_result * input_scale) * (c * input_scale)); "
          "grad_output * select(self_or_result <= 0, n, select(isnan(self_or_result), self_or_result, scale))")
      .fp64([](D a, A t) {
        const double scale = real(t, "scale"), in = real(t, "input_scale"), c = real(t, "alpha") * scale;
        if (a[1] > 0) return a[0] * scale;
        return flag(t, "is_result") ? a[0] * in * (a[1] + c) : a[0] * in * c * std::exp(a[1] * in);
      })
      .ulp(3)
      .decides()
      .special("2 1 -> 2; 2 0 -> 2; 2 -inf -> 0; nan 1 -> nan")
      .names("", "EluGrad", "EluGrad")
      .doc("Derivative of elu, from its argument or (is_result) its result.", t);
  gradient("hardswish_backward", "grad_output~, self")
      .lower("select(self <= -3, 0.0, select(self >= 3, grad_output, grad_output * (self / 3 + 0.5)))")
      .fp64([](D a, A) { return a[1] <= -3  ? 0
                                : a[1] >= 3 ? a[0]
                                            : a[0] * (a[1] / 3 + 0.5); })
      .ulp(2)
      .decides()
      .special("2 -3 -> 0; 2 3 -> 2; 2 0 -> 1; 2 nan -> nan; 2 inf -> 2; 2 -inf -> 0")
      .names("", "HardSwishGrad", "HardSwishGrad")
      .doc("Derivative of hardswish.", t);
  gradient("hardsigmoid_backward", "grad_output~, self")
      .lower("select((self > -3) & (self < 3), grad_output / 6, 0.0)")
      .fp64([](D a, A) { return a[1] > -3 && a[1] < 3 ? a[0] / 6 : 0; })
      .decides()
      .special("6 0 -> 1; 6 3 -> 0; 6 -3 -> 0; 6 nan -> 0")
      .names("", "HardSigmoidGrad", "HardSigmoidGrad")
      .doc("Derivative of hardsigmoid.", t);
  gradient("softplus_backward", "grad_output~, self")
      .attr("beta", AttrType::scalar, std::int64_t{1})
      .attr("threshold", AttrType::scalar, std::int64_t{20})
      .lower("z = self * beta; select(z > threshold, grad_output, grad_output * sigmoid(z))")
      .fp64([](D a, A t) {
        const double z = a[1] * real(t, "beta");
        return z > real(t, "threshold") ? a[0] : a[0] * logistic(z);
      })
      .ulp(2)
      .decides()
      .special("2 0 -> 1; 2 25 -> 2; 2 nan -> nan; 2 -inf -> 0")
      .names("", "SoftplusV2Grad", "SoftplusV2Grad")
      .doc("Derivative of softplus.", t);
  // With e = exp(x), q = 2 / (n + 2): tanh = n / (n + 2) and x sigmoid(x) (1 - tanh^2) = x e q (1 + e) q.
  gradient("mish_backward", "grad_output, self")
      .lower(
          "e = exp(self); n = e * (e + 2); q = 2 / (n + 2); d = fma(self * (e * q), (1 + e) * q, n / (n + 2)); "
          "grad_output * select(self > 20, 1.0, d)")
      .fp64([](D a, A) {
        if (a[1] > 30) return a[0];
        const double t = std::tanh(std::log1p(std::exp(a[1])));
        const double sech = 1 / std::cosh(std::log1p(std::exp(a[1])));
        return a[0] * (t + a[1] * logistic(a[1]) * sech * sech);
      })
      .ulp(8)
      .special("1 25 -> 1; 1 nan -> nan; nan 1 -> nan")
      .names("", "MishGrad", "MishGrad")
      .doc("Derivative of mish.", t);
  gradient("log_sigmoid_backward", "grad_output, self, buffer?")
      .lower("grad_output * sigmoid(-self)")
      .fp64([](D a, A) { return a[0] * logistic(-a[1]); })
      .ulp(2)
      .doc("Derivative of log_sigmoid; what the forward saved is not needed.", t);
  gradient("hardshrink_backward", "grad_out~, self")
      .attr("lambd", AttrType::scalar, 0.5)
      .lower("select((self > lambd) | (self < -lambd), grad_out, 0.0)")
      .fp64([](D a, A t) { return std::fabs(a[1]) > real(t, "lambd") ? a[0] : 0; })
      .ulp(0)
      .decides()
      .special("2 0.5 -> 0; 2 1 -> 2; 2 -1 -> 2; 2 nan -> 0")
      .doc("The gradient where the argument's magnitude is above lambd, else 0.", t);
  gradient("softshrink_backward", "grad_output~, self")
      .attr("lambd", AttrType::scalar, 0.5)
      .lower("select((self > lambd) | (self < -lambd), grad_output, 0.0)")
      .fp64([](D a, A t) { return std::fabs(a[1]) > real(t, "lambd") ? a[0] : 0; })
      .ulp(0)
      .decides()
      .special("2 0.5 -> 0; 2 1 -> 2; 2 -1 -> 2; 2 nan -> 0")
      .doc("The gradient where the argument's magnitude is above lambd, else 0.", t);
}

}  // namespace fuselab::ops
