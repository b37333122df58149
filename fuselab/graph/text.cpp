// The parser of the graph text form.
#include "fuselab/graph/text.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>
#include <unordered_map>

#include "fuselab/core/error.h"
#include "fuselab/graph/annotation.h"
#include "fuselab/graph/infer.h"
#include "fuselab/graph/lexer.h"
#include "fuselab/graph/strides.h"
#include "fuselab/graph/suggest.h"
#include "fuselab/graph/words.h"

namespace fuselab {
namespace {

constexpr std::size_t kMaxList = 4096;
constexpr std::size_t kMaxText = std::size_t{256} << 20;

class GraphParser {
 public:
  GraphParser(std::string_view text, const std::string& file) : lex_(text, file) {
    if (text.size() > kMaxText) lex_.error_at(0, "graph.too_large", "the text is longer than 256 MiB");
  }

  Graph parse() {
    if (!at_word("graph")) lex_.syntax_error(lex_.peek(), "'graph' is missing");
    lex_.next();
    g_.name = value_name("the graph's name").text;
    parameters();
    lex_.expect("{", "before the statements");
    while (!at_word("return")) {
      if (lex_.at("}")) lex_.syntax_error(lex_.peek(), "'return' is missing");
      statement();
    }
    lex_.next();
    results();
    lex_.expect("}", "after the results");
    if (lex_.peek().kind != Token::Kind::end)
      lex_.syntax_error(lex_.peek(), "nothing may follow the graph: end of text expected");
    return std::move(g_);
  }

 private:
  bool at_word(std::string_view word) {
    const Token& t = lex_.peek();
    return t.kind == Token::Kind::name && t.text == word;
  }

  bool at_value_name() {
    const Token& t = lex_.peek();
    return t.kind == Token::Kind::string || (t.kind == Token::Kind::name && !graph_words::is_reserved(t.text));
  }

  Token value_name(const char* what) {
    if (!at_value_name()) lex_.syntax_error(lex_.peek(), fmt::format("{} is missing", what));
    Token t = lex_.next();
    if (t.text.empty()) lex_.error_at(t.begin, "graph.syntax", "a name is empty");
    return t;
  }

  void define(const Token& at, ValueId id) {
    if (!names_.emplace(at.text, id).second) {
      lex_.error_at(at.begin, "graph.name", fmt::format("the name '{}' is given twice; value names are unique", at.text));
    }
  }

  ValueId value(const Token& at) {
    const auto it = names_.find(at.text);
    if (it != names_.end()) return it->second;
    std::vector<std::string> known;
    for (const auto& [name, id] : names_) known.push_back(name);
    lex_.error_at(at.begin, "graph.unknown_value",
                  fmt::format("there is no value '{}' before this place{}", at.text, did_you_mean(at.text, known)));
  }

  void parameters() {
    lex_.expect("(", "before the inputs");
    while (!lex_.take(")")) {
      const Token name = value_name("an input's name");
      lex_.expect(":", "between an input's name and its type");
      if (at_word("size")) {
        lex_.next();
        guarded(name.begin, [&] { Expr::symbol(name.text); });
        if (!symbols_.insert(name.text).second)
          lex_.error_at(name.begin, "graph.name", fmt::format("the size '{}' is given twice", name.text));
        g_.size_params.push_back(name.text);
      } else {
        const std::size_t begin = lex_.peek().begin;
        Annotation a = type(/*inputs=*/true);
        define(name, static_cast<ValueId>(g_.values.size()));
        guarded(begin, [&] {
          if (!a.has_strides) a.type.strides = contiguous_strides(a.type.sizes);
          check_type(a.type, name.text);
        });
        const ValueId id = static_cast<ValueId>(g_.values.size());
        g_.values.push_back(Value{id, name.text, std::move(a.type), -1, 0});
        g_.inputs.push_back(id);
      }
      if (!lex_.take(",") && !lex_.at(")")) lex_.syntax_error(lex_.peek(), "',' or ')' is missing after an input");
    }
  }

  /// Runs f; an Error without a place gets this one.
  template <typename F>
  auto guarded(std::size_t at, F&& f) -> decltype(f()) {
    try {
      return f();
    } catch (const Error& e) {
      const bool other_room = e.code().rfind("expr.", 0) == 0;
      lex_.error_at(at, !other_room ? e.code() : e.code() == "expr.symbol" ? "graph.syntax" : "graph.too_large", e.what());
    }
  }

  Expr size_expression(bool may_define) {
    const std::size_t begin = lex_.peek().begin;
    std::size_t at = begin;
    Expr e;
    try {
      e = Expr::parse_prefix(lex_.source(), at);
    } catch (const ExprSyntaxError& error) {
      std::string message = error.what();
      message.erase(0, message.find(": ") + 2);  // its column counts from the start of the text
      lex_.error_at(error.position(), "graph.syntax", message);
    } catch (const Error& error) {
      lex_.error_at(begin, error.code() == "expr.symbol" ? "graph.syntax" : "graph.too_large", error.what());
    }
    lex_.seek(at);
    std::set<std::string> used;
    e.collect_symbols(used);
    for (const auto& s : used) {
      if (may_define) {
        symbols_.insert(s);
      } else if (symbols_.count(s) == 0) {
        lex_.error_at(begin, "graph.unknown_size",
                      fmt::format("the size '{}' appears in no input; add a parameter `{}: size`", s, s));
      }
    }
    return e;
  }

  Exprs size_list(const char* close, bool may_define) {
    Exprs list;
    while (!lex_.take(close)) {
      if (list.size() >= kMaxList)
        lex_.error_at(lex_.peek().begin, "graph.too_large", fmt::format("a list has more than {} elements", kMaxList));
      list.push_back(size_expression(may_define));
      if (!lex_.take(",") && !lex_.at(close))
        lex_.syntax_error(lex_.peek(), fmt::format("',' or '{}' is missing in a list", close));
    }
    return list;
  }

  Annotation type(bool inputs) {
    const Token word = lex_.expect_name("a type such as f32[4, 8]");
    Annotation a;
    a.type.dtype = guarded(word.begin, [&] { return parse_dtype(word.text); });
    lex_.expect("[", "after the dtype (a 0-d tensor is f32[])");
    a.type.sizes = size_list("]", inputs);
    if (lex_.take("{")) {
      a.has_strides = true;
      const std::size_t begin = lex_.peek().begin;
      a.type.strides = size_list("}", inputs);
      if (a.type.strides.size() != a.type.sizes.size()) {
        lex_.error_at(begin, "graph.bad_type",
                      fmt::format("{} strides for {} sizes; give one per size", a.type.strides.size(), a.type.sizes.size()));
      }
    }
    return a;
  }

  /// inf, nan, numbers with a point or exponent, and whole numbers, with an optional sign.
  std::optional<Scalar> number() {
    const std::size_t begin = lex_.peek().begin;
    const bool negative = lex_.take("-");
    const Token& t = lex_.peek();
    if (t.kind == Token::Kind::name && (t.text == "inf" || t.text == "nan")) {
      const double v = lex_.next().text == "inf" ? INFINITY : NAN;
      return Scalar(negative ? -v : v);
    }
    if (t.kind == Token::Kind::number) {
      const Token n = lex_.next();
      const std::string text = (negative ? "-" : "") + n.text;
      const char* const last = text.data() + text.size();
      if (n.text.find_first_of(".eE") == std::string::npos) {
        std::int64_t v = 0;
        const auto r = std::from_chars(text.data(), last, v);
        if (r.ec == std::errc::result_out_of_range)
          lex_.error_at(begin, "graph.syntax", fmt::format("{} does not fit 64 bits; write it with a point", text));
        if (r.ec == std::errc() && r.ptr == last) return Scalar(v);
      } else {
        double v = 0;
        const auto r = std::from_chars(text.data(), last, v);
        // Out of range: too large is an infinity and too small a zero, as every reader of decimal numbers rounds them.
        if (r.ec == std::errc::result_out_of_range && r.ptr == last) return Scalar(std::strtod(text.c_str(), nullptr));
        if (r.ec == std::errc() && r.ptr == last) return Scalar(v);
      }
      lex_.error_at(n.begin, "graph.syntax", fmt::format("'{}' is not a number", n.text));
    }
    if (negative) lex_.syntax_error(t, "a number is missing after '-'");
    return std::nullopt;
  }

  Operand operand() {
    if (at_word("none")) return lex_.next(), Operand(std::monostate{});
    if (at_word("true") || at_word("false")) return Operand(Scalar(lex_.next().text == "true"));
    if (at_value_name()) return Operand(value(lex_.next()));
    if (auto v = number()) return Operand(*v);
    lex_.syntax_error(lex_.peek(), "an argument (a value's name, a number or none) is missing");
  }

  /// True when the text from the current token to the next , ) or ] is one literal number.
  bool at_plain_number() {
    const std::size_t begin = lex_.peek().begin;
    bool plain = false;
    lex_.take("-");
    const Token t = lex_.peek();
    if (t.kind == Token::Kind::number || (t.kind == Token::Kind::name && (t.text == "inf" || t.text == "nan"))) {
      lex_.next();
      plain = lex_.at(",") || lex_.at(")") || lex_.at("]") || lex_.peek().kind == Token::Kind::end;
    }
    lex_.seek(begin);
    return plain;
  }

  Attr list_attribute() {
    std::vector<Expr> sizes;
    std::vector<double> reals;
    bool has_real = false;
    while (!lex_.take("]")) {
      if (reals.size() >= kMaxList)
        lex_.error_at(lex_.peek().begin, "graph.too_large", fmt::format("a list has more than {} elements", kMaxList));
      if (at_plain_number()) {
        const Scalar s = *number();
        if (const auto* i = std::get_if<std::int64_t>(&s)) {
          sizes.emplace_back(*i);
          reals.push_back(static_cast<double>(*i));
        } else {
          has_real = true;
          reals.push_back(std::get<double>(s));
        }
      } else {
        sizes.push_back(size_expression(false));
        reals.push_back(0);
      }
      if (!lex_.take(",") && !lex_.at("]")) lex_.syntax_error(lex_.peek(), "',' or ']' is missing in a list");
    }
    if (!has_real) return Attr(std::move(sizes));
    for (const Expr& e : sizes) {
      if (!e.is_const()) lex_.error_at(lex_.peek().begin, "graph.syntax", "a list holds sizes or numbers with a point, not both");
    }
    return Attr(std::move(reals));
  }

  Attr attribute() {
    if (lex_.take("[")) return list_attribute();
    if (at_word("true") || at_word("false")) return Attr(lex_.next().text == "true");
    if (lex_.peek().kind == Token::Kind::string) return Attr(lex_.next().text);
    if (at_plain_number()) {
      const Scalar s = *number();
      if (const auto* i = std::get_if<std::int64_t>(&s)) return Attr(*i);
      return Attr(std::get<double>(s));
    }
    if (lex_.peek().kind == Token::Kind::name && symbols_.count(lex_.peek().text) == 0) {
      for (int i = 0; i < kDTypeCount; ++i) {
        if (at_word(name(static_cast<DType>(i)))) return lex_.next(), Attr(static_cast<DType>(i));
      }
    }
    const Expr e = size_expression(false);
    return e.is_const() ? Attr(e.value()) : Attr(e);
  }

  void arguments(Node& n) {
    lex_.expect("(", "after the operator");
    while (!lex_.take(")")) {
      const Token first = lex_.peek();
      bool keyword = false;
      if (first.kind == Token::Kind::name) {
        lex_.next();
        keyword = lex_.at("=");
        if (!keyword) lex_.seek(first.begin);
      }
      if (keyword) {
        lex_.next();
        keyword_argument(n, first);
      } else {
        if (!n.attrs.empty()) lex_.syntax_error(first, "arguments come first, then attributes (name=value)");
        if (n.args.size() >= kMaxList)
          lex_.error_at(first.begin, "graph.too_large", fmt::format("a call has more than {} arguments", kMaxList));
        n.args.push_back(operand());
      }
      if (!lex_.take(",") && !lex_.at(")")) lex_.syntax_error(lex_.peek(), "',' or ')' is missing after an argument");
    }
  }

  void keyword_argument(Node& n, const Token& key) {
    if (at_word("none")) {  // the same as leaving it out
      lex_.next();
      return;
    }
    const std::size_t begin = lex_.peek().begin;
    Attr a = attribute();
    const bool is_target = key.text == "target" && n.op == nullptr;
    if (is_target || key.text == "origin") {
      const auto* text = std::get_if<std::string>(&a);
      if (text == nullptr) lex_.error_at(begin, "graph.bad_attr", fmt::format("'{}' must be a text in quotes", key.text));
      (is_target ? n.target : n.origin) = *text;
    } else if (!n.attrs.emplace(key.text, std::move(a)).second) {
      lex_.error_at(key.begin, "graph.bad_attr", fmt::format("attribute '{}' is given twice", key.text));
    }
  }

  void statement() {
    std::vector<Token> names;
    std::vector<std::optional<Annotation>> written;
    do {
      names.push_back(value_name("a value's name or 'return'"));
      written.emplace_back();
      if (lex_.take(":")) written.back() = type(/*inputs=*/false);
    } while (lex_.take(","));
    lex_.expect("=", "before the operator");
    const Token word = lex_.expect_name("an operator");
    Node n;
    if (word.text != "extern") {
      n.op = ops::find(word.text);
      if (n.op == nullptr) unknown_operator(word);
    }
    arguments(n);
    std::vector<Type> types =
        n.op ? guarded(word.begin, [&] { return infer(g_, n); }) : guarded(word.begin, [&] { return extern_types(n, written); });
    if (types.size() != names.size()) {
      lex_.error_at(names[0].begin, "graph.arity",
                    fmt::format("{} has {} results, {} names are given", word.text, types.size(), names.size()));
    }
    n.id = static_cast<NodeId>(g_.nodes.size());
    for (std::size_t i = 0; i < types.size(); ++i) {
      guarded(names[i].begin, [&] {
        if (n.op && written[i]) {
          Annotation& a = *written[i];
          if (!a.has_strides) a.type.strides = contiguous_strides(a.type.sizes);
          types[i] = apply_annotation(g_, n, types[i], a);
        }
        check_type(types[i], names[i].text);
      });
      const ValueId id = static_cast<ValueId>(g_.values.size());
      define(names[i], id);
      g_.values.push_back(Value{id, names[i].text, std::move(types[i]), n.id, static_cast<int>(i)});
      n.results.push_back(id);
    }
    g_.nodes.push_back(std::move(n));
  }

  std::vector<Type> extern_types(const Node& n, const std::vector<std::optional<Annotation>>& written) {
    if (n.target.empty()) fail("graph.bad_attr", "an extern call needs target=\"...\"");
    std::vector<Type> types;
    for (const auto& a : written) {
      if (!a) fail("graph.dtype", "{}", "every result of an extern call needs a type, such as `y: f32[4] = extern(...)`");
      types.push_back(a->type);
      if (!a->has_strides) types.back().strides = contiguous_strides(types.back().sizes);
    }
    return types;
  }

  [[noreturn]] void unknown_operator(const Token& word) {
    std::vector<std::string> known;
    for (const ops::Op& op : ops::table()) known.push_back(op.name);
    lex_.error_at(
        word.begin, "graph.unknown_op",
        fmt::format("unknown operator '{}'{}; `fuselab ops` lists what exists", word.text, did_you_mean(word.text, known)));
  }

  void results() {
    if (lex_.at("}")) return;
    do {
      g_.outputs.push_back(value(value_name("a result's name")));
    } while (lex_.take(","));
  }

  Lexer lex_;
  Graph g_;
  std::unordered_map<std::string, ValueId> names_;
  std::set<std::string> symbols_;
};

}  // namespace

Graph parse_graph(std::string_view text, const std::string& file) { return GraphParser(text, file).parse(); }

}  // namespace fuselab
