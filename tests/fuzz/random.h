// A small deterministic random source (splitmix64): the standard distributions differ between libraries.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace fuselab::fuzz {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {
    state_ = next();  // seeds that follow each other must not give shifted copies of one sequence
  }
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// In [0, n); 0 for n < 2.
  int below(std::size_t n) { return n < 2 ? 0 : static_cast<int>(next() % n); }
  bool chance(int percent) { return below(100) < percent; }
  double uniform(double low, double high) { return low + (high - low) * (static_cast<double>(next() >> 11) * 0x1p-53); }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(from.size()))];
  }

 private:
  std::uint64_t state_;
};

inline std::uint64_t hash_name(std::string_view s) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const char c : s) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

}  // namespace fuselab::fuzz
