// Rows: rounding to integers, signs and casts.
#include "fuselab/ops/rows.h"

namespace fuselab::ops {
namespace {

/// Rounding keeps integers, and bool has none. A step function decides (R3).
Row rounding(std::string name, double (*meaning)(D, A)) {
  const std::string aten = name + ".default";
  std::string recipe = name + "(self)";
  return pointwise(std::move(name), "self")
      .lower(std::move(recipe))
      .lower_int("self")
      .lower_bool("-")
      .fp64(meaning)
      .exact([](I a, A, DType) { return a[0]; })
      .ulp(0)
      .monotone()
      .decides()
      .aten(aten);
}

}  // namespace

void add_rounding(std::vector<Op>& t) {
  rounding("floor", [](D a, A) { return std::floor(a[0]); })
      .special("-0 -> -0; 1.5 -> 1; -1.5 -> -2; inf -> inf; nan -> nan")
      .names("Floor", "Floor", "Floor")
      .doc("Largest integer not above the argument.", t);
  rounding("ceil", [](D a, A) { return std::ceil(a[0]); })
      .special("-0 -> -0; -0.5 -> -0; 1.5 -> 2; -inf -> -inf; nan -> nan")
      .names("Ceil", "Ceil", "Ceil")
      .doc("Smallest integer not below the argument.", t);
  rounding("trunc", [](D a, A) { return std::trunc(a[0]); })
      .special("-0.5 -> -0; 1.5 -> 1; -1.5 -> -1; inf -> inf; nan -> nan")
      .names("", "Trunc", "Trunc")
      .doc("Integer part.", t);
  rounding("round", [](D a, A) { return std::nearbyint(a[0]); })
      .special("0.5 -> 0; 1.5 -> 2; 2.5 -> 2; -0.5 -> -0; -2.5 -> -2; inf -> inf; nan -> nan")
      .names("Round", "Round", "Round")
      .doc("Nearest integer, ties to even.", t);
  pointwise("frac", "self")
      .lower("select(self == 0, self, self - trunc(self))")
      .lower_int("-")
      .fp64([](D a, A) { return a[0] == 0 ? a[0] : a[0] - std::trunc(a[0]); })
      .ulp(0)
      .decides()
      .special("-0 -> -0; 0 -> 0; 1.5 -> 0.5; -1.5 -> -0.5; inf -> nan; nan -> nan")
      .aten("frac.default")
      .doc("The part behind the point, with the argument's sign.", t);
  pointwise("sign", "self")
      .lower("select(self > 0, 1.0, select(self < 0, -1.0, 0.0))")
      .lower_int("select(self > 0, 1, select(self < 0, -1, 0))")
      .lower_bool("self")
      .fp64([](D a, A) { return static_cast<double>((a[0] > 0) - (a[0] < 0)); })
      .exact([](I a, A, DType) { return static_cast<std::int64_t>((a[0] > 0) - (a[0] < 0)); })
      .ulp(0)
      .monotone()
      .decides()
      .special("0 -> 0; -0 -> 0; inf -> 1; -inf -> -1; nan -> 0; 2 -> 1; -2 -> -1")
      .aten("sign.default, sgn.default")
      .names("Sign", "Sign", "Sign")
      .doc("-1, 0 or 1; 0 for NaN, as eager.", t);
  pointwise("signbit", "self")
      .type(TypeRule::boolean)
      .lower("signbit(self)")
      .lower_int("self < 0")
      .lower_bool("false")
      .fp64([](D a, A) { return std::signbit(a[0]) ? 1.0 : 0.0; })
      .exact([](I a, A, DType) { return std::int64_t{a[0] < 0}; })
      .ulp(0)
      .special("0 -> 0; -0 -> 1; -inf -> 1; 1 -> 0")
      .aten("signbit.default")
      .doc("Whether the sign bit is set.", t);
  pointwise("copysign", "self, other")
      .type(TypeRule::promote_float)
      .lower("copysign(self, other)")
      .fp64([](D a, A) { return std::copysign(a[0], a[1]); })
      .ulp(0)
      .special("1 -0 -> -1; -1 0 -> 1; 0 -1 -> -0; inf -2 -> -inf; nan 1 -> nan")
      .aten("copysign.Tensor, copysign.Scalar")
      .doc("Magnitude of the first with the sign of the second argument.", t);
  pointwise("cast", "self")
      .type(TypeRule::attr_dtype)
      .attr("dtype", AttrType::dtype)
      .lower("cast(self, dtype)")
      .fp64([](D a, A) { return a[0]; })
      .exact([](I a, A, DType) { return a[0]; })
      .monotone()
      .decides()
      .aten("_to_copy.default, prims::convert_element_type.default")
      .names("Cast", "Cast", "Cast")
      .doc(
          "Conversion to another dtype: to floating point rounded to nearest even, to integers towards zero, to bool whether not "
          "0.",
          t);
  pointwise("copy", "self")
      .lower("self")
      .fp64([](D a, A) { return a[0]; })
      .exact([](I a, A, DType) { return a[0]; })
      .ulp(0)
      .monotone()
      .special("-0 -> -0; inf -> inf; nan -> nan")
      .aten("clone.default, lift_fresh_copy.default")
      .names("Identity", "Identity", "Identity")
      .doc("A copy with the argument's bits.", t);
}

}  // namespace fuselab::ops
