#include "fuselab/core/hash.h"

#include <gtest/gtest.h>

namespace fuselab {
namespace {

// Published test values of XXH3 (xxHash's documentation and `xxhsum -H3`): the empty input, seed 0.
TEST(Hash, KnownValues) {
  EXPECT_EQ(hex(hash64("")), "2d06800538d394c2");
  EXPECT_EQ(hash128_hex(""), "99aa06d3014798d86001c324468d497f");
}

TEST(Hash, HexIsPadded) {
  EXPECT_EQ(hex(0), "0000000000000000");
  EXPECT_EQ(hex(0xabc), "0000000000000abc");
}

TEST(Hash, SeedAndTextMatter) {
  EXPECT_NE(hash64("a"), hash64("b"));
  EXPECT_NE(hash64("a", 1), hash64("a", 2));
  EXPECT_EQ(hash_hex("kernel"), hex(hash64("kernel")));
}

}  // namespace
}  // namespace fuselab
