// The op table: one row per operator. Everything that knows operators is generated from or driven by these rows.
//
// Rows are data. The lowering is a recipe in a small expression language (below), so that a new operator needs no code
// in the kernel room; the fp64 meaning is an independent formula, never the recipe run in double.
//
// Recipe language (column `lower`; parsed by ops/recipe.h). Statements separated by `;`, each `name = expr`, the last one an
// expression or a comma-separated list (several results). Expressions, loosest first: `|`, `&`, comparisons `== != < <= > >=`,
// `+ -`, `* /`, unary `- !`; numbers (`0.5`, `inf`, `nan`, `true`, `false`), argument names, attribute names, calls of kernel
// primitives (exp, log, sqrt, fma, select(cond, a, b), min, max, cast_<dtype>(x), ...), reductions over the operator's reduced
// dims rsum rprod rmax rmin rany rall rargmax rargmin, `rfirstmax` and `rfirstmin` (the value where rargmax points: of zeros
// of both signs the first), `rsum64` (accumulates in and returns f64: statistics), `N`, the number
// of elements reduced, and `index`, the element's row-major index (create kind). A value mixed with an f64 one is widened
// exactly. `N` and `index` take the type of the other operand.
// A recipe is written in the operator's compute type; casts appear only where a decision needs them. Decided before lowering
// by ops::instantiate (ops/recipe.h), so the kernel room never sees them: `if(cond, a, b)` with a cond made of `has(arg)`
// (optional argument given), `is(arg, number)` (argument is that number literal), `attr == number`, `attr == "text"`,
// `wide` (compute type f64), `low` (f16 or bf16), `! & |`; `narrow(x)` (cast to the compute type); `cast(x, dtype)` (dtype
// attribute). Example, softmax: `m = rmax(self); e = exp(self - m); e / rsum(e)`. In a reduce operator a result made only of
// reductions has one element per row, any other one per element.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fuselab/core/dtype.h"
#include "fuselab/core/expr.h"

namespace fuselab {

/// An attribute's value: `eps=1e-5`, `dims=[0, 1]`, `shape=[B, 4]`, `approximate="tanh"`, `dtype=f16`, `keepdim=true`.
using Attr = std::variant<bool, std::int64_t, double, std::string, DType, Expr, std::vector<Expr>, std::vector<double>>;
using Attrs = std::map<std::string, Attr>;

/// A scalar literal operand (a Python number): enters at the operator's compute type exactly as eager does it (R8).
using Scalar = std::variant<bool, std::int64_t, double>;

namespace ops {

enum class Kind : std::uint8_t { pointwise, reduce, create, view, move, extern_ };

/// How the result dtype follows from the arguments.
enum class TypeRule : std::uint8_t {
  promote,        ///< PyTorch promotion of all tensor and scalar arguments (0-d tensors and numbers are weak)
  promote_float,  ///< as promote, integers and bool become f32 (exp, div, sigmoid, mean of floats...)
  boolean,        ///< result is bool (comparisons, isnan, logical_*); arguments are promoted among themselves first
  first,          ///< dtype of the first tensor argument (gather, masked_fill)
  int_sum,        ///< sum/prod: integers and bool become i64, floats stay
  index,          ///< i64 (argmax)
  attr_dtype,     ///< the attribute `dtype` (cast, full, iota)
  where_,         ///< promotion of arguments 1 and 2 (select), the condition is bool
  any_all,        ///< bool, but u8 stays u8 (any, all)
  compute,        ///< what the first argument computes in: f32 for f16 and bf16 (rstd of rms_norm)
};

/// How the result shape follows.
enum class ShapeRule : std::uint8_t {
  broadcast,  ///< NumPy broadcasting of all tensor arguments
  reduce,     ///< attributes dims (empty: all) and keepdim
  same,       ///< the first argument's (softmax, layer_norm's main result)
  row,        ///< statistics of a norm: trailing: the first argument's with 1 for every normalised dim; group: [N, num_groups];
              ///< batch: [C]; leading (weight gradients): normalized_shape
  create,     ///< attribute shape
  view,       ///< computed by the view's own rule in graph/infer.cpp
};

/// The strides of a pointwise result, as PyTorch eager gives them.
enum class StrideRule : std::uint8_t {
  operands,     ///< dense, in the order of the operands' strides; a number counts as a 0-d operand
  tensors,      ///< the same, but numbers are no operands (clamp with numbers)
  row_major,    ///< always row-major (masked_fill)
  base_number,  ///< row-major when the first argument is a number, else as tensors (pow)
};

struct ArgSpec {
  std::string name;
  bool optional = false;  ///< may be absent (written `none`)
  bool scalar_ok = true;  ///< may be a number literal
  bool channel = false;   ///< 1-d, lies along dimension 1 of the first argument (batch_norm's and group_norm's weight)
  bool row = false;       ///< one value per reduced row, of the shape ShapeRule::row gives (a norm's saved mean)
  bool decides = true;    ///< where Op::decides holds: whether this argument is part of the decision (gradients are not)
  double absent = 0;      ///< the value an absent optional argument stands for in the fp64 meaning (weight 1, bias 0)
};

enum class AttrType : std::uint8_t { boolean, integer, real, string, dtype, ints /* list of Expr */, expr, scalar };
struct AttrSpec {
  std::string name;
  AttrType type;
  std::optional<Attr> fallback;  ///< default; required when absent
};

/// A special-value row: inputs (as doubles, in the operator's dtype) -> exact outputs. `nan` matches any NaN.
struct Special {
  std::vector<double> in;
  std::vector<double> out;
  std::string note;
};

/// Which dims a reduce-kind operator's recipe reduces over.
enum class ReduceDims : std::uint8_t {
  none,
  attr_dims /* dims */,
  attr_dim /* dim, one */,
  trailing /* normalized_shape */,
  leading /* all before normalized_shape */,
  group /* [C/G, ...] per num_groups */,
  batch /* all but dim 1 */
};

/// Type and shape of a result after the first (the first follows Op::type and Op::shape).
struct ResultSpec {
  std::string name;
  TypeRule type = TypeRule::first;
  ShapeRule shape = ShapeRule::reduce;
};

struct Op {
  std::string name;  ///< the text form's word: "add"
  Kind kind = Kind::pointwise;
  std::vector<ArgSpec> args;
  std::vector<AttrSpec> attrs;
  int results = 1;
  std::vector<ResultSpec> more;  ///< results after the first; size results - 1
  TypeRule type = TypeRule::promote;
  ShapeRule shape = ShapeRule::broadcast;
  StrideRule strides = StrideRule::operands;
  ReduceDims reduce = ReduceDims::none;
  std::string lower;       ///< the recipe; empty for views and extern; "-" = no floating-point meaning
  std::string lower_int;   ///< recipe for integer compute types when it differs; "-" = no integer meaning
  std::string lower_bool;  ///< the same for bool; empty: as lower_int
  /// fp64 meaning of one element (pointwise): arguments and attributes -> result. NaN/Inf as IEEE. Independent formula.
  double (*fp64)(std::span<const double> args, const Attrs& attrs) = nullptr;
  /// The same where the last argument is a number of the graph, not a tensor, and PyTorch computes another function then
  /// (pow(x, 0.5) is sqrt(x): NaN at -inf); nullptr: fp64.
  double (*fp64_of_number)(std::span<const double> args, const Attrs& attrs) = nullptr;
  /// exact meaning for integer and bool arguments, on values widened to i64; the caller wraps to the dtype.
  std::int64_t (*exact)(std::span<const std::int64_t> args, const Attrs& attrs, DType t) = nullptr;
  /// fp64 and exact meaning of one row (reduce kind): per argument the row's N elements in row-major order (one that does not
  /// vary along the row is repeated; an absent one is empty); each result span has 1 or N places as its shape says.
  void (*fp64_row)(std::span<const std::span<const double>> args, std::span<const std::span<double>> out,
                   const Attrs& attrs) = nullptr;
  void (*exact_row)(std::span<const std::span<const std::int64_t>> args, std::span<const std::span<std::int64_t>> out,
                    const Attrs& attrs) = nullptr;
  double ulp = 0.5;       ///< budget of the result's own rounding in its compute type, in ULP (0 = exact)
  double ulp_f64 = 0;     ///< the budget in f64 where that differs; 0: it does not
  bool monotone = false;  ///< in each argument: the reference may carry error bounds through the end points
  double period = 0;      ///< of a periodic function; one that is monotone as well has a pole in each period (tan)
  double ulp_in(DType compute) const { return compute == DType::f64 && ulp_f64 > 0 ? ulp_f64 : ulp; }
  std::vector<Special> special;  ///< exact rows
  /// "add.Tensor", "add.Scalar" (namespace aten) or "prims::convert_element_type.default". Arguments and attributes are found by
  /// the name the ATen schema gives them. An overload may stand on several rows: the front end takes the first whose required
  /// arguments are given (not None) and that has a place for every given argument which is not at its schema default; None for
  /// a list is []. An ATen `dtype` the row has no attribute for casts the first tensor argument first (sum, mean, softmax);
  /// layout, device, pin_memory, memory_format and non_blocking are ignored. "div.Tensor_mode[rounding_mode=floor]" holds only
  /// for that value of the argument ("none" for None).
  std::vector<std::string> aten;
  std::map<std::string, std::string>
      aten_names;  ///< our name -> the schema's, where they differ ("dims" -> "dim", "shape" -> "size|shape")
  std::vector<std::string> aten_ignored;  ///< schema arguments this row need not see ("output_mask")
  int aten_result = -1;                   ///< the one result of the overload this row computes; -1: all, in order
  std::string onnx, ascend_ir, cann;      ///< other spellings: "Add", "Add", "Add"; empty = none
  bool low_precision_meaning = true;      ///< may it be left unpromoted (R9)?
  bool decides = false;  ///< R3: its arguments are rounded to their own dtype first (comparisons, argmax, float->int)
  std::string doc;       ///< one sentence
};

/// All rows, in the order of docs/operators.md. Built once, immutable.
const std::vector<Op>& table();
/// The row of that name; nullptr when unknown. Names are exact; `find_any_case` also accepts the Ascend spelling, any case.
const Op* find(std::string_view name);
const Op* find_any_case(std::string_view name);
/// The rows an ATen overload maps to ("add.Tensor", without its condition), in table order; empty when none.
std::vector<const Op*> find_aten_all(std::string_view overload);
/// The first of them; nullptr when none.
const Op* find_aten(std::string_view overload);

/// Whether the operator can compute in that type (f16 and bf16 stand for f32). For integers and bool: as lower_int, lower_bool
/// say.
bool has_meaning(const Op& op, DType compute);

}  // namespace ops
}  // namespace fuselab
