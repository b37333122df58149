// Random graphs (tests/fuzz) as a test, and the small graphs that fuzzing once reduced a failure to: each of them failed before
// the cause was removed. What must hold is in tests/fuzz/check.h; expected values are those of the fp64 interpreter with its
// bounds.
#include <gtest/gtest.h>

#include <vector>

#include "check.h"
#include "fuselab/core/error.h"
#include "fuselab/graph/text.h"
#include "fuselab/runtime/compiled.h"

namespace fuselab::fuzz {
namespace {

struct Found {
  const char* name;
  std::uint64_t seed;  ///< of the data
  std::map<std::string, std::int64_t> symbols;
  const char* text;
};

const std::vector<Found> kFound = {
    {"ZeroOfEitherSign", 1, {}, R"(
graph g(in0: u8[1, 16, 2], in25: f32[1, 16, 2], v30: bool[1, 16, 2]) {
  a = log_softmax_backward(in0, in25, dim=0)
  b = div_trunc(v30, a)
  return b
})"},
    {"NanOrNumber", 87, {}, R"(
graph g(in0: i8[7, 1, 7], in1: f32[7, 1, 7]) {
  a = logaddexp(in0, in1)
  b = rsqrt(a)
  c = isnan(b)
  return c
})"},
};

class FoundGraph : public ::testing::TestWithParam<Found> {};

TEST_P(FoundGraph, Holds) {
  const Found& f = GetParam();
  EXPECT_EQ(check({parse_graph(f.text), f.symbols, f.seed}), "");
}

INSTANTIATE_TEST_SUITE_P(Fuzz, FoundGraph, ::testing::ValuesIn(kFound), [](const auto& info) { return info.param.name; });

/// 200 graphs in parts, so that a failure says which part to run again: fuselab_fuzz --seed S --count 1.
class RandomGraphs : public ::testing::TestWithParam<int> {};
constexpr int kParts = 10, kGraphsPerPart = 20;

TEST_P(RandomGraphs, Hold) {
  for (int i = 0; i < kGraphsPerPart; ++i) {
    const auto seed = static_cast<std::uint64_t>(1 + GetParam() * kGraphsPerPart + i);
    EXPECT_EQ(check(random_case(seed)), "") << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Fuzz, RandomGraphs, ::testing::Range(0, kParts));

std::string error_code(const std::string& text, const std::vector<Tensor>& inputs) {
  try {
    runtime::CompiledGraph(parse_graph(text), {})(inputs);
  } catch (const Error& e) {
    return e.code();
  }
  return "";
}

// PyTorch: "index 0 out of range", "Expected reduction dim 0 to have non-zero size".
TEST(SizesAtRunTime, SelectOutsideIsAnError) {
  const char* const first = "graph g(x: f32[B, 3]) {\n  y = select(x, dim=0, index=0)\n  return y\n}";
  const char* const second_last = "graph g(x: f32[B, 3]) {\n  y = select(x, dim=0, index=-2)\n  z = neg(y)\n  return z\n}";
  EXPECT_EQ(error_code(first, {Tensor(DType::f32, {0, 3})}), "call.shape");
  EXPECT_EQ(error_code(first, {Tensor(DType::f32, {1, 3})}), "");
  EXPECT_EQ(error_code(second_last, {Tensor(DType::f32, {1, 3})}), "call.shape");
  EXPECT_EQ(error_code(second_last, {Tensor(DType::f32, {2, 3})}), "");
}

TEST(SizesAtRunTime, ExtremeOfNothingIsAnError) {
  for (const char* op : {"amax(x, dims=[0])", "amin(x)", "argmax(x, dims=[0])", "argmin(x)"}) {
    const std::string text = std::string("graph g(x: f32[B, 3]) {\n  y = ") + op + "\n  return y\n}";
    EXPECT_EQ(error_code(text, {Tensor(DType::f32, {0, 3})}), "call.empty_reduction") << op;
    EXPECT_EQ(error_code(text, {Tensor(DType::f32, {1, 3})}), "") << op;
  }
}

}  // namespace
}  // namespace fuselab::fuzz
