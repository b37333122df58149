// A family's predictor: small methods, of which leave-one-out on the family's own rows picks and blends, with intervals from the
// same residuals. docs/prediction.md describes the methods and their errors.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fuselab/perfdb/predict_curves.h"
#include "fuselab/perfdb/predict_process.h"
#include "fuselab/perfdb/predict_trees.h"

namespace fuselab::perfdb {

/// Where a question lies relative to what was measured; each has its own choice of methods.
enum class Situation {
  kOnCurve,   ///< between rows of a measured curve: same n, k, another m
  kNewCurve,  ///< no row with these sites: another n, k
  kBeyond     ///< past the last row of every curve
};

/// A question more than so many octaves past the measured rows is refused.
constexpr double kMostOctaves = 3;

enum class Method {
  kLinear,
  kLogUtilisation,
  kEdgeUtilisation,
  kEdgeSlope,
  kEdgePower,
  kProcess,
  kTreesAbsolute,
  kTreesSquared,
  kCount
};
constexpr std::size_t kMethods = static_cast<std::size_t>(Method::kCount);
const char* name(Method method);

struct Estimate {
  double latency_us = 0, low_us = 0, high_us = 0;
  bool extrapolated = false;
  std::vector<std::int64_t> anchors;  ///< lines of the file the answer stands on most
};

struct PredictorOptions {
  Situation situation = Situation::kOnCurve;
  double coverage = 0.9;
  double octaves = 1;  ///< kBeyond: how far past the end the method is chosen for
  const DeviceProfile* device = nullptr;
  /// Rows with one number are hidden together when a method is judged. Empty: a row alone, or for kNewCurve a site.
  std::vector<std::int32_t> groups;
  /// Rows that the choice may not see (they are used as neighbours all the same). Empty: none.
  std::vector<std::uint8_t> held_out;
};

class Predictor {
 public:
  /// `family` must outlive the predictor and have at least one row that is not held out.
  Predictor(const Family& family, PredictorOptions options);

  /// The latency at a point, without the rows of `hidden_group` (-1: none); nothing, with the reason, when no method has an
  /// anchor or the point lies too far past the measured ones.
  std::optional<Estimate> predict(const double* x, double flops, double bytes, std::int32_t hidden_group = -1,
                                  std::string* refused = nullptr) const;
  /// What a straight line through two rows of the curve says, the baseline: between them, or for kBeyond past the last two.
  std::optional<double> linear(const double* x, std::int32_t hidden_group = -1) const;
  /// Readies predict() for many questions: neighbourhoods are solved once. Answers stay the same up to neighbours chosen.
  void prepare();
  std::string method() const;  ///< `0.6 process + 0.4 trees(absolute)`
  const std::array<double, kMethods>& weights() const { return weight_; }

 private:
  using Values = std::array<double, kMethods>;
  Values all(const double* x, double flops, double bytes, const Hidden& hidden, bool only_used) const;
  void choose();
  void judge_inside(std::vector<Values>& values, std::vector<double>& truth);
  void judge_beyond(std::vector<Values>& values, std::vector<double>& truth);
  void judge(const std::vector<std::size_t>& rows, const Hidden& base, std::vector<Values>& values,
             std::vector<double>& truth) const;
  void keep_answerable(std::vector<std::size_t>& rows, const Hidden& base) const;
  void choose_process(const std::vector<std::size_t>& rows, const Hidden& base);
  void choose_blend(const std::vector<Values>& values, const std::vector<double>& truth);
  void set_interval(const std::vector<Values>& values, const std::vector<double>& truth);
  double growing(double cut) const;
  double blend(const Values& values) const;
  double spread(const Values& values) const;
  std::vector<std::size_t> sample(const std::vector<std::size_t>& rows, std::size_t most) const;
  void fit_trees(const std::vector<std::size_t>& rows, Trees& absolute, Trees& squared) const;

  const Family* family_;
  PredictorOptions options_;
  std::vector<std::size_t> visible_;
  Space space_;
  std::vector<Curves> curves_;
  std::optional<Process> process_;
  Trees absolute_, squared_;
  std::array<double, kMethods> weight_{};
  struct Bin {
    double up_to;      ///< spread of the methods
    double low, high;  ///< quantiles of log(truth / predicted)
  };
  std::vector<Bin> bins_;
  double reach_ = kMostOctaves, judged_octaves_ = 1;
  bool prepared_ = false;
};

}  // namespace fuselab::perfdb
