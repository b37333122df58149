// Result dtypes: PyTorch's promotion with weak numbers and weak 0-d tensors, and the dtype rules of the op table.
#include <optional>

#include "fuselab/graph/infer.h"
#include "fuselab/graph/infer_rules.h"

namespace fuselab::infer_rules {
namespace {

using Maybe = std::optional<DType>;

int category(DType t) { return is_float(t) ? 2 : is_int(t) ? 1 : 0; }

Maybe merge(Maybe a, DType b) { return a ? promote(*a, b) : b; }

/// A lower class (0-d tensors, numbers) matters only when its category is above that of the higher class.
Maybe weaker(Maybe strong, Maybe weak) {
  if (!strong) return weak;
  if (!weak || category(*weak) <= category(*strong)) return strong;
  return weak;
}

DType number_type(const Scalar& s) {
  if (std::holds_alternative<bool>(s)) return DType::boolean;
  return std::holds_alternative<std::int64_t>(s) ? DType::i64 : DType::f32;
}

}  // namespace

DType common_type(const Graph& g, const Node& n, std::size_t from, std::size_t to) {
  Maybe full, zero_dim, number;
  for (std::size_t i = from; i < to && i < n.args.size(); ++i) {
    if (const Type* t = tensor(g, n, i)) {
      Maybe& m = t->sizes.empty() ? zero_dim : full;
      m = merge(m, t->dtype);
    } else if (const auto* s = std::get_if<Scalar>(&n.args[i])) {
      number = merge(number, number_type(*s));
    }
  }
  const Maybe result = weaker(weaker(full, zero_dim), number);
  if (!result) fail("graph.arity", "{} has no argument to take a dtype from", n.op->name);
  return *result;
}

DType result_dtype(const Graph& g, const Node& n, ops::TypeRule rule) {
  using ops::TypeRule;
  switch (rule) {
    case TypeRule::promote:
      return common_type(g, n, 0, n.args.size());
    case TypeRule::promote_float: {
      const DType t = common_type(g, n, 0, n.args.size());
      return is_float(t) ? t : DType::f32;
    }
    case TypeRule::boolean:
      return DType::boolean;
    case TypeRule::first:
      return first_tensor(g, n).dtype;
    case TypeRule::int_sum: {
      const DType t = first_tensor(g, n).dtype;
      return is_float(t) ? t : DType::i64;
    }
    case TypeRule::index:
      return DType::i64;
    case TypeRule::attr_dtype:
      return std::get<DType>(n.attrs.at("dtype"));
    case TypeRule::where_:
      return common_type(g, n, 1, 3);
    case TypeRule::any_all:
      return first_tensor(g, n).dtype == DType::u8 ? DType::u8 : DType::boolean;
    case TypeRule::compute:
      return compute_type(first_tensor(g, n).dtype);
  }
  fail("graph.dtype", "{} has no dtype rule", n.op->name);
}

void check_dtypes(const Graph& g, const Node& n) {
  using ops::TypeRule;
  if (n.op->type == TypeRule::where_) {
    const Type* c = tensor(g, n, 0);
    if (c != nullptr && c->dtype != DType::boolean) {
      fail("graph.dtype", "{}: the condition is {}, but must be bool; compare with `ne(x, 0)`", n.op->name, name(c->dtype));
    }
  }
  if (n.op->kind == ops::Kind::pointwise && n.op->type == TypeRule::first) {
    for (std::size_t i = 1; i < n.args.size(); ++i) {  // masked_fill takes its value's kind from what it fills
      const Type* a = tensor(g, n, i);
      const auto* s = std::get_if<Scalar>(&n.args[i]);
      if (a == nullptr && s == nullptr) continue;
      const DType own = a != nullptr ? a->dtype : number_type(*s);
      const DType t = first_tensor(g, n).dtype;
      if (category(own) > category(t)) {
        fail("graph.dtype", "{}: argument '{}' is {} and cannot be put into {}; cast one of them", n.op->name, n.op->args[i].name,
             name(own), name(t));
      }
    }
  }
  if (n.op->kind != ops::Kind::pointwise && n.op->kind != ops::Kind::reduce) return;
  const DType t = argument_type(g, n);
  if (!ops::has_meaning(*n.op, t)) {
    fail("graph.dtype", "{} has no meaning for {} arguments; {}", n.op->name, name(t),
         is_float(t) ? "it takes integers or bool" : "cast them to a type it has one for, such as f32");
  }
}

}  // namespace fuselab::infer_rules

namespace fuselab {

DType argument_type(const Graph& g, const Node& node) {
  using ops::TypeRule;
  using namespace infer_rules;
  switch (node.op ? node.op->type : TypeRule::first) {
    case TypeRule::promote:
    case TypeRule::boolean:
      return common_type(g, node, 0, node.args.size());
    case TypeRule::promote_float:
    case TypeRule::int_sum:
    case TypeRule::where_:
      return result_dtype(g, node, node.op->type);
    case TypeRule::attr_dtype:
      return node.args.empty() ? result_dtype(g, node, TypeRule::attr_dtype) : first_tensor(g, node).dtype;
    default:
      return first_tensor(g, node).dtype;
  }
}

}  // namespace fuselab
