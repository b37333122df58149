// Rows: choosing between values.
#include <algorithm>

#include "fuselab/ops/rows.h"

namespace fuselab::ops {
namespace {

double larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return kNan;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
double smaller(double a, double b) { return -larger(-a, -b); }

}  // namespace

void add_select(std::vector<Op>& t) {
  pointwise("minimum", "self, other")
      .lower("min(self, other)")
      .lower_bool("self & other")
      .fp64([](D a, A) { return smaller(a[0], a[1]); })
      .exact([](I a, A, DType) { return std::min(a[0], a[1]); })
      .ulp(0)
      .monotone()
      .special("nan 1 -> nan; 1 nan -> nan; -0 0 -> -0; 0 -0 -> -0; inf -inf -> -inf")
      .aten("minimum.default")
      .names("Min", "Minimum", "Minimum")
      .doc("The smaller argument; NaN if either is; -0 is below +0.", t);
  pointwise("maximum", "self, other")
      .lower("max(self, other)")
      .lower_bool("self | other")
      .fp64([](D a, A) { return larger(a[0], a[1]); })
      .exact([](I a, A, DType) { return std::max(a[0], a[1]); })
      .ulp(0)
      .monotone()
      .special("nan 1 -> nan; 1 nan -> nan; -0 0 -> 0; 0 -0 -> 0; inf -inf -> inf")
      .aten("maximum.default")
      .names("Max", "Maximum", "Maximum")
      .doc("The larger argument; NaN if either is; -0 is below +0.", t);
  pointwise("fmin", "self, other")
      .lower("select(isnan(self), other, select(isnan(other), self, min(self, other)))")
      .lower_int("min(self, other)")
      .lower_bool("self & other")
      .fp64([](D a, A) { return std::isnan(a[0])   ? a[1]
                                : std::isnan(a[1]) ? a[0]
                                                   : smaller(a[0], a[1]); })
      .exact([](I a, A, DType) { return std::min(a[0], a[1]); })
      .ulp(0)
      .monotone()
      .special("nan 1 -> 1; 1 nan -> 1; nan nan -> nan; inf -inf -> -inf")
      .aten("fmin.default")
      .doc("The smaller argument; the other one if one is NaN.", t);
  pointwise("fmax", "self, other")
      .lower("select(isnan(self), other, select(isnan(other), self, max(self, other)))")
      .lower_int("max(self, other)")
      .lower_bool("self | other")
      .fp64([](D a, A) { return std::isnan(a[0])   ? a[1]
                                : std::isnan(a[1]) ? a[0]
                                                   : larger(a[0], a[1]); })
      .exact([](I a, A, DType) { return std::max(a[0], a[1]); })
      .ulp(0)
      .monotone()
      .special("nan 1 -> 1; 1 nan -> 1; nan nan -> nan; inf -inf -> inf")
      .aten("fmax.default")
      .doc("The larger argument; the other one if one is NaN.", t);
  // A value equal to the bound stays itself (clamp(-0.0, min=0.0) is -0.0), a NaN bound gives NaN, max wins over min.
  pointwise("clamp", "self, min, max")
      .strides(StrideRule::tensors)
      .lower("a = select((self >= min) | isnan(self), self, min); select((a <= max) | isnan(a), a, max)")
      .lower_int("min(max(self, min), max)")
      .lower_bool("-")
      .fp64([](D a, A) {
        const double low = std::isnan(a[0]) || a[0] >= a[1] ? a[0] : a[1];
        return std::isnan(low) || low <= a[2] ? low : a[2];
      })
      .exact([](I a, A, DType) { return std::min(std::max(a[0], a[1]), a[2]); })
      .ulp(0)
      .monotone()
      .special(
          "nan 0 1 -> nan; 5 0 1 -> 1; -5 0 1 -> 0; 0.5 nan 1 -> nan; 0.5 0 nan -> nan; 2 5 3 -> 3; inf 0 1 -> 1; -0 0 1 -> -0")
      .aten("clamp.default, clamp.Tensor")
      .names("Clip", "ClipByValue", "ClipByValueV2")
      .doc("The argument, but not below min and not above max.", t);
  pointwise("clamp_min", "self, min")
      .strides(StrideRule::tensors)
      .lower("select((self >= min) | isnan(self), self, min)")
      .lower_int("max(self, min)")
      .lower_bool("self | min")
      .fp64([](D a, A) { return std::isnan(a[0]) || a[0] >= a[1] ? a[0] : a[1]; })
      .exact([](I a, A, DType) { return std::max(a[0], a[1]); })
      .ulp(0)
      .monotone()
      .special("nan 0 -> nan; -5 0 -> 0; 5 0 -> 5; 1 nan -> nan; -0 0 -> -0; -inf 1 -> 1")
      .aten("clamp_min.default, clamp_min.Tensor, clamp.default, clamp.Tensor")
      .doc("The argument, but not below min.", t);
  pointwise("clamp_max", "self, max")
      .strides(StrideRule::tensors)
      .lower("select((self <= max) | isnan(self), self, max)")
      .lower_int("min(self, max)")
      .lower_bool("self & max")
      .fp64([](D a, A) { return std::isnan(a[0]) || a[0] <= a[1] ? a[0] : a[1]; })
      .exact([](I a, A, DType) { return std::min(a[0], a[1]); })
      .ulp(0)
      .monotone()
      .special("nan 0 -> nan; -5 0 -> -5; 5 0 -> 0; 1 nan -> nan; inf 1 -> 1")
      .aten("clamp_max.default, clamp_max.Tensor, clamp.default, clamp.Tensor")
      .doc("The argument, but not above max.", t);
  pointwise("heaviside", "self, values")
      .lower("select(self == 0, values, select(self > 0, 1.0, 0.0))")
      .lower_int("select(self == 0, values, select(self > 0, 1, 0))")
      .lower_bool("self | values")
      .fp64([](D a, A) { return a[0] == 0  ? a[1]
                                : a[0] > 0 ? 1.0
                                           : 0.0; })
      .exact([](I a, A, DType) { return a[0] == 0 ? a[1] : std::int64_t{a[0] > 0}; })
      .ulp(0)
      .decides()
      .special("0 7 -> 7; -0 7 -> 7; 1 7 -> 1; -1 7 -> 0; nan 7 -> 0; inf nan -> 1; 0 nan -> nan")
      .aten("heaviside.default")
      .doc("0 for negative, 1 for positive arguments, values where the argument is 0.", t);
  pointwise("where", "condition!, self, other")
      .type(TypeRule::where_)
      .lower("select(condition, self, other)")
      .fp64([](D a, A) { return a[0] != 0 ? a[1] : a[2]; })
      .exact([](I a, A, DType) { return a[0] != 0 ? a[1] : a[2]; })
      .ulp(0)
      .special("1 nan 2 -> nan; 0 nan 2 -> 2; 1 -0 2 -> -0; 0 inf -inf -> -inf")
      .aten("where.self, where.ScalarSelf, where.ScalarOther, where.Scalar")
      .names("Where", "SelectV2", "SelectV2")
      .doc("self where the condition holds, else other.", t);
  pointwise("masked_fill", "self, mask!, value")
      .strides(StrideRule::row_major)
      .type(TypeRule::first)
      .lower("select(mask, value, self)")
      .fp64([](D a, A) { return a[1] != 0 ? a[2] : a[0]; })
      .exact([](I a, A, DType) { return a[1] != 0 ? a[2] : a[0]; })
      .ulp(0)
      .special("nan 1 2 -> 2; nan 0 2 -> nan; 1 1 -inf -> -inf; -0 0 1 -> -0")
      .aten("masked_fill.Scalar, masked_fill.Tensor")
      .names("", "MaskedFill", "MaskedFill")
      .doc("value where the mask holds, else self.", t);
}

}  // namespace fuselab::ops
