#include "fuselab/core/version.h"

#include <gtest/gtest.h>

TEST(Version, HasThreeParts) {
  EXPECT_EQ(std::string(fuselab::version()).find_first_not_of("0123456789."), std::string::npos);
  EXPECT_TRUE(fuselab::llvm_version().starts_with("19."));
}
