// The op table: one row per operator. Everything that knows operators is generated from or driven by these rows.
//
// Rows are data. The lowering is a recipe in a small expression language (below), so that a new operator needs no code
// in the kernel room; the fp64 meaning is an independent formula, never the recipe run in double.
//
// Recipe language (column `lower`). Statements separated by `;`, each `name = expr`, the last one an expression or a
// comma-separated list (several results). Expressions: + - * / and unary - , comparisons < <= > >= == !=, logic & | ! on
// booleans, numbers (`0.5`, `inf`, `nan`), argument names, attribute names, calls of kernel primitives (kernel/ir.h: exp,
// log, sqrt, select(cond, a, b), min, max, cast_<dtype>(x), ...), reductions sum/prod/max/min/any/all/argmax/argmin_r(x)
// over the operator's reduced dims spelled rsum rprod rmax rmin rany rall rargmax rargmin, and `N`, the number of elements
// reduced. `rsum64` accumulates in fp64 (statistics). A recipe is written in the operator's compute type; casts appear only
// where a decision needs them. Example, softmax: `m = rmax(x); e = exp(x - m); e / rsum(e)`.
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
};

/// How the result shape follows.
enum class ShapeRule : std::uint8_t {
  broadcast,  ///< NumPy broadcasting of all tensor arguments
  reduce,     ///< attributes dims (empty: all) and keepdim
  same,       ///< the first argument's (softmax, layer_norm's main result)
  row,        ///< the statistics of a norm: see the row's note
  create,     ///< attribute shape
  view,       ///< computed by the view's own rule in graph/infer.cpp
};

struct ArgSpec {
  std::string name;
  bool optional = false;   ///< may be absent (written `none`)
  bool scalar_ok = true;   ///< may be a number literal
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
enum class ReduceDims : std::uint8_t { none, attr_dims /* dims */, attr_dim /* dim, one */, trailing /* normalized_shape */, group, batch };

struct Op {
  std::string name;             ///< the text form's word: "add"
  Kind kind = Kind::pointwise;
  std::vector<ArgSpec> args;
  std::vector<AttrSpec> attrs;
  int results = 1;
  TypeRule type = TypeRule::promote;
  ShapeRule shape = ShapeRule::broadcast;
  ReduceDims reduce = ReduceDims::none;
  std::string lower;            ///< the recipe; empty for views and extern
  std::string lower_int;        ///< recipe for integer compute types when it differs; "-" = no integer meaning
  /// fp64 meaning of one element (pointwise): arguments and attributes -> result. NaN/Inf as IEEE. Independent formula.
  double (*fp64)(std::span<const double> args, const Attrs& attrs) = nullptr;
  /// exact meaning for integer and bool arguments, on values widened to i64; the caller wraps to the dtype.
  std::int64_t (*exact)(std::span<const std::int64_t> args, const Attrs& attrs, DType t) = nullptr;
  double ulp = 0.5;             ///< budget of the result's own rounding in its compute type, in ULP (0 = exact)
  bool monotone = false;        ///< in each argument: the reference may carry error bounds through the end points
  std::vector<Special> special; ///< exact rows
  std::vector<std::string> aten;   ///< "add.Tensor", "add.Scalar" (namespace aten) or "prims::convert_element_type"
  std::string onnx, ascend_ir, cann;  ///< other spellings: "Add", "Add", "Add"; empty = none
  bool low_precision_meaning = true;  ///< may it be left unpromoted (R9)?
  bool decides = false;         ///< R3: its arguments are rounded to their own dtype first (comparisons, argmax, float->int)
  std::string doc;              ///< one sentence
};

/// All rows, in the order of docs/operators.md. Built once, immutable.
const std::vector<Op>& table();
/// The row of that name; nullptr when unknown. Names are exact; `find_any_case` also accepts the Ascend spelling, any case.
const Op* find(std::string_view name);
const Op* find_any_case(std::string_view name);
/// The row an ATen overload maps to ("add.Tensor"); nullptr when none.
const Op* find_aten(std::string_view overload);

}  // namespace ops
}  // namespace fuselab
