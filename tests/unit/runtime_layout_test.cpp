#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "fuselab/core/error.h"
#include "fuselab/runtime/binding.h"
#include "fuselab/runtime/layout.h"

namespace fuselab::runtime {
namespace {

using Ints = std::vector<std::int64_t>;

TEST(RuntimeLayout, CopyTransposesAndKeepsBits) {
  // 2 x 3, from column-major to row-major, for each element size.
  const Ints sizes{2, 3};
  for (const int bytes : {1, 2, 4, 8}) {
    std::vector<unsigned char> in(6 * bytes), out(6 * bytes);
    std::iota(in.begin(), in.end(), static_cast<unsigned char>(1));
    copy_strided(sizes, bytes, in.data(), Ints{1, 2}, out.data(), Ints{3, 1});
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 3; ++j)
        for (int b = 0; b < bytes; ++b) EXPECT_EQ(out[(i * 3 + j) * bytes + b], in[(i + j * 2) * bytes + b]);
  }
}

TEST(RuntimeLayout, CopyReadsBackwardsAndBroadcasts) {
  const std::vector<float> in{1, 2, 3, 4};
  std::vector<float> out(4);
  copy_strided(Ints{4}, 4, in.data() + 3, Ints{-1}, out.data(), Ints{1});
  EXPECT_EQ(out, (std::vector<float>{4, 3, 2, 1}));
  std::vector<float> wide(6);
  copy_strided(Ints{2, 3}, 4, in.data(), Ints{1, 0}, wide.data(), Ints{3, 1});
  EXPECT_EQ(wide, (std::vector<float>{1, 1, 1, 2, 2, 2}));
}

TEST(RuntimeLayout, CopyOfNothingTouchesNothing) {
  copy_strided(Ints{3, 0}, 4, nullptr, Ints{0, 1}, nullptr, Ints{0, 1});
  float in = 5, out = 0;
  copy_strided(Ints{}, 4, &in, Ints{}, &out, Ints{});
  EXPECT_EQ(out, 5);
}

TEST(RuntimeLayout, ExtentAndOverlap) {
  EXPECT_EQ(extent(Ints{2, 3}, Ints{10, 1}, 4), (10 + 2 + 1) * 4);
  EXPECT_EQ(extent(Ints{2, 0}, Ints{10, 1}, 4), 0);
  EXPECT_EQ(extent(Ints{}, Ints{}, 8), 8);
  EXPECT_THROW(extent(Ints{1LL << 40, 1LL << 40}, Ints{1LL << 40, 1}, 4), Error);
  EXPECT_THROW(count(Ints{1LL << 40, 1LL << 40}), Error);
  EXPECT_EQ(count(Ints{1LL << 40, 1LL << 40, 0}), 0);
  EXPECT_TRUE(overlapping(Ints{2, 3}, Ints{0, 1}));
  EXPECT_TRUE(overlapping(Ints{2, 3}, Ints{2, 1}));
  EXPECT_FALSE(overlapping(Ints{2, 3}, Ints{1, 2}));
  EXPECT_FALSE(overlapping(Ints{1, 3}, Ints{0, 1}));
}

TEST(RuntimeBinding, SymbolsAreSolved) {
  SymbolValues known;
  solve_symbols({Expr::parse("2*A + B"), Expr::parse("B"), Expr::parse("3")}, {10, 4, 3}, known);
  EXPECT_EQ(known, (SymbolValues{{"A", 3}, {"B", 4}}));
  SymbolValues none;
  solve_symbols({Expr::parse("2*A")}, {7}, none);  // no whole number
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace fuselab::runtime
