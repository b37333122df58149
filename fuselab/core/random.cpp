#include "fuselab/core/random.h"

#include <algorithm>
#include <cmath>

#include "fuselab/core/error.h"

namespace fuselab {
namespace {

constexpr std::uint64_t kWeyl = 0x9e3779b97f4a7c15ULL;

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  // Each coordinate passes the mixer before the next enters, so that near seeds and streams share nothing.
  return mix(mix(mix(seed + kWeyl) + stream * kWeyl + 1) + (index + 1) * kWeyl);
}

double random_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return (static_cast<double>(random_bits(seed, stream, index) >> 12) + 0.5) * 0x1p-52;
}

double random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const double radius = std::sqrt(-2 * std::log(random_uniform(seed, stream, 2 * index)));
  return radius * std::cos(2 * 3.14159265358979323846 * random_uniform(seed, stream, 2 * index + 1));
}

void fill_random(const Tensor& t, std::uint64_t seed, std::uint64_t stream, IntRange range) {
  if (range.low > range.high) fail("random.range", "the range {}..{} holds no integer", range.low, range.high);
  const DType type = t.dtype();
  if (is_int(type) && type != DType::i64) {
    const std::int64_t most = type == DType::u8 ? 255 : (std::int64_t{1} << (8 * size_of(type) - 1)) - 1;
    const std::int64_t least = type == DType::u8 ? 0 : -most - 1;
    range = {std::clamp(range.low, least, most), std::clamp(range.high, least, most)};
  }
  const std::uint64_t width =
      static_cast<std::uint64_t>(range.high) - static_cast<std::uint64_t>(range.low) + 1;  // 0: all of 64 bits
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    const auto index = static_cast<std::uint64_t>(i);
    if (is_float(type)) {
      t.set(i, random_normal(seed, stream, index));
    } else {
      const std::uint64_t bits = random_bits(seed, stream, index);
      if (is_bool(type)) {
        t.set_int(i, static_cast<std::int64_t>(bits >> 63));
      } else {
        t.set_int(i, static_cast<std::int64_t>(static_cast<std::uint64_t>(range.low) + (width ? bits % width : bits)));
      }
    }
  }
}

}  // namespace fuselab
