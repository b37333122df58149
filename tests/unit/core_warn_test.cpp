#include "fuselab/core/warn.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fuselab {
namespace {

TEST(Warn, GoesToTheHandlerAndOnceOnly) {
  std::vector<std::string> got;
  WarningHandler before =
      set_warning_handler([&](const std::string& code, const std::string& message) { got.push_back(code + ": " + message); });
  warn("test.a", "value {}", 3);
  warn_once_text("test.b", "k1", "first");
  warn_once_text("test.b", "k1", "again");
  warn_once_text("test.b", "k2", "other");
  set_warning_handler(before);
  warn("test.a", "after");
  EXPECT_EQ(got, (std::vector<std::string>{"test.a: value 3", "test.b: first", "test.b: other"}));
}

}  // namespace
}  // namespace fuselab
