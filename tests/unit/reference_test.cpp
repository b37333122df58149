// The fp64 interpreter, its bounds and undecided marks. Expected values are PyTorch's, hand calculations or exact arithmetic.
#include "fuselab/reference/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fuselab/core/error.h"
#include "fuselab/graph/text.h"

namespace fuselab::reference {
namespace {

const double kNaN = std::nan("");

std::vector<Output> run(const std::string& text, const std::vector<Tensor>& inputs, Options options = {}) {
  return fp64_reference(parse_graph(text), inputs, options);
}
Tensor of(DType t, std::vector<std::int64_t> sizes, std::vector<double> values) {
  return Tensor::of(t, std::move(sizes), values);
}
Tensor normals(DType t, std::vector<std::int64_t> sizes, unsigned seed = 1) {
  Tensor x(t, std::move(sizes));
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, normal(engine));
  return x;
}

TEST(Reference, ExactOperatorsHaveNoBound) {
  const auto out = run("graph g(x: f32[3], y: f32[3]) {\n  a = maximum(x, y)\n  b = neg(a)\n  return b\n}",
                       {of(DType::f32, {3}, {1, -2, 3}), of(DType::f32, {3}, {0, 5, 3})});
  EXPECT_EQ(out[0].value, (std::vector<double>{-1, -5, -3}));
  EXPECT_EQ(out[0].bound, (std::vector<double>{0, 0, 0}));
}

TEST(Reference, OneRoundingIsAtMostHalfAnUlp) {
  const auto out = run("graph g(x: f32[2]) {\n  y = mul(x, 0.7)\n  return y\n}", {of(DType::f32, {2}, {1.1, 3.0})});
  const double c = 0.7f;
  EXPECT_EQ(out[0].value[0], static_cast<double>(1.1f) * c);  // 24 + 24 bits fit a double
  for (int i = 0; i < 2; ++i)
    EXPECT_LE(out[0].bound[static_cast<std::size_t>(i)], 0.5 * ulp_of(DType::f32, out[0].value[static_cast<std::size_t>(i)]));
}

TEST(Reference, BlockRoundsOnceEagerAtEachOperator) {
  // f16: 2048 + 1 rounds to 2048 (tie to even); minus 2048 is 0 in eager, 1 in a fused block.
  const std::string text = "graph g(x: f16[1]) {\n  a = add(x, 1)\n  b = sub(a, x)\n  return b\n}";
  const Tensor x = of(DType::f16, {1}, {2048});
  Options eager_options, any_options;
  eager_options.rounding = Rounding::eager;
  any_options.any_borders = true;
  const auto block = run(text, {x});
  EXPECT_EQ(block[0].value[0], 1);
  EXPECT_EQ(block[0].bound[0], 0);
  const auto eager = run(text, {x}, eager_options);
  EXPECT_EQ(eager[0].value[0], 1);
  EXPECT_EQ(eager[0].bound[0], 1);
  EXPECT_EQ(rounded(parse_graph(text), {x})[0].get(0), 0);
  const auto any = run(text, {x}, any_options);
  EXPECT_EQ(any[0].bound[0], 1);
}

TEST(Reference, UserCastRounds) {
  const auto out = run("graph g(x: f32[2]) {\n  a = cast(x, dtype=bf16)\n  b = cast(a, dtype=f32)\n  return b\n}",
                       {of(DType::f32, {2}, {1 + 0x1p-9, 3.14159})});
  EXPECT_EQ(out[0].value, (std::vector<double>{1, 3.140625}));
  EXPECT_EQ(out[0].bound, (std::vector<double>{0, 0}));
}

TEST(Reference, ComparisonsInsideTheBoundAreUndecided) {
  // exp(0) is 1 up to an ULP: whether it is above 1 is open; exp(1) > 1 is not.
  const auto out = run("graph g(x: f32[2]) {\n  e = exp(x)\n  c = gt(e, 1.0)\n  return c\n}", {of(DType::f32, {2}, {1e-8, 1})});
  EXPECT_EQ(out[0].undecided, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(out[0].ints[1], 1);
}

TEST(Reference, UndecidedGoesThroughSelectsThatJump) {
  const auto out =
      run("graph g(x: f32[2]) {\n  e = exp(x)\n  c = gt(e, 1.0)\n  a = where(c, e, 100.0)\n  b = where(c, 5.0, 5.0)\n  return a, "
          "b\n}",
          {of(DType::f32, {2}, {1e-8, 1})});
  EXPECT_EQ(out[0].undecided, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(out[1].undecided, (std::vector<std::uint8_t>{0, 0}));
}

TEST(Reference, LowPrecisionDecisionsAreMadeOnRoundedValues) {
  // bugs.md (Inductor 1): x * 0.3 in f16 equals its own maximum where it is the maximum. R3, R4.
  const auto out =
      run("graph g(x: f16[1, 4]) {\n  a = mul(x, 0.3)\n  m = amax(a, dims=[1], keepdim=true)\n  e = eq(a, m)\n  return e\n}",
          {of(DType::f16, {1, 4}, {0.5, 2, 1, -1})});
  EXPECT_EQ(out[0].ints, (std::vector<std::int64_t>{0, 1, 0, 0}));
  EXPECT_EQ(out[0].undecided, (std::vector<std::uint8_t>{0, 0, 0, 0}));
}

TEST(Reference, SumOfOnesIsExact) {
  const Tensor ones = of(DType::f32, {1 << 12}, std::vector<double>(1 << 12, 1.0));
  const auto out = run("graph g(x: f32[4096]) {\n  s = sum(x)\n  return s\n}", {ones});
  EXPECT_EQ(out[0].value[0], 4096);
  EXPECT_EQ(out[0].bound[0], 0);
}

TEST(Reference, Softmax) {
  // PyTorch float64: softmax([1, 2, 3]).
  const auto out = run("graph g(x: f32[3]) {\n  y = softmax(x, dim=0)\n  return y\n}", {of(DType::f32, {3}, {1, 2, 3})});
  EXPECT_NEAR(out[0].value[0], 0.09003057317038046, 1e-16);
  EXPECT_NEAR(out[0].value[1], 0.24472847105479767, 1e-16);
  EXPECT_NEAR(out[0].value[2], 0.6652409557748219, 1e-15);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GT(out[0].bound[i], 0.5 * ulp_of(DType::f32, out[0].value[i]));
    EXPECT_LT(out[0].bound[i], 10 * ulp_of(DType::f32, out[0].value[i]));
  }
}

TEST(Reference, SoftmaxOfMinusInfinityIsNaN) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto out =
      run("graph g(x: f32[2, 2]) {\n  y = softmax(x, dim=1)\n  return y\n}", {of(DType::f32, {2, 2}, {-inf, -inf, 0, -inf})});
  EXPECT_TRUE(std::isnan(out[0].value[0]));
  EXPECT_EQ(out[0].value[2], 1);
  EXPECT_EQ(out[0].value[3], 0);
  EXPECT_EQ(out[0].undecided, (std::vector<std::uint8_t>{0, 0, 0, 0}));
}

TEST(Reference, VarianceMeanOfRows) {
  // var([1, 2, 3, 4]) = 5/3, mean 2.5; of one element NaN.
  const auto out =
      run("graph g(x: f32[1, 4]) {\n  v, m = var_mean(x, dims=[1])\n  return v, m\n}", {of(DType::f32, {1, 4}, {1, 2, 3, 4})});
  EXPECT_NEAR(out[0].value[0], 5.0 / 3, 1e-15);
  EXPECT_EQ(out[1].value[0], 2.5);
  const auto one = run("graph g(x: f32[1]) {\n  v = var(x)\n  return v\n}", {of(DType::f32, {1}, {3})});
  EXPECT_TRUE(std::isnan(one[0].value[0]));
}

TEST(Reference, ArgmaxTiesAndUndecided) {
  const auto out = run("graph g(x: f32[4]) {\n  i = argmax(x)\n  return i\n}", {of(DType::f32, {4}, {1, 7, 7, 2})});
  EXPECT_EQ(out[0].ints[0], 1);
  EXPECT_EQ(out[0].undecided[0], 0);
  const auto nan = run("graph g(x: f32[3]) {\n  i = argmax(x)\n  return i\n}", {of(DType::f32, {3}, {1, kNaN, kNaN})});
  EXPECT_EQ(nan[0].ints[0], 1);
  const auto open =
      run("graph g(x: f32[3]) {\n  e = exp(x)\n  i = argmax(e)\n  return i\n}", {of(DType::f32, {3}, {1, 1 + 0x1p-23, 0})});
  EXPECT_EQ(open[0].undecided[0], 1);
}

TEST(Reference, ViewsOnLogicalIndices) {
  const Tensor x = of(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor columns = Tensor::view_of(DType::f32, {3, 2}, {1, 3}, x.data(), x.storage());
  EXPECT_EQ(run("graph g(x: f32[3, 2]{1, 3}) {\n  y = reshape(x, shape=[6])\n  return y\n}", {columns})[0].value,
            (std::vector<double>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(run("graph g(x: f32[2, 3]) {\n  y = permute(x, dims=[1, 0])\n  return y\n}", {x})[0].value,
            (std::vector<double>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(run("graph g(x: f32[2, 3]) {\n  y = slice(x, dim=1, start=0, end=3, step=2)\n  return y\n}", {x})[0].value,
            (std::vector<double>{1, 3, 4, 6}));
  EXPECT_EQ(run("graph g(x: f32[2, 3]) {\n  y = select(x, dim=0, index=-1)\n  return y\n}", {x})[0].value,
            (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(run("graph g(x: f32[2, 3]) {\n  a = unsqueeze(x, dim=0)\n  y = expand(a, shape=[2, 2, 3])\n  return y\n}", {x})[0]
                .value.size(),
            12u);
}

TEST(Reference, BroadcastAndSymbolicSizes) {
  const auto out = run("graph g(x: f32[B, 3], w: f32[3]) {\n  y = add(x, w)\n  s = sum(y, dims=[0])\n  return s\n}",
                       {of(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}), of(DType::f32, {3}, {10, 20, 30})});
  EXPECT_EQ(out[0].value, (std::vector<double>{25, 47, 69}));
}

TEST(Reference, IntegersAreExactAndWrap) {
  const auto out =
      run("graph g(x: i8[1], y: i8[1]) {\n  z = add(x, y)\n  return z\n}", {of(DType::i8, {1}, {100}), of(DType::i8, {1}, {50})});
  EXPECT_EQ(out[0].ints[0], -106);  // bugs.md 3
  const auto floor = run("graph g(x: i32[4], y: i32[4]) {\n  z = div_floor(x, y)\n  return z\n}",
                         {of(DType::i32, {4}, {7, -7, 7, -7}), of(DType::i32, {4}, {2, 2, -2, -2})});
  EXPECT_EQ(floor[0].ints, (std::vector<std::int64_t>{3, -4, -4, 3}));  // bugs.md 9
  EXPECT_THROW(run("graph g(x: i32[1], y: i32[1]) {\n  z = div_floor(x, y)\n  return z\n}",
                   {of(DType::i32, {1}, {1}), of(DType::i32, {1}, {0})}),
               Error);
}

TEST(Reference, SpreadOfEqualValuesIsZeroNotUndecided) {
  const auto out = run("graph g(x: f32[3], m: f32[]) {\n  s = std(x, correction=0)\n  y = gelu_backward(m, s)\n  return s, y\n}",
                       {of(DType::f32, {3}, {3, 3, 3}), of(DType::f32, {}, {0})});
  EXPECT_EQ(out[0].value[0], 0);
  EXPECT_EQ(out[0].undecided[0], 0);
  EXPECT_EQ(out[1].value[0], 0);
  EXPECT_EQ(out[1].bound[0], 0);
}

TEST(Reference, CancelledZeroMayHaveEitherSign) {
  const auto out = run("graph g(x: f32[4]) {\n  s = mean(x)\n  y = reciprocal(s)\n  return y\n}",
                       {of(DType::f32, {4}, {1.5, -1.5, 2.25, -2.25})});
  EXPECT_EQ(out[0].undecided[0], 1);
}

TEST(Reference, LayerNormWithWeights) {
  // PyTorch float64: layer_norm([1,2,3,4], weight [1,2,3,4], bias 1).
  const auto out = run(
      "graph g(x: f32[1, 4], w: f32[4], b: f32[4]) {\n  y = layer_norm(x, w, b, normalized_shape=[4], eps=0.0)\n  return y\n}",
      {of(DType::f32, {1, 4}, {1, 2, 3, 4}), of(DType::f32, {4}, {1, 2, 3, 4}), of(DType::f32, {4}, {1, 1, 1, 1})});
  const double s = 1 / std::sqrt(1.25);
  EXPECT_NEAR(out[0].value[0], 1 - 1.5 * s, 1e-15);
  EXPECT_NEAR(out[0].value[3], 1 + 4 * 1.5 * s, 1e-15);
}

TEST(Reference, OverflowOfTheComputeTypeIsTheReference) {
  const auto out = run("graph g(x: f32[1]) {\n  e = exp(x)\n  y = reciprocal(e)\n  return y\n}", {of(DType::f32, {1}, {200})});
  EXPECT_EQ(out[0].value[0], 0);
  EXPECT_EQ(out[0].undecided[0], 0);
}

TEST(Reference, WrongCallsAreErrors) {
  const std::string text = "graph g(x: f32[B, 3], y: f32[B, 3]) {\n  z = add(x, y)\n  return z\n}";
  const auto code = [&](const std::vector<Tensor>& inputs) -> std::string {
    try {
      run(text, inputs);
    } catch (const Error& e) {
      return e.code();
    }
    return "none";
  };
  const Tensor good(DType::f32, {2, 3});
  EXPECT_EQ(code({good}), "call.arity");
  EXPECT_EQ(code({good, Tensor(DType::f16, {2, 3})}), "call.dtype");
  EXPECT_EQ(code({good, Tensor(DType::f32, {4, 3})}), "call.shape");
  EXPECT_EQ(code({good, Tensor(DType::f32, {6})}), "call.shape");
}

TEST(Reference, MillionElements) {
  const auto out =
      run("graph g(x: f16[1024, 1024], w: f16[1024]) {\n  n = layer_norm(x, w, none, normalized_shape=[1024])\n  y = gelu(n)\n  "
          "z = mul(y, x)\n"
          "  return z\n}",
          {normals(DType::f16, {1024, 1024}), normals(DType::f16, {1024}, 2)});
  EXPECT_EQ(out[0].value.size(), 1u << 20);
  for (std::size_t i = 0; i < out[0].value.size(); ++i) {
    ASSERT_LE(out[0].bound[i], 0.6 * ulp_of(DType::f16, out[0].value[i]) + 1e-5) << i;
  }
}

}  // namespace
}  // namespace fuselab::reference
