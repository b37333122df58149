// Rows: comparisons, logic and tests of floating-point kinds. All decide (R3).
#include "fuselab/ops/rows.h"

namespace fuselab::ops {
namespace {

Row comparison(std::string name, const std::string& sign, double (*meaning)(D, A), std::int64_t (*exact)(I, A, DType)) {
  const std::string aten = name + ".Tensor, " + name + ".Scalar";
  return pointwise(std::move(name), "self, other")
      .type(TypeRule::boolean)
      .lower("self " + sign + " other")
      .fp64(meaning)
      .exact(exact)
      .ulp(0)
      .decides()
      .aten(aten);
}

/// A question about floating-point values that integers answer with a constant.
Row test(std::string name, const std::string& integers, double (*meaning)(D, A), std::int64_t (*exact)(I, A, DType)) {
  const std::string aten = name + ".default";
  std::string recipe = name + "(self)";
  return pointwise(std::move(name), "self")
      .type(TypeRule::boolean)
      .lower(std::move(recipe))
      .lower_int(integers)
      .fp64(meaning)
      .exact(exact)
      .ulp(0)
      .decides()
      .aten(aten);
}

double truth(bool b) { return b ? 1 : 0; }

}  // namespace

void add_compare(std::vector<Op>& t) {
  comparison(
      "eq", "==", [](D a, A) { return truth(a[0] == a[1]); }, [](I a, A, DType) { return std::int64_t{a[0] == a[1]}; })
      .special("0 -0 -> 1; nan nan -> 0; inf inf -> 1; 1 2 -> 0")
      .names("Equal", "Equal", "Equal")
      .doc("Whether the arguments are equal.", t);
  comparison(
      "ne", "!=", [](D a, A) { return truth(a[0] != a[1]); }, [](I a, A, DType) { return std::int64_t{a[0] != a[1]}; })
      .special("0 -0 -> 0; nan nan -> 1; inf -inf -> 1")
      .names("", "NotEqual", "NotEqual")
      .doc("Whether the arguments differ; true for NaN.", t);
  comparison(
      "lt", "<", [](D a, A) { return truth(a[0] < a[1]); }, [](I a, A, DType) { return std::int64_t{a[0] < a[1]}; })
      .special("nan 1 -> 0; 1 nan -> 0; -0 0 -> 0; -inf 0 -> 1")
      .names("Less", "Less", "Less")
      .doc("Whether the first argument is below the second.", t);
  comparison(
      "le", "<=", [](D a, A) { return truth(a[0] <= a[1]); }, [](I a, A, DType) { return std::int64_t{a[0] <= a[1]}; })
      .special("nan nan -> 0; 0 -0 -> 1; inf inf -> 1")
      .names("LessOrEqual", "LessEqual", "LessEqual")
      .doc("Whether the first argument is not above the second; false for NaN.", t);
  comparison(
      "gt", ">", [](D a, A) { return truth(a[0] > a[1]); }, [](I a, A, DType) { return std::int64_t{a[0] > a[1]}; })
      .special("nan 1 -> 0; 1 nan -> 0; 0 -0 -> 0; inf 0 -> 1")
      .names("Greater", "Greater", "Greater")
      .doc("Whether the first argument is above the second.", t);
  comparison(
      "ge", ">=", [](D a, A) { return truth(a[0] >= a[1]); }, [](I a, A, DType) { return std::int64_t{a[0] >= a[1]}; })
      .special("nan nan -> 0; -0 0 -> 1; -inf -inf -> 1")
      .names("GreaterOrEqual", "GreaterEqual", "GreaterEqual")
      .doc("Whether the first argument is not below the second; false for NaN.", t);

  pointwise("logical_and", "self, other")
      .type(TypeRule::boolean)
      .lower("(self != 0) & (other != 0)")
      .lower_bool("self & other")
      .fp64([](D a, A) { return truth(a[0] != 0 && a[1] != 0); })
      .exact([](I a, A, DType) { return std::int64_t{a[0] != 0 && a[1] != 0}; })
      .ulp(0)
      .decides()
      .special("nan 1 -> 1; 1 -0 -> 0; inf -inf -> 1")
      .aten("logical_and.default")
      .names("And", "LogicalAnd", "LogicalAnd")
      .doc("Whether both arguments are not 0 (NaN is not 0).", t);
  pointwise("logical_or", "self, other")
      .type(TypeRule::boolean)
      .lower("(self != 0) | (other != 0)")
      .lower_bool("self | other")
      .fp64([](D a, A) { return truth(a[0] != 0 || a[1] != 0); })
      .exact([](I a, A, DType) { return std::int64_t{a[0] != 0 || a[1] != 0}; })
      .ulp(0)
      .decides()
      .special("nan 0 -> 1; -0 0 -> 0")
      .aten("logical_or.default")
      .names("Or", "LogicalOr", "LogicalOr")
      .doc("Whether an argument is not 0 (NaN is not 0).", t);
  pointwise("logical_xor", "self, other")
      .type(TypeRule::boolean)
      .lower("(self != 0) != (other != 0)")
      .lower_bool("self != other")
      .fp64([](D a, A) { return truth((a[0] != 0) != (a[1] != 0)); })
      .exact([](I a, A, DType) { return std::int64_t{(a[0] != 0) != (a[1] != 0)}; })
      .ulp(0)
      .decides()
      .special("nan 0 -> 1; nan 1 -> 0; -0 0 -> 0")
      .aten("logical_xor.default")
      .names("Xor", "LogicalXor", "LogicalXor")
      .doc("Whether exactly one argument is not 0 (NaN is not 0).", t);
  pointwise("logical_not", "self")
      .type(TypeRule::boolean)
      .lower("self == 0")
      .lower_bool("!self")
      .fp64([](D a, A) { return truth(a[0] == 0); })
      .exact([](I a, A, DType) { return std::int64_t{a[0] == 0}; })
      .ulp(0)
      .decides()
      .special("0 -> 1; -0 -> 1; nan -> 0; 2 -> 0")
      .aten("logical_not.default")
      .names("Not", "LogicalNot", "LogicalNot")
      .doc("Whether the argument is 0.", t);

  test(
      "isnan", "false", [](D a, A) { return truth(std::isnan(a[0])); }, [](I, A, DType) { return std::int64_t{0}; })
      .special("nan -> 1; inf -> 0; 0 -> 0")
      .names("IsNaN", "IsNan", "IsNan")
      .doc("Whether the argument is NaN.", t);
  test(
      "isinf", "false", [](D a, A) { return truth(std::isinf(a[0])); }, [](I, A, DType) { return std::int64_t{0}; })
      .special("nan -> 0; inf -> 1; -inf -> 1; 1 -> 0")
      .names("IsInf", "IsInf", "IsInf")
      .doc("Whether the argument is infinite.", t);
  test(
      "isfinite", "true", [](D a, A) { return truth(std::isfinite(a[0])); }, [](I, A, DType) { return std::int64_t{1}; })
      .lower("!(isnan(self) | isinf(self))")
      .special("nan -> 0; inf -> 0; -inf -> 0; 1 -> 1")
      .names("", "IsFinite", "IsFinite")
      .doc("Whether the argument is neither NaN nor infinite.", t);
}

}  // namespace fuselab::ops
