#include "fuselab/core/csv.h"

#include <algorithm>
#include <cstring>

#include "fuselab/core/error.h"

namespace fuselab {

CsvReader::CsvReader(std::string_view text, std::string what) : text_(text), what_(std::move(what)) {
  if (text_.substr(0, 3) == "\xef\xbb\xbf") at_ = 3;
}

void CsvReader::bad(const char* why) const { fail("csv.malformed", "{}:{} (byte {}): {}.", what_, line_, begin_, why); }

// at_ stands behind the opening quote; stands behind the closing one afterwards.
std::string_view CsvReader::quoted() {
  std::size_t from = at_;
  std::string* joined = nullptr;
  for (;;) {
    const std::size_t quote = text_.find('"', at_);
    if (quote == std::string_view::npos) bad("a quote is never closed");
    next_line_ += static_cast<std::size_t>(
        std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_), text_.begin() + static_cast<std::ptrdiff_t>(quote), '\n'));
    at_ = quote + 1;
    const bool doubled = at_ < text_.size() && text_[at_] == '"';
    if (!doubled && !joined) return text_.substr(from, quote - from);
    if (!joined) joined = &unquoted_.emplace_back();
    joined->append(text_.substr(from, quote - from));
    if (!doubled) return *joined;
    joined->push_back('"');
    from = ++at_;
  }
}

bool CsvReader::next(std::vector<std::string_view>& fields) {
  fields.clear();
  unquoted_.clear();
  while (at_ < text_.size() && (text_[at_] == '\n' || (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n'))) {
    at_ += text_[at_] == '\r' ? 2 : 1;
    ++next_line_;
  }
  if (at_ >= text_.size()) return false;
  begin_ = at_;
  line_ = next_line_;
  const char* const data = text_.data();
  const std::size_t size = text_.size();
  for (;;) {
    if (at_ < size && data[at_] == '"') {
      ++at_;
      fields.push_back(quoted());
    } else {
      std::size_t end = at_;
      while (end < size && data[end] != ',' && data[end] != '\n') ++end;
      const bool cr = end > at_ && data[end - 1] == '\r' && (end == size || data[end] == '\n');
      fields.push_back(text_.substr(at_, end - at_ - (cr ? 1 : 0)));
      at_ = end;
    }
    if (at_ < size && data[at_] == ',') {
      ++at_;
      continue;
    }
    if (at_ < size && data[at_] == '\r') ++at_;
    if (at_ >= size) return true;
    if (data[at_] != '\n') bad("something follows a closing quote");
    ++at_;
    ++next_line_;
    return true;
  }
}

std::string csv_field(std::string_view value) {
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(value);
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace fuselab
