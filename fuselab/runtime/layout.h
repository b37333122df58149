// Sizes and strides as plain numbers: extents and copies between layouts.
#pragma once
#include <cstdint>
#include <span>
#include <string>

namespace fuselab::runtime {

/// Product of sizes; 1 for none. Throws Error("call.size") for a negative size or past 63 bits.
std::int64_t count(std::span<const std::int64_t> sizes);

/// Bytes from the first element to behind the last; 0 when empty. Throws Error("call.size") past 63 bits.
std::int64_t extent(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, int element_bytes);

/// True when two index tuples may share an address although neither dimension is of size 1 (stride 0 and other overlaps found by
/// sorting).
bool overlapping(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides);

/// Copies the bits of every element from one layout to another. Strides in elements. The memories do not overlap.
void copy_strided(std::span<const std::int64_t> sizes, int element_bytes, const void* from,
                  std::span<const std::int64_t> from_strides, void* to, std::span<const std::int64_t> to_strides);

/// True when the strides address the same elements: dimensions of size 1 and empty tensors do not count.
bool same_strides(std::span<const std::int64_t> sizes, const std::int64_t* a, const std::int64_t* b);

/// "[2, 3]"
std::string list_text(std::span<const std::int64_t> xs);

}  // namespace fuselab::runtime
