// Metric tests from hand-made cases, and that each case the CANN metrics are blind to fails the verdict.
#include "fuselab/numerics/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace fuselab::numerics {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

Tensor f32(std::vector<double> values) {
  const auto n = static_cast<std::int64_t>(values.size());
  return Tensor::of(DType::f32, {n}, values);
}

std::vector<double> normals(int n, unsigned seed = 1) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> v(static_cast<std::size_t>(n));
  for (double& e : v) e = static_cast<float>(normal(engine));
  return v;
}

// Half an ULP of f32 around each value: what a correctly rounded result has.
reference::Output reference_of(const std::vector<double>& values, DType t = DType::f32) {
  reference::Output r;
  r.name = "y";
  r.dtype = t;
  r.sizes = {static_cast<std::int64_t>(values.size())};
  r.value = values;
  for (const double v : values) r.bound.push_back(is_float(t) ? 0.5 * ulp_of(t, v) : 0);
  if (!is_float(t)) {
    for (const double v : values) r.ints.push_back(static_cast<std::int64_t>(v));
  }
  r.undecided.assign(values.size(), 0);
  return r;
}

TEST(Metrics, ByHand) {
  // x = (3, 4), y = (4, 3): cosine 24/25, RelEuclid sqrt(2)/5, MAE = RMSE = 1.
  const CannResult r = cann_metrics(f32({3, 4}), f32({4, 3}));
  EXPECT_NEAR(r.metrics.cosine, 0.96, 1e-12);
  EXPECT_NEAR(r.metrics.rel_euclid, std::sqrt(2.0) / 5, 1e-12);
  EXPECT_NEAR(r.metrics.mae, 1, 1e-12);
  EXPECT_NEAR(r.metrics.rmse, 1, 1e-12);
  EXPECT_FALSE(r.passed);
}

TEST(Metrics, RelEuclidDividesByActual) {
  // Expected 1, actual 2: sqrt(1/4), not sqrt(1/1).
  EXPECT_NEAR(cann_metrics(f32({1, 1}), f32({2, 2})).metrics.rel_euclid, 0.5, 1e-12);
}

TEST(Metrics, KLDivByHand) {
  // min-max of x (0, 1, 2): (eps, .5, 1); of y (0, .5, 2): (eps, .25, 1).
  const double e = std::numeric_limits<float>::epsilon(), sp = e + 1.5, sq = e + 1.25;
  const double want = e / sp * std::log(sq / sp) + 0.5 / sp * std::log((0.5 / sp) / (0.25 / sq)) + 1 / sp * std::log(sq / sp);
  EXPECT_NEAR(cann_metrics(f32({0, 1, 2}), f32({0, 0.5, 2})).metrics.kl_div, want, 1e-12);
}

TEST(Metrics, ThresholdsAreStrict) {
  // cosine of (1, 0) with (0.99, sqrt(1 - 0.99^2)) is 0.99, which is not above 0.99.
  const std::vector<double> x{1, 0}, y{0.99, std::sqrt(1 - 0.99 * 0.99)};
  const CannResult r = cann_metrics(x, y, DType::f64, DType::f64);
  EXPECT_NEAR(r.metrics.cosine, 0.99, 1e-15);
  EXPECT_FALSE(r.passed);
}

TEST(Metrics, Zeros) {
  EXPECT_TRUE(cann_metrics(f32({0, 0}), f32({0, 0})).passed);
  EXPECT_TRUE(cann_metrics(f32({0, 0}), f32({-0.0, 0})).passed);
  const CannResult unwritten = cann_metrics(f32({1, 2}), f32({0, 0}));
  EXPECT_FALSE(unwritten.passed);
  EXPECT_NE(unwritten.reason.find("unwritten"), std::string::npos);
  EXPECT_FALSE(cann_metrics(f32({0, 0}), f32({1e-30, 0})).passed);
}

TEST(Metrics, SignFlipAtTinyValuesFails) {
  EXPECT_FALSE(cann_metrics(f32({1e-9, -1e-9, 2e-9}), f32({-1e-9, 1e-9, -2e-9})).passed);
}
TEST(Metrics, TinyAndHugeEqualValuesPass) {
  EXPECT_TRUE(cann_metrics(f32({1e-38, 2e-38}), f32({1e-38, 2e-38})).passed);
  EXPECT_TRUE(cann_metrics(Tensor::of(DType::f64, {2}, {1e300, 2e300}), Tensor::of(DType::f64, {2}, {1e300, 2e300})).passed);
}

TEST(Metrics, OneUlpNoiseAroundOnePasses) {
  std::vector<double> x(1000, 1.0), y(1000, 1.0);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += (static_cast<int>(i * 7 % 3) - 1) * 0x1p-23;
  const CannResult r = cann_metrics(f32(x), f32(y));
  EXPECT_TRUE(r.passed) << r.reason;
  EXPECT_EQ(r.metrics.kl_div, 0);
}

TEST(Metrics, AlignedNonFiniteIsLeftOutWithNote) {
  const CannResult r = cann_metrics(f32({1, kNaN, 3, kInf, -kInf, 4, 5, 6, 7}), f32({1, kNaN, 3, kInf, -kInf, 4, 5, 6, 7}));
  EXPECT_TRUE(r.passed);
  EXPECT_EQ(r.removed, 3);
  ASSERT_EQ(r.notes.size(), 1u);
  EXPECT_TRUE(r.warnings.empty());
}

TEST(Metrics, MisalignedNonFiniteFails) {
  EXPECT_EQ(cann_metrics(f32({1, 2, kInf}), f32({1, 2, -kInf})).first_difference, 2);
  EXPECT_EQ(cann_metrics(f32({1, kNaN, 2}), f32({1, 7, 2})).first_difference, 1);  // bugs.md 34: a NaN reference and a number
  EXPECT_FALSE(cann_metrics(f32({1, 7, 2}), f32({1, kNaN, 2})).passed);
  EXPECT_FALSE(cann_metrics(f32({kInf, 7, 2}), f32({kNaN, 7, 2})).passed);
}

TEST(Metrics, MostlyNonFiniteWarns) {
  const CannResult r = cann_metrics(f32({kNaN, kNaN, 1}), f32({kNaN, kNaN, 1}));
  EXPECT_TRUE(r.passed);
  EXPECT_EQ(r.warnings.size(), 1u);
}

TEST(Metrics, IntegersAndBoolAreExact) {
  // 2^24 and 2^24 + 1 are the same f32.
  const Tensor a = Tensor::of(DType::i32, {2}, {16777216, 1}), b = Tensor::of(DType::i32, {2}, {16777217, 1});
  EXPECT_FALSE(cann_metrics(a, b).passed);
  EXPECT_EQ(cann_metrics(a, b).first_difference, 0);
  EXPECT_TRUE(cann_metrics(a, a).passed);
  EXPECT_FALSE(cann_metrics(Tensor::of(DType::boolean, {2}, {0, 1}), Tensor::of(DType::boolean, {2}, {1, 1})).passed);
}

TEST(Metrics, ShapeDtypeEmpty) {
  EXPECT_FALSE(cann_metrics(f32({1, 2}), f32({1})).passed);
  EXPECT_FALSE(cann_metrics(f32({1}), Tensor::of(DType::f16, {1}, {1})).passed);
  EXPECT_TRUE(cann_metrics(f32({}), f32({})).passed);
}

TEST(Metrics, ConcentrationWarnsOnly) {
  // One outlier among a hundred: RMSE/MAE = 10.
  std::vector<double> x(100, 1.0), y(100, 1.0);
  for (std::size_t i = 0; i < 100; ++i) x[i] = y[i] = 1.0 + static_cast<double>(i);
  y[50] += 0.5;
  const CannResult r = cann_metrics(f32(x), f32(y));
  EXPECT_TRUE(r.passed) << r.reason;
  ASSERT_EQ(r.warnings.size(), 1u);
  EXPECT_EQ(r.warnings[0], "RMSE/MAE=10.00, deviation not concentrated");
}

// The blind cases: the metrics pass, the verdict fails.
class Blind : public testing::Test {
 protected:
  Blind() : good(f32(values)), reference(reference_of(values)) {}
  Verdict judged(const Tensor& actual) {
    EXPECT_TRUE(cann_metrics(good, actual).passed) << "not a blind case";
    return judge({.expected = good, .actual = actual, .second_run = actual, .reference = &reference});
  }
  std::vector<double> values = normals(4096);
  Tensor good;
  reference::Output reference;
};

TEST_F(Blind, TheRightResultPasses) { EXPECT_TRUE(judged(good).passed); }
TEST_F(Blind, ScaleOf104Percent) {
  Tensor wrong = good.clone();
  for (std::int64_t i = 0; i < wrong.numel(); ++i) wrong.set(i, 1.04 * wrong.get(i));
  const Verdict v = judged(wrong);
  EXPECT_FALSE(v.passed);
  EXPECT_GT(v.outside, 4000);
}
TEST_F(Blind, TwentySigmaOutlier) {
  values = normals(1 << 18);
  good = f32(values);
  reference = reference_of(values);
  Tensor wrong = good.clone();
  wrong.set(100, 20);
  const Verdict v = judged(wrong);
  EXPECT_FALSE(v.passed);
  EXPECT_EQ(v.outside, 1);
  EXPECT_EQ(v.first_outside, 100);
  EXPECT_EQ(v.warnings.size(), 1u);  // concentrated, and an element is outside its bound
}
TEST_F(Blind, UnwrittenLastRow) {
  // 4096 = 1024 rows of 4; the last row keeps what was in the buffer, here values that look right.
  Tensor first = good.clone(), second = good.clone();
  for (std::int64_t i = 4092; i < 4096; ++i) {
    std::memset(first.at(i), kPoison[0], 4);
    std::memset(second.at(i), kPoison[1], 4);
  }
  const Unwritten u = find_unwritten(first, second);
  EXPECT_EQ(u.count, 4);
  EXPECT_EQ(u.first, 4092);
  EXPECT_FALSE(judge({.expected = good, .actual = first, .second_run = second, .reference = &reference}).passed);
  // A stale last row that the metrics pass: small old values.
  Tensor stale = good.clone();
  for (std::int64_t i = 4092; i < 4096; ++i) stale.set(i, 0);
  EXPECT_FALSE(judged(stale).passed);
}
TEST_F(Blind, ResultThatDependsOnTheBuffer) {
  Tensor second = good.clone();
  second.set(5, 3.25);
  const Verdict v = judge({.expected = good, .actual = good, .second_run = second, .reference = &reference});
  EXPECT_FALSE(v.passed);
  EXPECT_EQ(v.unwritten.first_unstable, 5);
}

TEST(Judge, UndecidedIsCountedNotJudged) {
  std::vector<double> values = normals(50);
  reference::Output r = reference_of(values);
  r.undecided[3] = 1;
  const Tensor good = f32(values);
  Tensor other = good.clone();
  other.set(3, 17);
  const Verdict v = judge({.expected = good, .actual = other, .second_run = {}, .reference = &r});
  EXPECT_TRUE(v.passed) << v.reason;
  EXPECT_EQ(v.undecided, 1);
  EXPECT_EQ(v.warnings.size(), 1u);  // 2 % of the elements
}

TEST(Judge, EagerMayDecideOrOverflowOtherwise) {
  // fp64 says 40000 * 2 / 2; eager f16 overflowed on the way.
  reference::Output r = reference_of({40000, 1, 2}, DType::f16);
  const Tensor eager = Tensor::of(DType::f16, {3}, {kInf, 1, 2}), fused = Tensor::of(DType::f16, {3}, {40000, 1, 2});
  const Verdict v = judge({.expected = eager, .actual = fused, .second_run = {}, .reference = &r});
  EXPECT_TRUE(v.passed) << v.reason;
  EXPECT_EQ(v.excused, 1);
  EXPECT_FALSE(judge({.expected = fused, .actual = eager, .second_run = {}, .reference = &r}).passed);
}

TEST(Judge, InfinityPastTheRangeIsInside) {
  reference::Output r = reference_of({1e6, 1, 2}, DType::f16);
  r.bound[0] = 500;
  const Tensor got = Tensor::of(DType::f16, {3}, {kInf, 1, 2});
  EXPECT_TRUE(judge({.expected = got, .actual = got, .second_run = {}, .reference = &r}).passed);
}

TEST(Lines, AsTheSpecPrintsThem) {
  const Tensor x = f32({1, 2, 3});
  const Verdict v = judge({.expected = x, .actual = x, .second_run = {}, .reference = nullptr});
  EXPECT_EQ(precision_line("abs", "precision", v),
            "output:abs precision PASSED: CosineSim=1.00000000 RelEuclid=0.000e+00 KLDiv=0.000e+00 MAE=0.000e+00 RMSE=0.000e+00");
  const Verdict empty = judge({.expected = f32({}), .actual = f32({}), .second_run = {}, .reference = nullptr});
  EXPECT_EQ(precision_line("y", "precision", empty), "output:y precision check passed: empty tensor");
  const Tensor i = Tensor::of(DType::i32, {2, 2}, {1, 2, 3, 4}), j = Tensor::of(DType::i32, {2, 2}, {1, 2, 5, 4});
  EXPECT_EQ(precision_line("i", "artifact", judge({.expected = i, .actual = i, .second_run = {}, .reference = nullptr})),
            "output:i artifact PASSED: equal");
  EXPECT_EQ(precision_line("i", "precision", judge({.expected = i, .actual = j, .second_run = {}, .reference = nullptr})),
            "output:i precision FAILED: first difference at [1,0]: expected 3, got 5 (1 of 4 differ)");
  EXPECT_EQ(skipped_line("n"), "output:n skipped");
  EXPECT_EQ(summary_line({}), "Precision check passed.");
  EXPECT_EQ(summary_line({"a", "b"}), "Precision check failed: a, b");
  const reference::Output r = reference_of({1, 2, 3});
  const Tensor off = f32({1, 2 + 0x1p-22, 3});
  EXPECT_EQ(fp64_line("y", r, {{"torch", off, error_stats(off, r.value)}, {"compiled", off, error_stats(off, r.value)}}),
            "output:y fp64: torch max=1 p99=1 ulp; compiled max=1 p99=1 ulp (ratio 1.00); worst [1] torch=2.00000024 "
            "compiled=2.00000024 fp64=2");
}

// softmax's gradient of a constant: p - p * sum(p) is 0 up to rounding, eager has 6e-8 here and there, the kernel exact zeros.
TEST(Verdict, NoiseAroundZeroIsNotCompared) {
  reference::Output r = reference_of({0, 0, 0, 0});
  r.bound = {1e-7, 1e-7, 1e-7, 1e-7};
  const auto passes = [&](std::vector<double> expected, std::vector<double> actual) {
    Evidence e;
    e.expected = f32(std::move(expected));
    e.actual = f32(std::move(actual));
    e.reference = &r;
    return judge(e).passed;
  };
  EXPECT_TRUE(passes({6e-8, 0, -3e-8, 6e-8}, {0, 0, 0, 0}));
  EXPECT_TRUE(passes({6e-8, 0, -3e-8, 6e-8}, {-6e-8, 3e-8, 0, 0}));  // cosine below 0
  EXPECT_FALSE(passes({6e-8, 0, -3e-8, 6e-8}, {2e-7, 0, 0, 0}));     // outside the bound
  EXPECT_FALSE(passes({0.5, 0, 0, 0}, {0, 0, 0, 0}));                // eager is outside: something is wrong
  r.value[0] = 0.5;                                                  // one element is there to be compared: zeros fail again
  EXPECT_FALSE(passes({0.5, 0, -3e-8, 6e-8}, {0, 0, 0, 0}));
}

}  // namespace
}  // namespace fuselab::numerics
