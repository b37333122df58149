// Tokens of the graph text form, with their places, and errors that point at them. Used by graph/text.cpp.
#pragma once
#include <string>
#include <string_view>

namespace fuselab {

struct Token {
  enum class Kind { name, number, string, punctuation, end };
  Kind kind = Kind::end;
  std::string text;       ///< for a string: unescaped
  std::size_t begin = 0;  ///< offsets into the source
  std::size_t stop = 0;
};

/// Cuts text into tokens on demand; one token of look-ahead that can be rewound to an offset. `#` starts a comment.
class Lexer {
 public:
  Lexer(std::string_view text, std::string file);
  const Token& peek();
  Token next();
  /// Continues at this offset (after another parser has read a part of the text).
  void seek(std::size_t offset);
  std::string_view source() const { return text_; }
  bool at(std::string_view punctuation);    ///< is the next token this one?
  bool take(std::string_view punctuation);  ///< ... and if so, moves behind it
  Token expect(std::string_view punctuation, const char* where);
  Token expect_name(const char* what);
  /// Throws Error(code, "file:line:column: message\n  source line\n  caret").
  [[noreturn]] void error_at(std::size_t offset, const std::string& code, const std::string& message) const;
  [[noreturn]] void syntax_error(const Token& at, const std::string& message) const;

 private:
  Token scan();
  Token scan_string();

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  bool have_ = false;
  Token ahead_;
};

}  // namespace fuselab
