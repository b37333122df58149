// Rows: arithmetic.
#include "fuselab/ops/rows.h"

namespace fuselab::ops {

void add_arithmetic(std::vector<Op>& t) {
  pointwise("add", "self, other")
      .attr("alpha", AttrType::scalar, std::int64_t{1})
      .lower("if(alpha == 1, self + other, fma(alpha, other, self))")
      .lower_int("if(alpha == 1, self + other, self + alpha * other)")
      .lower_bool("if(alpha == 0, self, self | other)")
      .fp64([](D a, A t) { return std::fma(real(t, "alpha"), a[1], a[0]); })
      .exact([](I a, A t, DType) { return wrap_add(a[0], wrap_mul(integer(t, "alpha"), a[1])); })
      .monotone()
      .special("inf -inf -> nan; nan 1 -> nan; -0 -0 -> -0; -0 0 -> 0; inf 1 -> inf")
      .aten("add.Tensor, add.Scalar")
      .names("Add", "Add", "Add")
      .doc("Sum of two tensors, the second times alpha.", t);
  pointwise("sub", "self, other")
      .attr("alpha", AttrType::scalar, std::int64_t{1})
      .lower("if(alpha == 1, self - other, fma(-alpha, other, self))")
      .lower_int("if(alpha == 1, self - other, self - alpha * other)")
      .lower_bool("-")
      .fp64([](D a, A t) { return std::fma(-real(t, "alpha"), a[1], a[0]); })
      .exact([](I a, A t, DType) { return wrap_sub(a[0], wrap_mul(integer(t, "alpha"), a[1])); })
      .monotone()
      .special("inf inf -> nan; 0 0 -> 0; -0 0 -> -0; nan 1 -> nan")
      .aten("sub.Tensor, sub.Scalar")
      .names("Sub", "Sub", "Sub")
      .doc("Difference of two tensors, the second times alpha.", t);
  pointwise("rsub", "self, other")
      .attr("alpha", AttrType::scalar, std::int64_t{1})
      .lower("if(alpha == 1, other - self, fma(-alpha, self, other))")
      .lower_int("if(alpha == 1, other - self, other - alpha * self)")
      .lower_bool("-")
      .fp64([](D a, A t) { return std::fma(-real(t, "alpha"), a[0], a[1]); })
      .exact([](I a, A t, DType) { return wrap_sub(a[1], wrap_mul(integer(t, "alpha"), a[0])); })
      .monotone()
      .special("inf inf -> nan; 1 inf -> inf")
      .aten("rsub.Tensor, rsub.Scalar")
      .doc("The second argument minus alpha times the first.", t);
  pointwise("mul", "self, other")
      .lower("self * other")
      .lower_bool("self & other")
      .fp64([](D a, A) { return a[0] * a[1]; })
      .exact([](I a, A, DType) { return wrap_mul(a[0], a[1]); })
      .special("nan 0 -> nan; inf 0 -> nan; -1 0 -> -0; -inf -1 -> inf")
      .aten("mul.Tensor, mul.Scalar")
      .names("Mul", "Mul", "Mul")
      .doc("Product of two tensors.", t);
  pointwise("div", "self, other")
      .type(TypeRule::promote_float)
      .lower("self / other")
      .fp64([](D a, A) { return a[0] / a[1]; })
      .special("1 0 -> inf; -1 0 -> -inf; 1 -0 -> -inf; 0 0 -> nan; 0 nan -> nan; inf inf -> nan; 1 inf -> 0; -1 inf -> -0")
      .aten("div.Tensor, div.Scalar, div.Tensor_mode[rounding_mode=none], div.Scalar_mode[rounding_mode=none]")
      .names("Div", "RealDiv", "RealDiv")
      .doc("True division; integers become floating point.", t);
  // PyTorch's floor division: the quotient of what fmod leaves over is within rounding of an integer, so it is snapped to it.
  pointwise("div_floor", "self, other")
      .lower(
          "q = self / other; m = fmod(self, other); d = (self - m) / other; "
          "e = select((m != 0) & ((other < 0) != (m < 0)), d - 1, d); f = floor(e); "
          "g = select(e - f > 0.5, f + 1, f); select(other == 0, q, select(e != 0, g, copysign(e * 0, q)))")
      .lower_int("idiv_floor(self, other)")
      .lower_bool("-")
      .fp64([](D a, A) {
        if (a[1] == 0) return a[0] / a[1];
        const double left = std::fmod(a[0], a[1]);
        double quotient = (a[0] - left) / a[1];
        if (left != 0 && std::signbit(left) != std::signbit(a[1])) quotient -= 1;
        return quotient == 0 ? std::copysign(0.0, a[0] / a[1]) : std::nearbyint(quotient);
      })
      .exact([](I a, A, DType) {
        if (a[1] == -1) return wrap_sub(0, a[0]);
        const std::int64_t q = a[0] / a[1];
        return q - (a[0] % a[1] != 0 && (a[0] < 0) != (a[1] < 0) ? 1 : 0);
      })
      .decides()
      .special(
          "7 2 -> 3; -7 2 -> -4; 7 -2 -> -4; -7 -2 -> 3; 1 0 -> inf; -1 0 -> -inf; 0 0 -> nan; inf 2 -> nan; 1 inf -> 0; "
          "-1 inf -> -1; 0 3 -> 0; -0 3 -> -0; nan 1 -> nan; 98 98 -> 1")
      .aten(
          "floor_divide.default, floor_divide.Scalar, div.Tensor_mode[rounding_mode=floor], div.Scalar_mode[rounding_mode=floor]")
      .names("", "FloorDiv", "FloorDiv")
      .doc("Division rounded to minus infinity; an integer divisor of zero is an error.", t);
  pointwise("div_trunc", "self, other")
      .lower("trunc(self / other)")
      .lower_int("idiv_trunc(self, other)")
      .lower_bool("-")
      .fp64([](D a, A) { return std::trunc(a[0] / a[1]); })
      .exact([](I a, A, DType) { return a[1] == -1 ? wrap_sub(0, a[0]) : a[0] / a[1]; })
      .decides()
      .special("7 2 -> 3; -7 2 -> -3; 7 -2 -> -3; -7 -2 -> 3; 1 0 -> inf; 0 0 -> nan; -1 inf -> -0; inf 2 -> inf")
      .aten("div.Tensor_mode[rounding_mode=trunc], div.Scalar_mode[rounding_mode=trunc]")
      .names("", "TruncateDiv", "TruncateDiv")
      .doc("Division rounded to zero; an integer divisor of zero is an error.", t);
  pointwise("remainder", "self, other")
      .lower("m = fmod(self, other); select((m != 0) & ((other < 0) != (m < 0)), m + other, m)")
      .lower_int("imod_floor(self, other)")
      .lower_bool("-")
      .fp64([](D a, A) {
        const double left = std::fmod(a[0], a[1]);
        return left != 0 && std::signbit(left) != std::signbit(a[1]) ? left + a[1] : left;
      })
      .exact([](I a, A, DType) {
        if (a[1] == -1) return std::int64_t{0};
        const std::int64_t left = a[0] % a[1];
        return left != 0 && (left < 0) != (a[1] < 0) ? left + a[1] : left;
      })
      .decides()
      .special(
          "7 2 -> 1; -7 2 -> 1; 7 -2 -> -1; -7 -2 -> -1; 1 0 -> nan; inf 2 -> nan; -1 inf -> inf; 1 inf -> 1; -3 3 -> -0; 0 3 -> "
          "0")
      .aten("remainder.Tensor, remainder.Scalar, remainder.Scalar_Tensor")
      .names("", "FloorMod", "FloorMod")
      .doc("Remainder with the divisor's sign (Python's %); an integer divisor of zero is an error.", t);
  pointwise("fmod", "self, other")
      .lower("fmod(self, other)")
      .lower_int("irem(self, other)")
      .lower_bool("-")
      .fp64([](D a, A) { return std::fmod(a[0], a[1]); })
      .exact([](I a, A, DType) { return a[1] == -1 ? std::int64_t{0} : a[0] % a[1]; })
      .ulp(0)
      .decides()
      .special("7 2 -> 1; -7 2 -> -1; 7 -2 -> 1; -7 -2 -> -1; 1 0 -> nan; inf 2 -> nan; -1 inf -> -1; -3 3 -> -0")
      .aten("fmod.Tensor, fmod.Scalar")
      .names("Mod", "Mod", "Mod")
      .doc("Remainder with the dividend's sign (C's fmod); an integer divisor of zero is an error.", t);
  pointwise("neg", "self")
      .lower("-self")
      .lower_bool("-")
      .fp64([](D a, A) { return -a[0]; })
      .exact([](I a, A, DType) { return wrap_sub(0, a[0]); })
      .ulp(0)
      .monotone()
      .special("0 -> -0; -0 -> 0; inf -> -inf; nan -> nan")
      .aten("neg.default")
      .names("Neg", "Neg", "Neg")
      .doc("Negation; integers wrap.", t);
  pointwise("abs", "self")
      .lower("abs(self)")
      .lower_bool("-")
      .fp64([](D a, A) { return std::fabs(a[0]); })
      .exact([](I a, A, DType) { return a[0] < 0 ? wrap_sub(0, a[0]) : a[0]; })
      .ulp(0)
      .special("-0 -> 0; -inf -> inf; nan -> nan; -3 -> 3")
      .aten("abs.default")
      .names("Abs", "Abs", "Abs")
      .doc("Absolute value; the most negative integer stays itself.", t);
  pointwise("square", "self")
      .lower("self * self")
      .lower_bool("-")
      .fp64([](D a, A) { return a[0] * a[0]; })
      .exact([](I a, A, DType) { return wrap_mul(a[0], a[0]); })
      .special("-inf -> inf; -0 -> 0; nan -> nan")
      .aten("square.default")
      .names("", "Square", "Square")
      .doc("The argument times itself.", t);
  pointwise("addcmul", "self, tensor1, tensor2")
      .attr("value", AttrType::scalar, std::int64_t{1})
      .lower("if(value == 1, fma(tensor1, tensor2, self), fma(value * tensor1, tensor2, self))")
      .lower_int("self + value * tensor1 * tensor2")
      .lower_bool("-")
      .fp64([](D a, A t) { return std::fma(real(t, "value") * a[1], a[2], a[0]); })
      .exact([](I a, A t, DType) { return wrap_add(a[0], wrap_mul(integer(t, "value"), wrap_mul(a[1], a[2]))); })
      .ulp(1)
      .special("1 inf 0 -> nan; inf 1 1 -> inf; inf -inf 1 -> nan")
      .aten("addcmul.default")
      .names("", "Addcmul", "Addcmul")
      .doc("self + value * tensor1 * tensor2.", t);
  pointwise("addcdiv", "self, tensor1, tensor2")
      .attr("value", AttrType::scalar, std::int64_t{1})
      .lower("if(value == 1, self + tensor1 / tensor2, fma(value, tensor1 / tensor2, self))")
      .lower_int("-")
      .fp64([](D a, A t) { return std::fma(real(t, "value"), a[1] / a[2], a[0]); })
      .ulp(1)
      .special("1 1 0 -> inf; 1 0 0 -> nan; -inf 1 0 -> nan; 1 1 inf -> 1")
      .aten("addcdiv.default")
      .names("", "Addcdiv", "Addcdiv")
      .doc("self + value * tensor1 / tensor2.", t);
  // Two forms, so that weight 0 and weight 1 give the ends exactly.
  pointwise("lerp", "self, end, weight")
      .strides(StrideRule::tensors)
      .lower("d = end - self; select(abs(weight) < 0.5, fma(weight, d, self), fma(-d, 1 - weight, end))")
      .lower_int("-")
      .fp64([](D a, A) { return std::fabs(a[2]) < 0.5 ? a[0] + a[2] * (a[1] - a[0]) : a[1] - (a[1] - a[0]) * (1 - a[2]); })
      .ulp(2)
      .special("1 3 0 -> 1; 1 3 1 -> 3; 1 3 0.5 -> 2; 1 inf 0 -> nan; nan 1 0 -> nan")
      .aten("lerp.Tensor, lerp.Scalar")
      .names("", "Lerp", "Lerp")
      .doc("Linear interpolation: self at weight 0, end at weight 1.", t);
}

}  // namespace fuselab::ops
