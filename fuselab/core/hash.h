// Hashes of texts and bytes (xxHash, XXH3): stable on every machine, fit for keys and checksums, not for secrets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fuselab {

std::uint64_t hash64(const void* data, std::size_t bytes, std::uint64_t seed = 0);
inline std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0) { return hash64(text.data(), text.size(), seed); }

/// 16 lower-case hex digits.
std::string hex(std::uint64_t value);
/// hash64 as 16 hex digits.
inline std::string hash_hex(std::string_view text) { return hex(hash64(text)); }
/// 128 bits as 32 hex digits: for keys where a collision would be a wrong number.
std::string hash128_hex(std::string_view text);

}  // namespace fuselab
