#include "fuselab/core/random.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fuselab/core/error.h"

namespace fuselab {
namespace {

TEST(Random, SameSeedSameDataWhateverTheLayout) {
  const Tensor a(DType::f32, {5, 7}), b = Tensor::strided(DType::f32, {5, 7}, {1, 5}), c(DType::f32, {5, 7});
  fill_random(a, 3, 1);
  fill_random(b, 3, 1);
  fill_random(c, 3, 2);
  EXPECT_EQ(a.doubles(), b.doubles());
  EXPECT_NE(a.doubles(), c.doubles());
}

TEST(Random, NormalsHaveMeanZeroAndVarianceOne) {
  const Tensor t(DType::f64, {200000});
  fill_random(t, 0, 0);
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    sum += t.get(i);
    squares += t.get(i) * t.get(i);
  }
  const auto n = static_cast<double>(t.numel());
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n));
}

TEST(Random, IntegersStayInRangeAndReachItsEnds) {
  const Tensor t(DType::i32, {10000});
  fill_random(t, 1, 0, {-3, 4});
  std::int64_t low = 0, high = 0;
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    low = std::min(low, t.get_int(i));
    high = std::max(high, t.get_int(i));
  }
  EXPECT_EQ(low, -3);
  EXPECT_EQ(high, 4);
  EXPECT_THROW(fill_random(t, 1, 0, {2, 1}), Error);
  const Tensor coin(DType::boolean, {10000});
  fill_random(coin, 1, 0);
  double ones = 0;
  for (std::int64_t i = 0; i < coin.numel(); ++i) ones += coin.get(i);
  EXPECT_NEAR(ones, 5000, 250);
}

}  // namespace
}  // namespace fuselab
