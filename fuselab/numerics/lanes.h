// Four doubles side by side: what the passes over large tensors are written in. Used inside numerics alone.
//
// Sums keep four partial sums that are added in one fixed order at the end of a block, so results do not depend on the machine:
// FUSELAB_LANES compiles a function for AVX2 too, whose lanes compute what the plain ones do (nothing is contracted).
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && !defined(FUSELAB_TSAN)  // choosing a clone runs before that runtime is set up
#define FUSELAB_LANES __attribute__((target_clones("avx2", "default")))
#else
#define FUSELAB_LANES
#endif

namespace fuselab::numerics::lanes {

inline constexpr int kLanes = 4;
inline constexpr int kBlock = 512;  ///< elements of a block: its arrays stay in the first-level cache

typedef double Doubles __attribute__((vector_size(32)));     // NOLINT(modernize-use-using): `using` drops the attribute in clang
typedef std::int64_t Ints __attribute__((vector_size(32)));  // NOLINT(modernize-use-using)

inline constexpr std::int64_t kExponentBits = 0x7ff0000000000000, kMagnitudeBits = 0x7fffffffffffffff;

#define FUSELAB_INLINE inline __attribute__((always_inline))

FUSELAB_INLINE void load(const double* from, Doubles& to) { std::memcpy(&to, from, sizeof to); }
FUSELAB_INLINE void store(const Doubles& from, double* to) { std::memcpy(to, &from, sizeof from); }
FUSELAB_INLINE void bits(const Doubles& x, Ints& to) { std::memcpy(&to, &x, sizeof to); }
FUSELAB_INLINE void from_bits(const Ints& x, Doubles& to) { std::memcpy(&to, &x, sizeof to); }
FUSELAB_INLINE void magnitude(const Doubles& x, Doubles& to) {
  Ints i;
  bits(x, i);
  i &= kMagnitudeBits;
  from_bits(i, to);
}
FUSELAB_INLINE double sum(const Doubles& x) { return (x[0] + x[2]) + (x[1] + x[3]); }
FUSELAB_INLINE std::int64_t sum(const Ints& x) { return x[0] + x[1] + x[2] + x[3]; }
FUSELAB_INLINE double largest(const Doubles& x) {
  double m = x[0];
  for (int i = 1; i < kLanes; ++i) m = x[i] > m ? x[i] : m;
  return m;
}
FUSELAB_INLINE double least(const Doubles& x) {
  double m = x[0];
  for (int i = 1; i < kLanes; ++i) m = x[i] < m ? x[i] : m;
  return m;
}

}  // namespace fuselab::numerics::lanes
