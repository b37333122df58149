// Random graphs (tests/fuzz) as a test, and the small graphs that fuzzing once reduced a failure to: each of them failed before
// the cause was removed. What must hold is in tests/fuzz/check.h; expected values are those of the fp64 interpreter with its
// bounds.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "check.h"
#include "fuselab/core/error.h"
#include "fuselab/graph/text.h"
#include "fuselab/reference/reference.h"
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
    {"NanThroughClamp", 368, {{"C", 0}}, R"(
graph g(in8: f16[1], in9: f16[2], v6: f16[1, 2, C], v11: f16[2]) {
  a = all(v6, dims=[1, 2])
  deviation, mean = std_mean(in8, keepdim=true)
  b = log_sigmoid_backward(in9, a)
  c = clamp(b, deviation, v11)
  d = remainder(c, 0.5)
  return d
})"},
    {"ProductThatOverflowsBeforeAZero", 323, {{"D", 1}}, R"(
graph g(in1: f32[1, 16, 16, D]) {
  a = log_softmax(in1, dim=1)
  b = ceil(a)
  c = prod(b)
  d, at = max_dim(c, dim=0)
  return d
})"},
    {"ErfcInDouble", 464, {}, R"(
graph g(in16: f64[16, 16]) {
  y = erfc(in16)
  return y
})"},
    {"GroupStatisticsWithoutPositions", 51, {{"A", 1}}, R"(
graph g(in26: bf16[A, 16], in27: bf16[A, 2], in28: bf16[A, 2], v21: bf16[A, 16]) {
  y = group_norm_backward_input(v21, in26, in27, in28, num_groups=2)
  return y
})"},
    // A tensor made from nothing holds values of its dtype, inside a block too.
    {"ConstantOfABlock", 20419, {{"A", 1}}, R"(
graph g(in10: f32[1], in11: f32[1], v7: f32[A, 1]) {
  c = full(dtype=bf16, shape=[A, 1], value=0.1)
  y = batch_norm_backward_weight(v7, c, in10, in11)
  return y
})"},
    // Views that no addressing can say together.
    {"SliceOfAReshape", 20406, {{"A", 2}, {"B", 3}}, R"(
graph g(in1: f32[A, B, 1]) {
  a = reshape(in1, shape=[A*B, 1])
  b = slice(a, start=-3)
  y = tan(b)
  return y
})"},
    {"ReshapeOfNothing", 20292, {}, R"(
graph g(v6: f64[1, 0, 1]) {
  a = reshape(v6, shape=[1, 1, 0, 1])
  b = prod(a, dims=[1, 2, 3])
  y = isinf(b)
  return y
})"},
    // A slice that starts before the beginning.
    {"SliceOfAShortDimension", 1, {{"A", 2}}, R"(
graph g(x: f32[A]) {
  a = slice(x, start=-3)
  y = tan(a)
  return y
})"},
    // The bound: alpha * other is not rounded, neither by eager nor here.
    {"AlphaTimesOther", 20391, {{"A", 1}, {"D", 7}}, R"(
graph g(in0: f64[A, 1, 7, D], in1: i16[A, 1, 7, D]{14*max(1, D), 14*max(1, D), 2*max(1, D), 2}) {
  y = sub(in1, in0, alpha=-1.5)
  return y
})"},
    // The bound: an overflow that only one end of the interval shows.
    {"PerhapsInfinite", 20102, {}, R"(
graph g(in36: f32[1, 1, 1, 1, 1], in37: f32[1, 1, 1, 1, 1], v4: bool[1, 1, 1, 1]) {
  a = acos(v4)
  b = tan(a)
  c = expand(b, shape=[1, 1, 1, 1, 1])
  d = expm1(c)
  y = rms_norm_backward_weight(d, in36, in37, normalized_shape=[1, 1, 1, 1])
  return y
})"},
    // The bound: a branch between two thresholds, both ends of the interval outside of it.
    {"BranchInsideTheInterval", 20385, {{"A", 0}, {"C", 1}}, R"(
graph g(A: size, in28: f32[C, 1], v2: i64[1, 1, C, 1], v39: f32[1, 1, 1, 1]) {
  a = sin(v2)
  b = expand(a, shape=[3, 1, C, 7])
  c = argmin(b)
  d = logaddexp(c, a)
  e = cosh(d)
  f = hardsigmoid_backward(in28, e)
  y = logical_xor(f, v39)
  return y
})"},
    // The bound: a remainder that may be on either side of its jump.
    {"RemainderOfATinyDivisor", 30092, {{"A", 1000}}, R"(
graph g(in28: f32[1], in29: f32[1], in30: f32[A], v3: bool[A], v5: i32[A], v14: i32[], v22: f32[A]) {
  v16 = logsumexp(v14)
  v20 = tan(v5)
  v31 = layer_norm_backward_input(v20, v22, in28, in29, in30, normalized_shape=[A])
  v37 = silu_backward(v31, v3)
  v38 = square(v37)
  v39, v40 = native_rms_norm(v38, normalized_shape=[A])
  v44 = remainder(v16, v39)
  return v44
})"},
    // The bound: infinity times a derivative that vanishes in f32.
    {"InfinityTimesWhatVanishes", 31245, {{"C", 2}}, R"(
graph g(in0: u8[16, 1, C], v3: bool[16, 1, C]) {
  v7 = bitwise_right_shift(v3, 3)
  v8 = log10(v7)
  y = log_sigmoid_backward(v8, in0, v3)
  return y
})"},
    // The bound: an interval of many periods.
    {"ManyPeriods", 20502, {}, R"(
graph g(in0: f32[1000], in1: bool[1000]) {
  a = lerp(in0, in1, in0)
  b = log_softmax_backward(a, in0, dim=-1)
  c = square(b)
  y = cos(c)
  return y
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

// The f64 text of erfc at its least accurate place known; the value is mpmath's with 60 digits.
TEST(Bounds, ErfcOfF64HoldsTheKernel) {
  const Graph graph = parse_graph("graph g(x: f64[1]) {\n  y = erfc(x)\n  return y\n}");
  Tensor x(DType::f64, {1});
  x.set(0, 26.03165776503053);
  const reference::Output want = reference::fp64_reference(graph, {x}).at(0);
  EXPECT_EQ(want.value.at(0), 1.0893342098950916e-296);
  const double got = runtime::CompiledGraph(graph, {})({x}).at(0).get(0);
  EXPECT_LE(std::fabs(got - want.value.at(0)), want.bound.at(0));
  EXPECT_LE(want.bound.at(0), 8 * 0x1p-1036);  // 8 ULP
}

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

// PyTorch: x[-3:] of two elements are both.
TEST(SizesAtRunTime, SliceStartsNoEarlierThanTheFirst) {
  const char* const text = "graph g(x: f32[B]) {\n  y = slice(x, start=-3)\n  z = neg(y)\n  return z\n}";
  Tensor x(DType::f32, {2});
  x.set(0, 5);
  x.set(1, 7);
  const Tensor z = runtime::CompiledGraph(parse_graph(text), {})({x}).at(0);
  ASSERT_EQ(z.numel(), 2);
  EXPECT_EQ(z.get(0), -5);
  EXPECT_EQ(z.get(1), -7);
}

TEST(SizesAtRunTime, ExtremeOfNothingIsAnError) {
  const char* const batch =
      "graph g(x: f32[B, 3], m: f32[3], v: f32[3]) {\n  y, a, b, c, d = batch_norm_training(x, none, none, m, v)\n  return y, "
      "d\n}";
  const Tensor statistics(DType::f32, {3});
  EXPECT_EQ(error_code(batch, {Tensor(DType::f32, {0, 3}), statistics, statistics}), "call.empty_reduction");
  EXPECT_EQ(error_code(batch, {Tensor(DType::f32, {2, 3}), statistics, statistics}), "");
  for (const char* op : {"amax(x, dims=[0])", "amin(x)", "argmax(x, dims=[0])", "argmin(x)"}) {
    const std::string text = std::string("graph g(x: f32[B, 3]) {\n  y = ") + op + "\n  return y\n}";
    EXPECT_EQ(error_code(text, {Tensor(DType::f32, {0, 3})}), "call.empty_reduction") << op;
    EXPECT_EQ(error_code(text, {Tensor(DType::f32, {1, 3})}), "") << op;
  }
}

}  // namespace
}  // namespace fuselab::fuzz
