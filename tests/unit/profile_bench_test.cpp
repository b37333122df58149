// What the steps of a benchmark say: expected figures are by hand, the quantile is that of any table of Student's t.
#include "fuselab/profile/bench.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fuselab/core/error.h"
#include "fuselab/profile/kernel_details.h"

namespace fuselab::profile {
namespace {

TEST(ProfileBench, RatioIsOfTheAverages) {
  const Ratio r = ratio(std::vector<double>{2, 4}, std::vector<double>{6, 4});
  EXPECT_DOUBLE_EQ(r.value, 10.0 / 6.0);
  // differences 6 - 2 r and 4 - 4 r are +-8/3, their mean has the standard error 8/3, 8/9 of the mean 3; t(1) = 636.62
  EXPECT_NEAR(r.spread, 636.62 * 8 / 9, 1e-9);
  EXPECT_TRUE(r.ambiguous);
}

TEST(ProfileBench, AboveOneIsFaster) {
  const std::vector<double> one(10, 1.0), two(10, 2.0);
  EXPECT_DOUBLE_EQ(ratio(one, two).value, 2);
  EXPECT_FALSE(ratio(one, two).ambiguous);
  EXPECT_DOUBLE_EQ(ratio(two, one).value, 0.5);
  EXPECT_FALSE(ratio(two, one).ambiguous);
}

TEST(ProfileBench, SameTimesAreAmbiguous) {
  const std::vector<double> a = {1, 1.1, 1, 1.3, 1, 0.9, 1, 1.1, 1, 1.1};
  EXPECT_DOUBLE_EQ(ratio(a, a).value, 1);
  EXPECT_TRUE(ratio(a, a).ambiguous);
  EXPECT_TRUE(ratio(std::vector<double>(10, 1.0), std::vector<double>(10, 1.005)).ambiguous);  // below the resolution
  EXPECT_FALSE(ratio(std::vector<double>(10, 1.0), std::vector<double>(10, 1.02)).ambiguous);
}

TEST(ProfileBench, DriftOfTheMachineCancels) {
  std::vector<double> graph, eager;
  for (int i = 0; i < 10; ++i) {  // three times slower at the end, both alike
    graph.push_back(10.0 + 2 * i);
    eager.push_back(2 * graph.back());
  }
  const Ratio r = ratio(graph, eager);
  EXPECT_DOUBLE_EQ(r.value, 2);
  EXPECT_NEAR(r.spread, 0, 1e-9);
  EXPECT_FALSE(r.ambiguous);
}

TEST(ProfileBench, OneOutlierMakesAResultAmbiguous) {
  std::vector<double> graph(10, 1.0), eager(10, 1.0);
  eager[3] = 100;
  EXPECT_GT(ratio(graph, eager).value, 10);
  EXPECT_TRUE(ratio(graph, eager).ambiguous);
}

TEST(ProfileBench, NoTimesAndNoSteps) {
  EXPECT_TRUE(ratio({}, {}).ambiguous);
  EXPECT_TRUE(ratio(std::vector<double>(3, 0.0), std::vector<double>(3, 1.0)).ambiguous);
  EXPECT_TRUE(ratio(std::vector<double>{1}, std::vector<double>{5}).ambiguous);
}

TEST(ProfileBench, AControlThatDiffersTakesTheVerdictBack) {
  BenchSteps steps{std::vector<double>(10, 1.0), std::vector<double>(10, 2.0), std::vector<double>(10, 1.0), {}, "eager"};
  EXPECT_FALSE(judged_ratio(steps).ambiguous);
  EXPECT_NE(bench_verdict(steps)[0].find("faster than eager"), std::string::npos);
  steps.again.assign(10, 1.5);
  EXPECT_TRUE(judged_ratio(steps).ambiguous);
  EXPECT_NE(bench_verdict(steps)[0].find("AMBIGUOUS"), std::string::npos);
}

TEST(ProfileBench, TableHasAtMostTenRows) {
  const std::vector<std::string> lines = bench_table("k", std::vector<double>(20, 1.0), std::vector<double>(20, 3.0));
  ASSERT_EQ(lines.size(), 15u);
  EXPECT_EQ(lines[0], "Benchmark: k");
  EXPECT_EQ(lines[3], "  1    |               1.00 |               3.00 |  3.00 x");
  EXPECT_EQ(lines[14], " Avg   |               1.00 |               3.00 |  3.00 x");
}

TEST(ProfileBench, StepSumsOfARecordedProfile) {
  const KernelTable table =
      parse_kernel_details("Step Id,Name,Duration(us)\n2,a,3.0\n1,a,1.5\n1,b,2.5\nN/A,c,9\n1,hcom,N/A\n", "<recorded>");
  const std::vector<std::pair<std::int64_t, double>> expected = {{1, 4.0}, {2, 3.0}};
  EXPECT_EQ(step_sums(table), expected);
}

TEST(ProfileBench, TheNewestFolderWins) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(::testing::TempDir()) / "profile_bench_newest";
  fs::remove_all(root);
  const auto put = [&](const fs::path& place, int minutes_old) {
    fs::create_directories(root / place);
    std::ofstream(root / place / "kernel_details.csv") << "Step Id,Duration(us)\n1,1\n";
    fs::last_write_time(root / place / "kernel_details.csv",
                        fs::file_time_type::clock::now() - std::chrono::minutes(minutes_old));
  };
  EXPECT_THROW(newest_profile(root.string()), Error);
  put("cpu_1_fuselab", 3);
  EXPECT_EQ(newest_profile(root.string()), (root / "cpu_1_fuselab").string());
  put("host_2_ascend_pt/ASCEND_PROFILER_OUTPUT", 2);
  EXPECT_EQ(newest_profile(root.string()), (root / "host_2_ascend_pt/ASCEND_PROFILER_OUTPUT").string());
  put("host_3_ascend_pt/ASCEND_PROFILER_OUTPUT", 4);
  put("something_else", 0);
  EXPECT_EQ(newest_profile(root.string()), (root / "host_2_ascend_pt/ASCEND_PROFILER_OUTPUT").string());
  fs::remove_all(root);
}

TEST(ProfileBench, CachesAreSwept) {
  EXPECT_GT(last_level_cache_bytes(), 0);
  evict_caches();
}

}  // namespace
}  // namespace fuselab::profile
