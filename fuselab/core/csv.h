// Comma-separated values as RFC 4180 has them, with what real files add: a byte order mark, CRLF or LF, empty lines.
//
// The reader gives views into the text, so a row costs no allocation unless a quoted field holds doubled quotes.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace fuselab {

class CsvReader {
 public:
  /// `text` must outlive the reader and every field; `what` names it in errors.
  CsvReader(std::string_view text, std::string what);

  /// The next row that is not empty, or false at the end. Fields are valid until the next call.
  /// Throws Error("csv.malformed") with line and byte: a quote that is never closed, or text after a closing quote.
  bool next(std::vector<std::string_view>& fields);
  std::size_t line() const { return line_; }  ///< where the row last given begins, from 1
  std::size_t byte() const { return begin_; }

 private:
  std::string_view quoted();
  [[noreturn]] void bad(const char* why) const;

  std::string_view text_;
  std::string what_;
  std::size_t at_ = 0, begin_ = 0, line_ = 0, next_line_ = 1;
  std::deque<std::string> unquoted_;  // fields whose doubled quotes had to go
};

/// A field as it stands in a row: quoted when it holds a comma, quote, CR or LF.
std::string csv_field(std::string_view value);

}  // namespace fuselab
