// How the rows are written: a builder over Op, and the meanings' small helpers. Only the row files include this.
#pragma once
#include <cmath>
#include <limits>

#include "fuselab/ops/op.h"

namespace fuselab::ops {

using D = std::span<const double>;
using I = std::span<const std::int64_t>;
using DRows = std::span<const std::span<const double>>;
using DOut = std::span<const std::span<double>>;
using IRows = std::span<const std::span<const std::int64_t>>;
using IOut = std::span<const std::span<std::int64_t>>;
using A = const Attrs&;

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A numeric attribute as a double, whatever it was written as.
double real(A attrs, const char* name);
std::int64_t integer(A attrs, const char* name);
bool flag(A attrs, const char* name);
const std::string& text(A attrs, const char* name);
/// Integer arithmetic modulo 2^64 (the caller wraps to the dtype).
inline std::int64_t wrap_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
inline std::int64_t wrap_sub(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
inline std::int64_t wrap_mul(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

/// Builds one row. Every call sets one column; lists are comma-separated texts.
class Row {
 public:
  /// `args`: names; `?` optional (`weight?1`: absent means 1), `^` channel, `%` one per row, `~` no part of a decision, `!` no
  /// number.
  Row(std::string name, Kind kind, const std::string& args);
  Row&& attr(std::string name, AttrType type, std::optional<Attr> fallback = std::nullopt) &&;
  Row&& type(TypeRule rule) &&;
  Row&& shape(ShapeRule shape, ReduceDims dims) &&;
  Row&& shape(ShapeRule shape) &&;
  Row&& result(std::string name, TypeRule type, ShapeRule shape) &&;
  Row&& lower(std::string recipe) &&;
  Row&& lower_int(std::string recipe) &&;  ///< "-": no integer meaning
  Row&& lower_bool(std::string recipe) &&;
  Row&& fp64(double (*meaning)(D, A)) &&;
  Row&& fp64_of_number(double (*meaning)(D, A)) &&;
  Row&& exact(std::int64_t (*meaning)(I, A, DType)) &&;
  Row&& fp64_row(void (*meaning)(DRows, DOut, A)) &&;
  Row&& exact_row(void (*meaning)(IRows, IOut, A)) &&;
  Row&& strides(StrideRule rule) &&;
  Row&& ulp(double budget, double in_f64 = 0) &&;
  Row&& monotone() &&;
  Row&& period(double length) &&;
  Row&& decides() &&;
  Row&& no_low_precision() &&;
  Row&& aten(const std::string& overloads) &&;
  Row&& aten_name(std::string ours, std::string theirs) &&;
  Row&& aten_ignored(const std::string& names) &&;
  Row&& aten_result(int index) &&;
  Row&& names(std::string onnx, std::string ascend_ir, std::string cann) &&;
  /// "inf 1 -> inf; nan 1 -> nan": inputs, then results, with the attributes' defaults.
  Row&& special(const std::string& rows) &&;
  void doc(std::string sentence, std::vector<Op>& table) &&;  ///< ends the row

 private:
  Op op_;
};

inline Row pointwise(std::string name, const std::string& args) { return {std::move(name), Kind::pointwise, args}; }
/// A reduction over the attributes `dims` (empty: all) and `keepdim`.
Row reduction(std::string name, const std::string& args);

// One function per file of rows, in the order of the table.
void add_arithmetic(std::vector<Op>& t);
void add_integer(std::vector<Op>& t);
void add_math(std::vector<Op>& t);
void add_rounding(std::vector<Op>& t);
void add_compare(std::vector<Op>& t);
void add_select(std::vector<Op>& t);
void add_activations(std::vector<Op>& t);
void add_backward(std::vector<Op>& t);
void add_reductions(std::vector<Op>& t);
void add_statistics(std::vector<Op>& t);
void add_softmax(std::vector<Op>& t);
void add_norms(std::vector<Op>& t);
void add_norm_gradients(std::vector<Op>& t);
void add_create(std::vector<Op>& t);
void add_views(std::vector<Op>& t);

}  // namespace fuselab::ops
