// The text form of Expr: sums of products, `//`, `%`, and the functions floordiv, mod, min, max.
#include <cctype>
#include <charconv>

#include "fuselab/core/expr.h"
#include "fuselab/core/expr_rep.h"

namespace fuselab {
namespace {

constexpr int kMaxDepth = 64;

class Parser {
 public:
  Parser(std::string_view text, std::size_t position) : text_(text), at_(position) {}
  std::size_t position() const { return at_; }

  Expr sum(int depth) {
    Expr e = term(depth);
    for (;;) {
      if (take('+')) {
        e = e + term(depth);
      } else if (take('-')) {
        e = e - term(depth);
      } else {
        return e;
      }
    }
  }

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  [[noreturn]] void error(const std::string& what) const {
    throw ExprSyntaxError(fmt::format("size expression, column {}: {}", at_ + 1, what), at_);
  }

 private:
  bool take(char c) {
    const std::size_t start = at_;
    skip();
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    at_ = start;  // so that the end of an expression is the end of its last token
    return false;
  }

  Expr term(int depth) {
    Expr e = factor(depth);
    for (;;) {
      if (take('*')) {
        e = e * factor(depth);
      } else if (take('/')) {
        if (at_ >= text_.size() || text_[at_] != '/') error("sizes are integers: use '//' (rounds down)");
        ++at_;
        e = floordiv(e, factor(depth));
      } else if (take('%')) {
        e = mod(e, factor(depth));
      } else {
        return e;
      }
    }
  }

  Expr number(bool negative) {
    std::string digits = negative ? "-" : "";
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) digits += text_[at_++];
    std::int64_t v = 0;
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), v);
    if (r.ec != std::errc()) error(fmt::format("'{}' does not fit 63 bits", digits.substr(0, 40)));
    if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E')) error("a size is a whole number");
    return v;
  }

  Expr factor(int depth) {
    if (depth > kMaxDepth) error("nested too deeply");
    skip();
    if (at_ >= text_.size()) error("a number or a size name is missing at the end");
    const char c = text_[at_];
    if (c == '-') {
      ++at_;
      skip();
      if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) return number(true);
      return factor(depth + 1) * Expr(-1);
    }
    if (c == '(') {
      ++at_;
      Expr e = sum(depth + 1);
      if (!take(')')) error("')' is missing");
      return e;
    }
    if (std::isdigit(static_cast<unsigned char>(c))) return number(false);
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') return name(depth);
    error(fmt::format("'{}' where a number or a size name should be", c));
  }

  Expr name(int depth) {
    const std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    const std::string word(text_.substr(start, at_ - start));
    if (word != "floordiv" && word != "mod" && word != "min" && word != "max") return Expr::symbol(word);
    if (!take('(')) error(fmt::format("'(' is missing after {}", word));
    const Expr a = sum(depth + 1);
    if (!take(',')) error(fmt::format("{} takes two arguments", word));
    const Expr b = sum(depth + 1);
    if (!take(')')) error("')' is missing");
    if (word == "floordiv") return floordiv(a, b);
    if (word == "mod") return mod(a, b);
    return word == "min" ? min(a, b) : max(a, b);
  }

  std::string_view text_;
  std::size_t at_;
};

}  // namespace

Expr Expr::parse_prefix(std::string_view text, std::size_t& position) {
  Parser p(text, position);
  Expr e = p.sum(0);
  position = p.position();
  return e;
}

Expr Expr::parse(std::string_view text) {
  Parser p(text, 0);
  Expr e = p.sum(0);
  p.skip();
  if (p.position() != text.size()) p.error(fmt::format("'{}' is not expected here", text[p.position()]));
  return e;
}

}  // namespace fuselab
