#include "fuselab/core/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace fuselab {

std::uint64_t hash64(const void* data, std::size_t bytes, std::uint64_t seed) { return XXH3_64bits_withSeed(data, bytes, seed); }

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

std::string hash128_hex(std::string_view text) {
  const XXH128_hash_t h = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);
}

}  // namespace fuselab
