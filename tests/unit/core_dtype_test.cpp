#include "fuselab/core/dtype.h"

#include <gtest/gtest.h>

#include <string>

#include "fuselab/core/error.h"

namespace fuselab {
namespace {

// python -c "import torch; T=[torch.float16,torch.bfloat16,torch.float32,torch.float64,torch.int8,torch.uint8,torch.int16,
// torch.int32,torch.int64,torch.bool]; [print(*(T.index(torch.promote_types(a,b)) for b in T)) for a in T]"
constexpr int kTorch[10][10] = {{0, 2, 2, 3, 0, 0, 0, 0, 0, 0}, {2, 1, 2, 3, 1, 1, 1, 1, 1, 1}, {2, 2, 2, 3, 2, 2, 2, 2, 2, 2},
                                {3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, {0, 1, 2, 3, 4, 6, 6, 7, 8, 4}, {0, 1, 2, 3, 6, 5, 6, 7, 8, 5},
                                {0, 1, 2, 3, 6, 6, 6, 7, 8, 6}, {0, 1, 2, 3, 7, 7, 7, 7, 8, 7}, {0, 1, 2, 3, 8, 8, 8, 8, 8, 8},
                                {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}};

TEST(DType, PromotesAsTorch) {
  for (int a = 0; a < 10; ++a) {
    for (int b = 0; b < 10; ++b) {
      EXPECT_EQ(static_cast<int>(promote(static_cast<DType>(a), static_cast<DType>(b))), kTorch[a][b]) << a << " with " << b;
    }
  }
}

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < kDTypeCount; ++i) EXPECT_EQ(parse_dtype(name(static_cast<DType>(i))), static_cast<DType>(i));
  EXPECT_EQ(name(DType::boolean), "bool");
}

TEST(DType, UnknownNameListsWhatExists) {
  try {
    parse_dtype("f8");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "dtype.unknown");
    EXPECT_NE(std::string(e.what()).find("bf16"), std::string::npos);
  }
}

}  // namespace
}  // namespace fuselab
