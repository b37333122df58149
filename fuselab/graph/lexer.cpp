#include "fuselab/graph/lexer.h"

#include <algorithm>
#include <cctype>

#include "fuselab/core/error.h"

namespace fuselab {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool name_start(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}
bool name_part(char c) { return name_start(c) || digit(c); }

std::string printable(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u >= 0x20 && u < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", u);
}

}  // namespace

Lexer::Lexer(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {}

const Token& Lexer::peek() {
  if (!have_) {
    ahead_ = scan();
    have_ = true;
  }
  return ahead_;
}

Token Lexer::next() {
  peek();
  have_ = false;
  return ahead_;
}

void Lexer::seek(std::size_t offset) {
  at_ = offset;
  have_ = false;
}

bool Lexer::at(std::string_view punctuation) {
  const Token& t = peek();
  return t.kind == Token::Kind::punctuation && t.text == punctuation;
}

bool Lexer::take(std::string_view punctuation) {
  if (!at(punctuation)) return false;
  next();
  return true;
}

Token Lexer::expect(std::string_view punctuation, const char* where) {
  if (!at(punctuation)) syntax_error(peek(), fmt::format("'{}' is missing {}", punctuation, where));
  return next();
}

Token Lexer::expect_name(const char* what) {
  if (peek().kind != Token::Kind::name) syntax_error(peek(), fmt::format("{} is missing", what));
  return next();
}

void Lexer::syntax_error(const Token& at, const std::string& message) const {
  std::string found;
  if (at.kind == Token::Kind::end) {
    found = "the end of the text";
  } else {
    found = "'" + std::string(text_.substr(at.begin, std::min<std::size_t>(at.stop - at.begin, 40))) + "'";
  }
  error_at(at.begin, "graph.syntax", message + " before " + found);
}

void Lexer::error_at(std::size_t offset, const std::string& code, const std::string& message) const {
  offset = std::min(offset, text_.size());
  const std::size_t line_begin = offset == 0 ? 0 : text_.rfind('\n', offset - 1) + 1;  // npos + 1 == 0
  const std::size_t line_end = std::min(text_.find('\n', offset), text_.size());
  const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(line_begin), '\n');
  // Long lines are shown around the place; columns count bytes, the caret characters.
  const std::size_t show_begin = std::max(line_begin, offset > 100 ? offset - 100 : 0);
  const std::size_t show_end = std::min(line_end, offset + 100);
  std::string shown, caret;
  for (std::size_t i = show_begin; i < show_end; ++i) {
    const char c = text_[i];
    if (c == '\r') continue;
    const bool continues = (static_cast<unsigned char>(c) & 0xc0) == 0x80;
    shown += c == '\t' || static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    if (i < offset && !continues) caret += ' ';
  }
  throw Error(code, fmt::format("{}:{}:{}: {}\n  {}\n  {}^", file_, line, offset - line_begin + 1, message, shown, caret));
}

Token Lexer::scan() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      break;
    }
  }
  Token t;
  t.begin = t.stop = at_;
  if (at_ >= text_.size()) return t;
  const char c = text_[at_];
  const auto finish = [&](Token::Kind kind, std::size_t length) {
    t.kind = kind;
    t.text = std::string(text_.substr(at_, length));
    at_ += length;
    t.stop = at_;
    return t;
  };
  if (c == '"') return scan_string();
  if (name_start(c)) {
    std::size_t n = 1;
    while (at_ + n < text_.size() && name_part(text_[at_ + n])) ++n;
    return finish(Token::Kind::name, n);
  }
  const char second = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (digit(c) || (c == '.' && digit(second))) {
    std::size_t n = 0;
    char before = '\0';
    while (at_ + n < text_.size()) {
      const char x = text_[at_ + n];
      const bool exponent_sign = (x == '+' || x == '-') && (before == 'e' || before == 'E');
      if (!name_part(x) && x != '.' && !exponent_sign) break;
      before = x;
      ++n;
    }
    return finish(Token::Kind::number, n);
  }
  if (std::string_view("(){}[],:=-+*/%").find(c) != std::string_view::npos) return finish(Token::Kind::punctuation, 1);
  error_at(at_, "graph.syntax", fmt::format("'{}' has no meaning here", printable(c)));
}

Token Lexer::scan_string() {
  Token t;
  t.kind = Token::Kind::string;
  t.begin = at_++;
  while (true) {
    if (at_ >= text_.size() || text_[at_] == '\n')
      error_at(t.begin, "graph.syntax", "the text in quotes does not end on its line");
    const char c = text_[at_++];
    if (c == '"') break;
    if (c != '\\') {
      t.text += c;
      continue;
    }
    const char e = at_ < text_.size() ? text_[at_++] : '\0';
    if (e == 'n') {
      t.text += '\n';
    } else if (e == 't') {
      t.text += '\t';
    } else if (e == '"' || e == '\\') {
      t.text += e;
    } else if (e == 'x' && at_ + 1 < text_.size() && std::isxdigit(static_cast<unsigned char>(text_[at_])) &&
               std::isxdigit(static_cast<unsigned char>(text_[at_ + 1]))) {
      t.text += static_cast<char>(std::stoi(std::string(text_.substr(at_, 2)), nullptr, 16));
      at_ += 2;
    } else {
      error_at(at_ - 2, "graph.syntax", "unknown escape; known are \\n \\t \\\" \\\\ \\xHH");
    }
  }
  t.stop = at_;
  return t;
}

}  // namespace fuselab
