#include "fuselab/ops/rows.h"

#include <cstdlib>

#include "fuselab/core/error.h"

namespace fuselab::ops {
namespace {

std::string trimmed(const std::string& s) {
  const auto first = s.find_first_not_of(' ');
  return first == std::string::npos ? "" : s.substr(first, s.find_last_not_of(' ') - first + 1);
}

std::vector<std::string> split(const std::string& s, const std::string& separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= s.size();) {
    const std::size_t end = std::min(s.find(separator, at), s.size());
    if (std::string part = trimmed(s.substr(at, end - at)); !part.empty()) parts.push_back(part);
    at = end + separator.size();
  }
  return parts;
}

ArgSpec parse_arg(const std::string& text) {
  ArgSpec a;
  const std::size_t end = std::min(text.find_first_of("?^~!%"), text.size());
  a.name = text.substr(0, end);
  for (std::size_t i = end; i < text.size(); ++i) {
    if (text[i] == '^') a.channel = true, a.scalar_ok = false;
    if (text[i] == '%') a.row = true, a.scalar_ok = false;
    if (text[i] == '~') a.decides = false;
    if (text[i] == '!') a.scalar_ok = false;
    if (text[i] == '?') {
      a.optional = true;
      a.absent = std::strtod(text.c_str() + i + 1, nullptr);
    }
  }
  return a;
}

std::vector<double> parse_numbers(const std::string& text) {
  std::vector<double> values;
  for (const std::string& word : split(text, " ")) values.push_back(std::strtod(word.c_str(), nullptr));
  return values;
}

}  // namespace

double real(A attrs, const char* name) {
  const Attr& a = attrs.at(name);
  if (const auto* i = std::get_if<std::int64_t>(&a)) return static_cast<double>(*i);
  if (const auto* b = std::get_if<bool>(&a)) return *b ? 1 : 0;
  if (const auto* e = std::get_if<Expr>(&a)) return static_cast<double>(e->value());
  return std::get<double>(a);
}
std::int64_t integer(A attrs, const char* name) {
  const Attr& a = attrs.at(name);
  if (const auto* i = std::get_if<std::int64_t>(&a)) return *i;
  if (const auto* e = std::get_if<Expr>(&a)) return e->value();
  return static_cast<std::int64_t>(real(attrs, name));
}
bool flag(A attrs, const char* name) { return std::get<bool>(attrs.at(name)); }
const std::string& text(A attrs, const char* name) { return std::get<std::string>(attrs.at(name)); }

Row::Row(std::string name, Kind kind, const std::string& args) {
  op_.name = std::move(name);
  op_.kind = kind;
  for (const std::string& a : split(args, ",")) op_.args.push_back(parse_arg(a));
}
Row&& Row::attr(std::string name, AttrType type, std::optional<Attr> fallback) && {
  op_.attrs.push_back({std::move(name), type, std::move(fallback)});
  return std::move(*this);
}
Row&& Row::type(TypeRule rule) && {
  op_.type = rule;
  return std::move(*this);
}
Row&& Row::shape(ShapeRule shape, ReduceDims dims) && {
  op_.shape = shape;
  op_.reduce = dims;
  return std::move(*this);
}
Row&& Row::shape(ShapeRule shape) && {
  op_.shape = shape;
  return std::move(*this);
}
Row&& Row::result(std::string name, TypeRule type, ShapeRule shape) && {
  op_.more.push_back({std::move(name), type, shape});
  op_.results = static_cast<int>(op_.more.size()) + 1;
  return std::move(*this);
}
Row&& Row::lower(std::string recipe) && {
  op_.lower = std::move(recipe);
  return std::move(*this);
}
Row&& Row::lower_int(std::string recipe) && {
  op_.lower_int = std::move(recipe);
  return std::move(*this);
}
Row&& Row::lower_bool(std::string recipe) && {
  op_.lower_bool = std::move(recipe);
  return std::move(*this);
}
Row&& Row::fp64(double (*meaning)(D, A)) && {
  op_.fp64 = meaning;
  return std::move(*this);
}
Row&& Row::fp64_of_number(double (*meaning)(D, A)) && {
  op_.fp64_of_number = meaning;
  return std::move(*this);
}
Row&& Row::exact(std::int64_t (*meaning)(I, A, DType)) && {
  op_.exact = meaning;
  return std::move(*this);
}
Row&& Row::fp64_row(void (*meaning)(DRows, DOut, A)) && {
  op_.fp64_row = meaning;
  return std::move(*this);
}
Row&& Row::exact_row(void (*meaning)(IRows, IOut, A)) && {
  op_.exact_row = meaning;
  return std::move(*this);
}
Row&& Row::strides(StrideRule rule) && {
  op_.strides = rule;
  return std::move(*this);
}
Row&& Row::ulp(double budget, double in_f64) && {
  op_.ulp = budget;
  op_.ulp_f64 = in_f64;
  return std::move(*this);
}
Row&& Row::monotone() && {
  op_.monotone = true;
  return std::move(*this);
}
Row&& Row::period(double length) && {
  op_.period = length;
  return std::move(*this);
}
Row&& Row::decides() && {
  op_.decides = true;
  return std::move(*this);
}
Row&& Row::no_low_precision() && {
  op_.low_precision_meaning = false;
  return std::move(*this);
}
Row&& Row::aten(const std::string& overloads) && {
  op_.aten = split(overloads, ",");
  return std::move(*this);
}
Row&& Row::aten_name(std::string ours, std::string theirs) && {
  op_.aten_names.emplace(std::move(ours), std::move(theirs));
  return std::move(*this);
}
Row&& Row::aten_ignored(const std::string& names) && {
  op_.aten_ignored = split(names, ",");
  return std::move(*this);
}
Row&& Row::aten_result(int index) && {
  op_.aten_result = index;
  return std::move(*this);
}
Row&& Row::names(std::string onnx, std::string ascend_ir, std::string cann) && {
  op_.onnx = std::move(onnx);
  op_.ascend_ir = std::move(ascend_ir);
  op_.cann = std::move(cann);
  return std::move(*this);
}
Row&& Row::special(const std::string& rows) && {
  for (const std::string& row : split(rows, ";")) {
    const std::size_t arrow = row.find("->");
    op_.special.push_back({parse_numbers(row.substr(0, arrow)), parse_numbers(row.substr(arrow + 2)), row});
  }
  return std::move(*this);
}
void Row::doc(std::string sentence, std::vector<Op>& table) && {
  op_.doc = std::move(sentence);
  table.push_back(std::move(op_));
}

Row reduction(std::string name, const std::string& args) {
  return Row(std::move(name), Kind::reduce, args)
      .shape(ShapeRule::reduce, ReduceDims::attr_dims)
      .attr("dims", AttrType::ints, std::vector<Expr>{})
      .attr("keepdim", AttrType::boolean, false)
      .aten_name("dims", "dim");
}

}  // namespace fuselab::ops
