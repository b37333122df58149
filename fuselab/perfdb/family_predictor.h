// Answers of one family: each question goes to the predictor of its situation, which is made when the first such question comes.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "fuselab/perfdb/predict.h"

namespace fuselab::perfdb {

struct Prediction {
  Estimate estimate;
  Situation situation = Situation::kOnCurve;
  std::string method;
};

class FamilyPredictor {
 public:
  FamilyPredictor(Family family, std::optional<DeviceProfile> device, double coverage = 0.9);

  const Family& family() const { return family_; }
  /// The latency of a point given in the family's axes; nothing with `refused` saying why. Safe from several threads.
  std::optional<Prediction> predict(const double* x, double flops, double bytes, std::string* refused = nullptr) const;

 private:
  const Predictor& predictor(Situation situation, bool far) const;
  std::optional<std::string> too_far(const double* x) const;

  Family family_;
  std::optional<DeviceProfile> device_;
  double coverage_;
  std::vector<Curves> curves_;
  std::vector<std::pair<double, double>> ends_;  // of every axis
  mutable std::once_flag made_[4];
  mutable std::unique_ptr<Predictor> predictors_[4];
};

}  // namespace fuselab::perfdb
