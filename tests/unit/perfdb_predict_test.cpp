// Predictions from measured rows. Expected values: hand calculation, or functions whose value is known.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "fuselab/perfdb/family_predictor.h"
#include "fuselab/perfdb/loo.h"

namespace fuselab::perfdb {
namespace {

std::optional<Point> described(const std::map<std::string, std::string, std::less<>>& row) {
  return describe([&](std::string_view column) -> std::string_view {
    const auto at = row.find(column);
    return at == row.end() ? std::string_view() : std::string_view(at->second);
  });
}

Family messages(const std::vector<std::pair<double, double>>& rows) {
  Family f;
  f.kind = FamilyKind::kCommunication;
  f.file = "hcom_test_.csv";
  f.axes = {{"bytes", AxisRole::kCurve, false}, {"ranks", AxisRole::kCategory, false}};
  for (const auto& [bytes, us] : rows) {
    f.x.insert(f.x.end(), {bytes, 4});
    f.latency_us.push_back(us);
    f.flops.push_back(0);
    f.bytes.push_back(bytes);
    f.line.push_back(static_cast<std::int64_t>(f.line.size() + 2));
  }
  return f;
}

TEST(PerfdbFamily, MatmulByItsSlots) {
  const auto p = described({{"Input Shapes", "\"16,7168;3584,7168\""},
                            {"Input Data Types", "DT_BF16;DT_BF16"},
                            {"Input Formats", "ND;ND"},
                            {"Output Shapes", "\"16,3584\""},
                            {"Output Data Types", "DT_BF16"},
                            {"Output Formats", "ND"},
                            {"Average Duration(us)", "12.5"}});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->kind, FamilyKind::kMatmul);
  EXPECT_EQ(p->x, (std::vector<double>{16, 3584, 7168}));
  EXPECT_EQ(p->flops, 2.0 * 16 * 3584 * 7168);
  EXPECT_EQ(p->bytes, 2.0 * (16 * 7168 + 3584 * 7168 + 16 * 3584));
  EXPECT_EQ(p->latency_us, 12.5);
  EXPECT_EQ(p->peak, "BF16");
}

TEST(PerfdbFamily, DtypesAndFormatsAreRegimes) {
  std::map<std::string, std::string, std::less<>> row = {
      {"Input Shapes", "\"8,16;32,16\""}, {"Input Data Types", "DT_BF16;DT_BF16"}, {"Input Formats", "ND;ND"},
      {"Output Shapes", "\"8,32\""},      {"Output Data Types", "DT_BF16"},        {"Output Formats", "ND"}};
  const std::string first = described(row)->regime;
  row["Input Formats"] = "ND;FRACTAL_NZ";
  EXPECT_NE(described(row)->regime, first);
  row["Input Formats"] = "ND;ND";
  row["Input Data Types"] = "DT_FLOAT16;DT_BF16";
  EXPECT_NE(described(row)->regime, first);
}

TEST(PerfdbFamily, DurationsThatAreNoneCountAsMissing) {
  for (const char* text : {"", "0", "-1", "nan", "inf", "N/A"}) {
    const auto p = described({{"Input Shapes", "\"8,16\""}, {"Output Shapes", "\"8,16\""}, {"Average Duration(us)", text}});
    ASSERT_TRUE(p) << text;
    EXPECT_EQ(p->latency_us, 0) << text;
  }
}

TEST(PerfdbPredict, MessagesAreLinearBetweenNeighbours) {
  const FamilyPredictor p(messages({{1024, 10}, {2048, 14}, {4096, 20}, {8192, 36}}), std::nullopt);
  const double x[] = {3072, 4};
  const auto answer = p.predict(x, 0, 3072);
  ASSERT_TRUE(answer);
  EXPECT_NEAR(answer->estimate.latency_us, 17, 1e-9);  // half way between 14 and 20
  EXPECT_EQ(answer->estimate.anchors, (std::vector<std::int64_t>{3, 4}));
  EXPECT_LE(answer->estimate.low_us, 17);
  EXPECT_GE(answer->estimate.high_us, 17);
}

TEST(PerfdbPredict, RefusesWhatLiesTooFarOrWasNeverMeasured) {
  const FamilyPredictor p(messages({{1024, 10}, {2048, 14}, {4096, 20}, {8192, 36}}), std::nullopt);
  std::string why;
  const double far[] = {8192 * 8.5, 4}, ranks[] = {2048, 16}, nan[] = {std::nan(""), 4};
  EXPECT_FALSE(p.predict(far, 0, far[0], &why));
  EXPECT_NE(why.find("octaves"), std::string::npos) << why;
  EXPECT_FALSE(p.predict(ranks, 0, 2048, &why));
  EXPECT_NE(why.find("no row has this ranks"), std::string::npos) << why;
  EXPECT_FALSE(p.predict(nan, 0, 0, &why));
}

TEST(PerfdbPredict, AHiddenRowNeverChangesItsOwnAnswer) {
  // 40 curves of a smooth law; one row is replaced by nonsense, and with it hidden from choice and neighbours the answer stays.
  Family f;
  f.kind = FamilyKind::kMatmul;
  f.file = "MatMul.csv";
  f.axes = {{"m", AxisRole::kCurve, false}, {"n", AxisRole::kSite, false}};
  for (int n = 1; n <= 40; ++n) {
    for (int e = 0; e < 10; ++e) {
      const double m = std::exp2(e);
      f.x.insert(f.x.end(), {m, 64.0 * n});
      f.latency_us.push_back(3 + 0.01 * m * n);
      f.flops.push_back(2 * m * 64 * n * 128);
      f.bytes.push_back(m * 64 * n);
      f.line.push_back(static_cast<std::int64_t>(f.line.size() + 2));
    }
  }
  const std::size_t row = 155;
  PredictorOptions options;
  options.held_out.assign(f.size(), 0);
  options.held_out[row] = 1;
  const double right =
      Predictor(f, options).predict(f.point(row), f.flops[row], f.bytes[row], static_cast<std::int32_t>(row))->latency_us;
  Family spoiled = f;
  spoiled.latency_us[row] = 1e9;
  const auto answer =
      Predictor(spoiled, options).predict(f.point(row), f.flops[row], f.bytes[row], static_cast<std::int32_t>(row));
  EXPECT_EQ(answer->latency_us, right);
  EXPECT_NEAR(right, f.latency_us[row], 0.05 * f.latency_us[row]);
}

TEST(PerfdbLoo, APowerOfTwoLineIsPredictedWithoutError) {
  std::vector<std::pair<double, double>> rows;
  for (int e = 8; e < 30; ++e) rows.emplace_back(std::exp2(e), 5 + std::exp2(e) / 1024);
  LooOptions options;
  options.task = "comm";
  const auto results = leave_one_out(messages(rows), nullptr, 256, std::exp2(29), options);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].scored, 20u);  // all but the ends
  EXPECT_LT(results[0].ours.max, 1e-6);
}

}  // namespace
}  // namespace fuselab::perfdb
