#include "fuselab/core/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fuselab/core/error.h"
#include "fuselab/core/float16.h"

namespace fuselab {
namespace {

// Values from IEEE 754 binary16 and bfloat16 by hand.
TEST(Float16, NarrowsWithOneRounding) {
  EXPECT_EQ(to_f16(1.0), 0x3c00);
  EXPECT_EQ(to_f16(-0.0), 0x8000);
  EXPECT_EQ(to_f16(65504.0), 0x7bff);
  EXPECT_EQ(to_f16(65519.999), 0x7bff);
  EXPECT_EQ(to_f16(65520.0), 0x7c00);  // tie goes to even, which is infinity
  EXPECT_EQ(to_f16(0x1p-24), 0x0001);
  EXPECT_EQ(to_f16(0x1p-25), 0x0000);  // tie to even zero
  EXPECT_EQ(to_f16(0x1.8p-25), 0x0001);
  EXPECT_EQ(to_f16(0x1.00000001p-25), 0x0001);
  EXPECT_EQ(to_f16(0x1.ffep-15), 0x03ff + 1);  // rounds up into the smallest normal
  EXPECT_EQ(to_f16(4449.0), to_f16(4448.0));   // bugs.md 40
  // Double rounding through f32 would give 0x3c01: 1 + 2^-11 + 2^-40 is above the tie.
  EXPECT_EQ(to_f16(1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
  EXPECT_EQ(to_f16(1.0 + 0x1p-11), 0x3c00);
  EXPECT_EQ(to_bf16(1.0 + 0x1p-8), 0x3f80);
  EXPECT_EQ(to_bf16(1.0 + 0x1p-8 + 0x1p-40), 0x3f81);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(to_bf16(0x1p-133), 0x0001);
  EXPECT_EQ(to_f16(std::numeric_limits<double>::infinity()), 0x7c00);
  EXPECT_EQ(to_f16(std::numeric_limits<double>::quiet_NaN()) & 0x7e00, 0x7e00);
}

TEST(Float16, EveryPatternRoundTrips) {
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const bool quiet_f16 = (bits & 0x7c00) != 0x7c00 || (bits & 0x3ff) == 0 || (bits & 0x200);
    if (quiet_f16) {
      EXPECT_EQ(to_f16(from_f16(bits)), bits);
    }
    const bool quiet_bf16 = (bits & 0x7f80) != 0x7f80 || (bits & 0x7f) == 0 || (bits & 0x40);
    if (quiet_bf16) {
      EXPECT_EQ(to_bf16(from_bf16(bits)), bits);
    }
#ifdef __FLT16_MANT_DIG__
    if (!std::isnan(from_f16(bits))) {
      EXPECT_EQ(from_f16(bits), static_cast<float>(std::bit_cast<_Float16>(bits)));
    }
#endif
  }
}

TEST(Tensor, StridesAndSharing) {
  Tensor t = Tensor::of(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_TRUE(t.contiguous());
  const Tensor transposed = Tensor::view_of(DType::f32, {3, 2}, {1, 3}, t.data(), t.storage());
  EXPECT_FALSE(transposed.contiguous());
  EXPECT_EQ(transposed.doubles(), (std::vector<double>{1, 4, 2, 5, 3, 6}));
  t.set(1, 20);
  EXPECT_EQ(transposed.get(2), 20);
  EXPECT_EQ(transposed.contiguous_copy().strides(), (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(transposed.clone().strides(), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(transposed.clone().doubles(), transposed.doubles());
}

TEST(Tensor, IntegersWrapAndTruncate) {
  EXPECT_EQ(wrap(DType::i8, 150), -106);
  EXPECT_EQ(wrap(DType::u8, 300), 44);
  EXPECT_EQ(truncate_to_int(-2.9), -2);
  EXPECT_EQ(truncate_to_int(NAN), INT64_MIN);
  Tensor t(DType::i64, {1});
  t.set_int(0, (std::int64_t{1} << 53) + 1);
  EXPECT_EQ(t.get_int(0), (std::int64_t{1} << 53) + 1);
}

TEST(Tensor, BadSizesAreErrors) {
  EXPECT_THROW(Tensor(DType::f32, {-1}), Error);
  EXPECT_THROW(Tensor(DType::f32, {std::int64_t{1} << 40, std::int64_t{1} << 40}), Error);
  EXPECT_THROW(Tensor::of(DType::f32, {2}, {1}), Error);
  EXPECT_EQ(Tensor(DType::f32, {0, 5}).numel(), 0);
  EXPECT_EQ(Tensor(DType::f32, {}).numel(), 1);
}

}  // namespace
}  // namespace fuselab
