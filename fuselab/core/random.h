// Random inputs that two runs, and two programs, see alike: a counter-based generator (element i of a stream is a function of
// seed, stream and i alone), so order, threads and strides do not matter.
#pragma once
#include <cstdint>

#include "fuselab/core/tensor.h"

namespace fuselab {

/// 64 well-mixed bits of (seed, stream, index): SplitMix64's finaliser over a Weyl sequence.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);
/// Uniform in (0, 1): never 0, never 1.
double random_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);
/// Standard normal (Box-Muller).
double random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

/// Closed range for integer elements.
struct IntRange {
  std::int64_t low = 0, high = 9;
};

/// Fills row-major: normals for floats, the range (cut to the dtype) for integers, a fair coin for bool. Throws
/// Error("random.range") for an empty range.
void fill_random(const Tensor& t, std::uint64_t seed, std::uint64_t stream, IntRange range = {});

}  // namespace fuselab
