#include "fuselab/numerics/ulp.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fuselab/core/error.h"

namespace fuselab::numerics {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

// Counted by hand on the formats' grids.
TEST(UlpDiff, CountsRepresentableValues) {
  EXPECT_EQ(ulp_diff(DType::f32, 1.0, 1.0 + 0x1p-23), 1u);
  EXPECT_EQ(ulp_diff(DType::f32, 1.0, 1.0 - 0x1p-24), 1u);
  EXPECT_EQ(ulp_diff(DType::f16, 1.0, 2.0), 1024u);
  EXPECT_EQ(ulp_diff(DType::bf16, 1.0, 2.0), 128u);
  EXPECT_EQ(ulp_diff(DType::f64, 1.0, 1.0 + 0x1p-52), 1u);
  EXPECT_EQ(ulp_diff(DType::f16, 65504.0, kInf), 1u);
  EXPECT_EQ(ulp_diff(DType::f64, kInf, -kInf), 2u * 0x7ff0000000000000u);
}

TEST(UlpDiff, SubnormalsAndZeros) {
  EXPECT_EQ(ulp_diff(DType::f16, 0x1p-24, 0.0), 1u);
  EXPECT_EQ(ulp_diff(DType::f16, 0x1p-24, -0x1p-24), 2u);
  EXPECT_EQ(ulp_diff(DType::f32, 0x1p-149, -0.0), 1u);
  EXPECT_EQ(ulp_diff(DType::f32, 0.0, -0.0), 0u);
  EXPECT_EQ(ulp_diff(DType::f32, 0.0, -0.0, {.signed_zero = true}), 1u);
  EXPECT_EQ(ulp_diff(DType::f32, 0x1p-149, -0x1p-149, {.signed_zero = true}), 3u);
}

TEST(UlpDiff, NaN) {
  EXPECT_EQ(ulp_diff(DType::f32, kNaN, -kNaN), 0u);
  EXPECT_EQ(ulp_diff(DType::f32, kNaN, kNaN, {.nan_equal = false}), kUlpApart);
  EXPECT_EQ(ulp_diff(DType::f32, kNaN, 1.0), kUlpApart);
}

TEST(UlpDiff, TensorsMustMatch) {
  const Tensor a = Tensor::of(DType::f16, {2}, {1, 2}), b = Tensor::of(DType::f16, {2}, {1, 2.001953125});
  EXPECT_EQ(ulp_diff(a, b), (std::vector<std::uint64_t>{0, 1}));
  EXPECT_THROW(ulp_diff(a, Tensor::of(DType::f32, {2}, {1, 2})), Error);
  EXPECT_THROW(ulp_diff(a, Tensor::of(DType::f16, {1}, {1})), Error);
  EXPECT_THROW(ulp_diff(Tensor(DType::i32, {1}), Tensor(DType::i32, {1})), Error);
}

TEST(BitEqual, SeesSignsPayloadsAndLayout) {
  const Tensor a = Tensor::of(DType::f32, {2, 2}, {1, 2, 3, 4});
  Tensor b = Tensor::strided(DType::f32, {2, 2}, {1, 2});
  b.copy_bits_from(a);
  EXPECT_TRUE(bit_equal(a, b));
  b.set(3, std::nextafterf(4, 5));
  EXPECT_FALSE(bit_equal(a, b));
  EXPECT_FALSE(bit_equal(Tensor::of(DType::f32, {1}, {0.0}), Tensor::of(DType::f32, {1}, {-0.0})));
  EXPECT_FALSE(bit_equal(Tensor(DType::f32, {1}), Tensor(DType::i32, {1})));
  EXPECT_TRUE(bit_equal(Tensor(DType::f32, {0}), Tensor(DType::f32, {0})));
}

TEST(ErrorStats, MaxMeanPercentilesWorst) {
  // 100 elements, errors 0, 1, ..., 99 ULP of f32 at 1.0.
  Tensor actual(DType::f32, {10, 10});
  std::vector<double> reference(100, 1.0);
  for (int i = 0; i < 100; ++i) actual.set(i, 1.0 + (99 - i) * 0x1p-23);
  const ErrorStats s = error_stats(actual, reference);
  EXPECT_EQ(s.count, 100);
  EXPECT_EQ(s.ulp.max, 99);
  EXPECT_EQ(s.ulp.p50, 49);  // nearest rank: the 50th of 0..99
  EXPECT_EQ(s.ulp.p99, 98);
  EXPECT_DOUBLE_EQ(s.ulp.mean, 49.5);
  EXPECT_EQ(s.absolute.max, 99 * 0x1p-23);
  EXPECT_EQ(s.relative.max, 99 * 0x1p-23);
  EXPECT_EQ(s.worst, 0);
}

TEST(ErrorStats, FractionsOfAnUlpAndNonFinite) {
  const Tensor actual = Tensor::of(DType::f16, {5}, {1.0, kNaN, kInf, kInf, kNaN});
  const std::vector<double> reference{1.0 + 0x1p-12, kNaN, 1e6, 5.0, 1.0};
  const std::vector<std::uint8_t> skip{0, 0, 0, 1, 1};
  const ErrorStats skipped = error_stats(actual, reference, skip);
  EXPECT_EQ(skipped.ulp.max, 0.25);
  EXPECT_EQ(skipped.aligned_nonfinite, 2);  // 1e6 is past f16's range: infinity is right
  EXPECT_EQ(skipped.misaligned, 0);
  const ErrorStats all = error_stats(actual, reference);
  EXPECT_EQ(all.misaligned, 2);
  EXPECT_EQ(all.ulp.max, kInf);
  EXPECT_EQ(all.worst, 3);
}

}  // namespace
}  // namespace fuselab::numerics
