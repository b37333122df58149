// Attributes of a node: checked against the row, converted to the row's types, defaults filled.
#include <algorithm>

#include "fuselab/graph/infer_rules.h"

namespace fuselab::infer_rules {
namespace {

using ops::AttrType;

const char* type_text(AttrType t) {
  switch (t) {
    case AttrType::boolean:
      return "true or false";
    case AttrType::integer:
      return "a whole number";
    case AttrType::real:
      return "a number";
    case AttrType::string:
      return "a text in quotes";
    case AttrType::dtype:
      return "a dtype such as f32";
    case AttrType::ints:
      return "a list of sizes";
    case AttrType::expr:
      return "a size";
    case AttrType::scalar:
      return "a number, true or false";
  }
  return "";
}

/// Converts to the one C++ type that stands for `t`; false when the value is of another kind.
bool convert(Attr& a, AttrType t) {
  const auto* integer = std::get_if<std::int64_t>(&a);
  const auto* expr = std::get_if<Expr>(&a);
  switch (t) {
    case AttrType::boolean:
      return std::holds_alternative<bool>(a);
    case AttrType::integer:
      if (expr != nullptr && expr->is_const()) a = Attr(expr->value());
      return std::holds_alternative<std::int64_t>(a);
    case AttrType::real:
      if (expr != nullptr && expr->is_const())
        a = Attr(static_cast<double>(expr->value()));
      else if (integer != nullptr)
        a = Attr(static_cast<double>(*integer));
      return std::holds_alternative<double>(a);
    case AttrType::string:
      return std::holds_alternative<std::string>(a);
    case AttrType::dtype:
      return std::holds_alternative<DType>(a);
    case AttrType::ints:
      if (const auto* reals = std::get_if<std::vector<double>>(&a); reals != nullptr && reals->empty()) a = Attr(Exprs{});
      return std::holds_alternative<Exprs>(a);
    case AttrType::expr:
      if (integer != nullptr) a = Attr(Expr(*integer));
      return std::holds_alternative<Expr>(a);
    case AttrType::scalar:
      if (expr != nullptr && expr->is_const()) a = Attr(expr->value());
      return std::holds_alternative<bool>(a) || std::holds_alternative<std::int64_t>(a) || std::holds_alternative<double>(a) ||
             std::holds_alternative<Expr>(a);
  }
  return false;
}

const Attr& get(const Node& n, const char* name) {
  const auto it = n.attrs.find(name);
  if (it == n.attrs.end()) fail("graph.bad_attr", "{}: attribute '{}' is missing", n.op->name, name);
  return it->second;
}

}  // namespace

void normalize_attrs(Node& n) {
  for (const auto& [key, value] : n.attrs) {
    if (std::none_of(n.op->attrs.begin(), n.op->attrs.end(), [&](const ops::AttrSpec& s) { return s.name == key; })) {
      std::string known;
      for (const auto& s : n.op->attrs) known += (known.empty() ? "" : ", ") + s.name;
      fail("graph.bad_attr", "{} has no attribute '{}'; it has {}", n.op->name, key, known.empty() ? "none" : known);
    }
  }
  for (const ops::AttrSpec& s : n.op->attrs) {
    auto it = n.attrs.find(s.name);
    if (it == n.attrs.end()) {
      if (!s.fallback) fail("graph.bad_attr", "{}: attribute '{}' is missing; give {}", n.op->name, s.name, type_text(s.type));
      it = n.attrs.emplace(s.name, *s.fallback).first;
    }
    if (!convert(it->second, s.type)) {
      fail("graph.bad_attr", "{}: attribute '{}' must be {}", n.op->name, s.name, type_text(s.type));
    }
  }
}

bool has_attr(const Node& n, const char* name) { return n.attrs.count(name) != 0; }
bool attr_bool(const Node& n, const char* name) { return std::get<bool>(get(n, name)); }

std::int64_t attr_int(const Node& n, const char* name) { return attr_expr(n, name).value(); }

Expr attr_expr(const Node& n, const char* name) {
  const Attr& a = get(n, name);
  if (const auto* e = std::get_if<Expr>(&a)) return *e;
  if (const auto* i = std::get_if<std::int64_t>(&a)) return *i;
  fail("graph.bad_attr", "{}: attribute '{}' must be a size", n.op->name, name);
}

Exprs attr_list(const Node& n, const char* name) {
  const Attr& a = get(n, name);
  if (const auto* e = std::get_if<Exprs>(&a)) return *e;
  fail("graph.bad_attr", "{}: attribute '{}' must be a list of sizes", n.op->name, name);
}

}  // namespace fuselab::infer_rules
