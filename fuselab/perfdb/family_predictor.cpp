#include "fuselab/perfdb/family_predictor.h"

#include <algorithm>
#include <cmath>

#include "fuselab/core/error.h"

namespace fuselab::perfdb {

FamilyPredictor::FamilyPredictor(Family family, std::optional<DeviceProfile> device, double coverage)
    : family_(without_duplicates(family)), device_(std::move(device)), coverage_(coverage) {
  if (family_.size() == 0) fail("perfdb.no_rows", "{} has no row that a prediction could stand on.", family_.file);
  for (std::size_t a = 0; a < family_.axes.size(); ++a) {
    if (family_.axes[a].role == AxisRole::kCurve) curves_.emplace_back(family_, a);
    double low = HUGE_VAL, high = 0;
    for (std::size_t i = 0; i < family_.size(); ++i) {
      low = std::min(low, family_.at(i, a));
      high = std::max(high, family_.at(i, a));
    }
    ends_.emplace_back(low, high);
  }
}

const Predictor& FamilyPredictor::predictor(Situation situation, bool far) const {
  const std::size_t slot = static_cast<std::size_t>(situation) + (far ? 1 : 0);
  std::call_once(made_[slot], [&] {
    PredictorOptions options;
    options.situation = situation;
    options.coverage = coverage_;
    options.octaves = far ? kMostOctaves : 1;
    options.device = device_ ? &*device_ : nullptr;
    auto made = std::make_unique<Predictor>(family_, std::move(options));
    made->prepare();
    predictors_[slot] = std::move(made);
  });
  return *predictors_[slot];
}

std::optional<std::string> FamilyPredictor::too_far(const double* x) const {
  for (std::size_t a = 0; a < family_.axes.size(); ++a) {
    if (family_.axes[a].role == AxisRole::kCategory) continue;
    const auto& [low, high] = ends_[a];
    const double past = x[a] > high  ? std::log2(x[a] / std::max(high, 0.5))
                        : x[a] < low ? std::log2(low / std::max(x[a], 0.5))
                                     : 0;
    if (past > kMostOctaves + 1e-9) {
      return fmt::format("{} {:g} is {:.1f} octaves outside of the measured {:g} to {:g}; {:g} are allowed", family_.axes[a].name,
                         x[a], past, low, high, kMostOctaves);
    }
  }
  return std::nullopt;
}

std::optional<Prediction> FamilyPredictor::predict(const double* x, double flops, double bytes, std::string* refused) const {
  for (std::size_t a = 0; a < family_.axes.size(); ++a) {
    if (std::isfinite(x[a]) && x[a] >= 0) continue;
    if (refused != nullptr) *refused = fmt::format("{} is not a size", family_.axes[a].name);
    return std::nullopt;
  }
  if (const auto why = too_far(x)) {
    if (refused != nullptr) *refused = *why;
    return std::nullopt;
  }
  Situation situation = Situation::kNewCurve;
  double octaves = 0;
  for (const Curves& curves : curves_) {
    const auto between = curves.around(x, Hidden{});
    if (between && between->inside) {
      situation = Situation::kOnCurve;
      break;
    }
    if (between && situation == Situation::kNewCurve) {
      situation = Situation::kBeyond;
      const double end = family_.at(between->share > 1 ? between->high : between->low, curves.axis());
      octaves = std::abs(std::log2(x[curves.axis()] / end));
    }
  }
  // A new curve past every curve's end is both; the tail's methods hold there too.
  if (situation == Situation::kNewCurve && !curves_.empty()) {
    const std::size_t axis = curves_[0].axis();
    const auto& [low, high] = ends_[axis];
    if (x[axis] > high) situation = Situation::kBeyond, octaves = std::log2(x[axis] / high);
  }
  const Predictor& chosen = predictor(situation, situation == Situation::kBeyond && octaves > 1);
  const auto estimate = chosen.predict(x, flops, bytes, -1, refused);
  if (!estimate) return std::nullopt;
  return Prediction{*estimate, situation, chosen.method()};
}

}  // namespace fuselab::perfdb
