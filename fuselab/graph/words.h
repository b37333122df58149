// Which names the text form can write without quotes.
#pragma once
#include <algorithm>
#include <string_view>

namespace fuselab::graph_words {

constexpr std::string_view kReserved[] = {"none", "true", "false", "inf", "nan", "return", "extern"};

inline bool is_reserved(std::string_view word) {
  return std::find(std::begin(kReserved), std::end(kReserved), word) != std::end(kReserved);
}

inline bool is_plain_name(std::string_view name) {
  const auto letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
  };
  if (name.empty() || !letter(name[0]) || is_reserved(name)) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace fuselab::graph_words
