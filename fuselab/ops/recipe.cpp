#include "fuselab/ops/recipe.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "fuselab/core/error.h"

namespace fuselab::ops {
namespace {

using K = RecipeNode::Kind;

/// Recursive descent over the text; every level is one precedence class.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Recipe recipe() {
    Recipe r;
    while (true) {
      const std::size_t start = at_;
      if (std::string name = identifier(); !name.empty() && peek() == '=' && peek(1) != '=') {
        take("=");
        r.statements.push_back({name, expression()});
        if (!take(";")) error("expected ';' after a statement (a recipe ends with its results)");
        continue;
      }
      at_ = start;
      do r.results.push_back(expression());
      while (take(","));
      if (peek() != '\0') error("expected the end of the recipe");
      return r;
    }
  }

 private:
  [[noreturn]] void error(const std::string& what) {
    fail("ops.recipe", "column {}: {}, in the recipe `{}`", at_ + 1, what, std::string(text_));
  }
  char peek(std::size_t ahead = 0) {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool take(std::string_view word) {
    peek();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::string identifier() {
    if (std::isalpha(static_cast<unsigned char>(peek())) == 0 && peek() != '_') return "";
    const std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  static RecipeNode make(K kind, std::string word, std::vector<RecipeNode> args) {
    RecipeNode n;
    n.kind = kind;
    n.word = std::move(word);
    n.args = std::move(args);
    return n;
  }

  RecipeNode expression() { return either(); }
  RecipeNode either() {
    RecipeNode left = both();
    while (take("|")) left = make(K::binary, "|", {std::move(left), both()});
    return left;
  }
  RecipeNode both() {
    RecipeNode left = comparison();
    while (take("&")) left = make(K::binary, "&", {std::move(left), comparison()});
    return left;
  }
  RecipeNode comparison() {
    RecipeNode left = sum();
    for (const char* op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (take(op)) return make(K::binary, op, {std::move(left), sum()});
    }
    return left;
  }
  RecipeNode sum() {
    RecipeNode left = term();
    while (true) {
      if (take("+"))
        left = make(K::binary, "+", {std::move(left), term()});
      else if (take("-"))
        left = make(K::binary, "-", {std::move(left), term()});
      else
        return left;
    }
  }
  RecipeNode term() {
    RecipeNode left = unary();
    while (true) {
      if (take("*"))
        left = make(K::binary, "*", {std::move(left), unary()});
      else if (take("/"))
        left = make(K::binary, "/", {std::move(left), unary()});
      else
        return left;
    }
  }
  RecipeNode unary() {
    if (take("-")) return make(K::unary, "-", {unary()});
    if (peek() == '!' && peek(1) != '=') {
      take("!");
      return make(K::unary, "!", {unary()});
    }
    return primary();
  }
  RecipeNode primary() {
    if (take("(")) {
      RecipeNode inner = expression();
      if (!take(")")) error("expected ')'");
      return inner;
    }
    if (take("\"")) {
      const std::size_t end = text_.find('"', at_);
      if (end == std::string_view::npos) error("text without a closing quote");
      RecipeNode n = make(K::text, std::string(text_.substr(at_, end - at_)), {});
      at_ = end + 1;
      return n;
    }
    if (std::isdigit(static_cast<unsigned char>(peek())) != 0 || peek() == '.') return number();
    std::string name = identifier();
    if (name.empty()) error("expected a value");
    if (take("(")) {
      std::vector<RecipeNode> args;
      if (!take(")")) {
        do args.push_back(expression());
        while (take(","));
        if (!take(")")) error("expected ')' after the arguments");
      }
      return make(K::call, std::move(name), std::move(args));
    }
    RecipeNode n = make(K::name, name, {});
    if (name == "inf")
      n.number = std::numeric_limits<double>::infinity();
    else if (name == "nan")
      n.number = std::numeric_limits<double>::quiet_NaN();
    else if (name == "true" || name == "false")
      n.boolean = true, n.number = name == "true" ? 1 : 0;
    else
      return n;
    n.kind = K::number;
    n.word.clear();
    return n;
  }
  RecipeNode number() {
    RecipeNode n;
    const char* first = text_.data() + at_;
    const char* last = text_.data() + text_.size();
    const auto real = std::from_chars(first, last, n.number);
    if (real.ec != std::errc()) error("not a number");
    std::int64_t whole = 0;
    const auto exact = std::from_chars(first, last, whole);
    if (exact.ec == std::errc() && exact.ptr == real.ptr) n.integer = whole;
    at_ += static_cast<std::size_t>(real.ptr - first);
    return n;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

int strength(const RecipeNode& n) {
  if (n.kind == K::unary) return 6;
  if (n.kind == K::number && std::signbit(n.number)) return 6;
  if (n.kind != K::binary) return 7;
  if (n.word == "|") return 1;
  if (n.word == "&") return 2;
  if (n.word == "+" || n.word == "-") return 4;
  if (n.word == "*" || n.word == "/") return 5;
  return 3;
}

/// Text of an operand; parentheses where it binds looser than `least`.
std::string operand(const RecipeNode& n, int least) { return strength(n) < least ? "(" + print(n) + ")" : print(n); }

}  // namespace

Recipe parse_recipe(std::string_view text) { return Parser(text).recipe(); }

std::string print(const RecipeNode& n) {
  switch (n.kind) {
    case K::number:
      if (n.boolean) return n.number != 0 ? "true" : "false";
      if (n.integer) return std::to_string(*n.integer);
      if (std::isnan(n.number)) return "nan";
      if (std::isinf(n.number)) return n.number > 0 ? "inf" : "-inf";
      if (std::string s = fmt::format("{}", n.number); s.find_first_of(".e") != std::string::npos)
        return s;
      else
        return s + ".0";
    case K::name:
      return n.word;
    case K::text:
      return "\"" + n.word + "\"";
    case K::unary:
      return n.word + operand(n.args[0], 6);
    case K::binary: {
      const int mine = strength(n);  // comparisons do not chain, so both of their sides must bind tighter
      return operand(n.args[0], mine == 3 ? 4 : mine) + " " + n.word + " " + operand(n.args[1], mine + 1);
    }
    case K::call: {
      std::string s = n.word + "(";
      for (std::size_t i = 0; i < n.args.size(); ++i) s += (i != 0 ? ", " : "") + print(n.args[i]);
      return s + ")";
    }
  }
  return "";
}

std::string print(const Recipe& r) {
  std::string s;
  for (const RecipeStatement& st : r.statements) s += st.name + " = " + print(st.value) + "; ";
  for (std::size_t i = 0; i < r.results.size(); ++i) s += (i != 0 ? ", " : "") + print(r.results[i]);
  return s;
}

}  // namespace fuselab::ops
