// The printer of the graph text form.
#include <algorithm>
#include <cmath>

#include "fuselab/core/error.h"
#include "fuselab/graph/text.h"
#include "fuselab/graph/words.h"

namespace fuselab {
namespace {

std::string real_text(double v) {
  if (std::isnan(v)) return "nan";
  std::string s = fmt::format("{}", v);  // the shortest text that reads back as the same number
  if (s.find_first_of(".en") == std::string::npos) s += ".0";
  return s;
}

std::string quoted(const std::string& text) {
  std::string s = "\"";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      s += std::string("\\") + c;
    } else if (u < 0x20 || u == 0x7f) {
      s += fmt::format("\\x{:02x}", u);
    } else {
      s += c;
    }
  }
  return s + "\"";
}

std::string scalar_text(const Scalar& s) {
  if (const auto* b = std::get_if<bool>(&s)) return *b ? "true" : "false";
  if (const auto* i = std::get_if<std::int64_t>(&s)) return fmt::format("{}", *i);
  return real_text(std::get<double>(s));
}

struct AttrText {
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return real_text(v); }
  std::string operator()(const std::string& v) const { return quoted(v); }
  std::string operator()(DType v) const { return std::string(name(v)); }
  std::string operator()(const Expr& v) const { return v.str(); }
  template <typename T>
  std::string operator()(const std::vector<T>& v) const {
    std::string s = "[";
    for (const T& x : v) s += (s.size() == 1 ? "" : ", ") + (*this)(x);
    return s + "]";
  }
};

/// Attributes compare by their text: 1 and Expr(1) are the same thing to the parser.
std::string attr_text(const Attr& a) { return std::visit(AttrText{}, a); }

bool is_default(const Node& n, const std::string& key, const Attr& value) {
  if (n.op == nullptr) return false;
  const auto it = std::find_if(n.op->attrs.begin(), n.op->attrs.end(), [&](const ops::AttrSpec& s) { return s.name == key; });
  return it != n.op->attrs.end() && it->fallback && attr_text(*it->fallback) == attr_text(value);
}

std::string operand_text(const Graph& g, const Operand& a) {
  if (const auto* v = std::get_if<ValueId>(&a)) return quote_name(g.values.at(*v).name);
  if (const auto* s = std::get_if<Scalar>(&a)) return scalar_text(*s);
  return "none";
}

}  // namespace

std::string quote_name(const std::string& name) { return graph_words::is_plain_name(name) ? name : quoted(name); }

std::string print_node(const Graph& g, const Node& n, bool origins) {
  std::string s;
  for (const ValueId r : n.results) {
    const Value& v = g.values.at(r);
    s += (s.empty() ? "" : ", ") + quote_name(v.name) + ": " + v.type.str();
  }
  s += " = " + (n.op ? n.op->name : std::string("extern")) + "(";
  std::vector<std::string> parts;
  std::size_t count = n.args.size();
  // Optional arguments left out at the end need no word. An extern call counts its arguments, so keep them there.
  while (n.op != nullptr && count > 0 && std::holds_alternative<std::monostate>(n.args[count - 1])) --count;
  for (std::size_t i = 0; i < count; ++i) parts.push_back(operand_text(g, n.args[i]));
  if (n.op == nullptr) parts.push_back("target=" + quoted(n.target));
  for (const auto& [key, value] : n.attrs) {
    if (!is_default(n, key, value)) parts.push_back(key + "=" + attr_text(value));
  }
  if (origins && !n.origin.empty()) parts.push_back("origin=" + quoted(n.origin));
  for (std::size_t i = 0; i < parts.size(); ++i) s += (i ? ", " : "") + parts[i];
  return s + ")";
}

std::string print_graph(const Graph& g, bool origins) {
  std::string s = "graph " + quote_name(g.name) + "(";
  bool first = true;
  for (const auto& p : g.size_params) {
    s += (first ? "" : ", ") + p + ": size";
    first = false;
  }
  for (const ValueId i : g.inputs) {
    const Value& v = g.values.at(i);
    s += (first ? "" : ", ") + quote_name(v.name) + ": " + v.type.str();
    first = false;
  }
  s += ") {\n";
  for (const Node& n : g.nodes) s += "  " + print_node(g, n, origins) + "\n";
  s += "  return";
  first = true;
  for (const ValueId o : g.outputs) {
    s += (first ? " " : ", ") + quote_name(g.values.at(o).name);
    first = false;
  }
  return s + "\n}\n";
}

}  // namespace fuselab
