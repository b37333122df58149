#include "fuselab/graph/infer.h"

#include <algorithm>

#include "fuselab/graph/infer_rules.h"

namespace fuselab {
namespace infer_rules {

const Type* tensor(const Graph& g, const Node& n, std::size_t i) {
  if (i >= n.args.size()) return nullptr;
  const auto* v = std::get_if<ValueId>(&n.args[i]);
  return v != nullptr ? &g.values[*v].type : nullptr;
}

const Type& first_tensor(const Graph& g, const Node& n) {
  for (std::size_t i = 0; i < n.args.size(); ++i) {
    if (const Type* t = tensor(g, n, i)) return *t;
  }
  fail("graph.arity", "{} needs a tensor among its arguments", n.op ? n.op->name : n.target);
}

std::string list_text(const Exprs& xs) {
  std::string s = "[";
  for (const Expr& x : xs) s += (s.size() == 1 ? "" : ", ") + x.str();
  return s + "]";
}

namespace {

constexpr std::size_t kMaxRank = 64;

void check_arguments(const Graph& g, Node& n) {
  const auto& specs = n.op->args;
  if (n.args.size() > specs.size()) {
    fail("graph.arity", "{} takes at most {} arguments, {} given", n.op->name, specs.size(), n.args.size());
  }
  for (std::size_t i = n.args.size(); i < specs.size(); ++i) {
    if (!specs[i].optional) fail("graph.arity", "{}: argument '{}' is missing", n.op->name, specs[i].name);
    n.args.emplace_back();  // optional ones left out at the end are `none`
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const Operand& a = n.args[i];
    if (const auto* v = std::get_if<ValueId>(&a)) {
      if (*v < 0 || *v >= static_cast<ValueId>(g.values.size())) {
        fail("graph.unknown_value", "{}: argument '{}' names value {}, which does not exist", n.op->name, specs[i].name, *v);
      }
    } else if (std::holds_alternative<std::monostate>(a) && !specs[i].optional) {
      fail("graph.arity", "{}: argument '{}' is none but not optional", n.op->name, specs[i].name);
    } else if (std::holds_alternative<Scalar>(a) && !specs[i].scalar_ok) {
      fail("graph.arity", "{}: argument '{}' must be a tensor, not a number", n.op->name, specs[i].name);
    }
  }
}

void check_created(const Node& n, const Exprs& sizes) {
  for (const Expr& s : sizes) {
    if (s.is_const() && s.value() < 0) fail("graph.shape", "{}: shape {} has a negative size", n.op->name, list_text(sizes));
  }
}

Exprs sizes_by(const Graph& g, const Node& n, ops::ShapeRule rule) {
  using ops::ShapeRule;
  switch (rule) {
    case ShapeRule::broadcast:
      return broadcast_sizes(g, n);
    case ShapeRule::reduce:
      return reduced_sizes(g, n);
    case ShapeRule::same:
      reduced_dims(g, n);
      return first_tensor(g, n).sizes;  // reduced_dims checks the attributes
    case ShapeRule::row:
      return row_sizes(g, n);
    case ShapeRule::create: {
      const Exprs sizes = has_attr(n, "shape") ? attr_list(n, "shape") : Exprs{attr_expr(n, "size")};
      check_created(n, sizes);
      return sizes;
    }
    case ShapeRule::view:
      break;
  }
  fail("graph.shape", "{} has no shape rule", n.op->name);
}

Type result_type(const Graph& g, const Node& n, ops::TypeRule dtype, ops::ShapeRule shape) {
  if (shape == ops::ShapeRule::view) return view_type(g, n);
  Type t;
  t.dtype = result_dtype(g, n, dtype);
  t.sizes = sizes_by(g, n, shape);
  if (n.op->kind == ops::Kind::pointwise && !has_channel_argument(*n.op)) {
    t.strides = pointwise_strides(g, n, t.sizes);
  } else if (shape == ops::ShapeRule::same) {
    t.strides = same_strides(g, n, t.sizes);
  } else {
    t.strides = contiguous_strides(t.sizes);
  }
  if (t.sizes.size() > kMaxRank)
    fail("graph.too_large", "{}: {} dimensions; at most {} are supported", n.op->name, t.sizes.size(), kMaxRank);
  return t;
}

}  // namespace
}  // namespace infer_rules

std::vector<Type> infer(const Graph& g, Node& node) {
  using namespace infer_rules;
  if (node.op == nullptr) fail("graph.dtype", "the result types of extern call '{}' are not known; write them down", node.target);
  try {
    check_arguments(g, node);
    normalize_attrs(node);
    check_dtypes(g, node);
    if (node.op->shape == ops::ShapeRule::same || node.op->shape == ops::ShapeRule::row) check_companions(g, node);
    refuse_nothing(g, node);
    std::vector<Type> types = {result_type(g, node, node.op->type, node.op->shape)};
    for (const auto& more : node.op->more) types.push_back(result_type(g, node, more.type, more.shape));
    return types;
  } catch (const Error& e) {
    if (e.code() == "expr.not_constant") fail("graph.bad_attr", "{}: {}", node.op->name, e.what());
    if (e.code().rfind("expr.", 0) == 0) fail("graph.too_large", "{}: {}", node.op->name, e.what());
    throw;
  }
}

}  // namespace fuselab
