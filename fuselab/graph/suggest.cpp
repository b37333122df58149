#include "fuselab/graph/suggest.h"

#include <algorithm>

namespace fuselab {
namespace {

std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  if (word.size() > 64) return "";
  std::size_t best = (word.size() < 4 ? 1 : 2) + 1;
  const std::string* found = nullptr;
  for (const std::string& k : known) {
    if (k.size() > word.size() + 2 || k.size() + 2 < word.size()) continue;
    const std::size_t d = edits(word, k);
    if (d < best || (d == best && found != nullptr && k < *found)) {
      best = d;
      found = &k;
    }
  }
  return found ? "; did you mean '" + *found + "'?" : "";
}

}  // namespace fuselab
