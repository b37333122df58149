#include "fuselab/perfdb/predict.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fuselab/core/error.h"

namespace fuselab::perfdb {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t index(Method method) { return static_cast<std::size_t>(method); }

std::vector<std::size_t> not_held_out(const Family& family, const std::vector<std::uint8_t>& held_out) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < family.size(); ++i) {
    if (held_out.empty() || held_out[i] == 0) rows.push_back(i);
  }
  if (rows.empty()) fail("perfdb.no_rows", "{} has no row that a prediction could stand on.", family.file);
  return rows;
}

/// A row alone, or all rows of a site.
std::vector<std::int32_t> own_groups(const Family& family, Situation situation) {
  std::vector<std::int32_t> out(family.size());
  if (situation != Situation::kNewCurve) {
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  std::vector<std::pair<std::vector<double>, std::size_t>> sites;
  for (std::size_t i = 0; i < family.size(); ++i) {
    std::vector<double> site;
    for (std::size_t a = 0; a < family.axes.size(); ++a) {
      if (family.axes[a].role == AxisRole::kSite) site.push_back(family.at(i, a));
    }
    sites.emplace_back(std::move(site), i);
  }
  std::sort(sites.begin(), sites.end());
  std::int32_t group = 0;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    if (i > 0 && sites[i].first != sites[i - 1].first) ++group;
    out[sites[i].second] = group;
  }
  return out;
}

}  // namespace

const char* name(Method method) {
  static const char* const kNames[] = {"linear",     "utilisation", "edge utilisation", "edge slope",
                                       "edge power", "process",     "trees(absolute)",  "trees(squared)"};
  return kNames[index(method)];
}

Predictor::Predictor(const Family& family, PredictorOptions options)
    : family_(&family),
      options_(std::move(options)),
      visible_(not_held_out(family, options_.held_out)),
      space_(family, options_.device, visible_) {
  if (options_.groups.empty()) options_.groups = own_groups(family, options_.situation);
  for (std::size_t a = 0; a < family.axes.size(); ++a) {
    if (family.axes[a].role == AxisRole::kCurve) curves_.emplace_back(family, a);
  }
  choose();
}

Predictor::Values Predictor::all(const double* x, double flops, double bytes, const Hidden& hidden, bool only_used) const {
  Values out;
  out.fill(kNone);
  double at[Space::kMostDims];
  space_.encode(x, at);
  const double scale = space_.log_scale(flops, bytes);
  const auto used = [&](Method m) { return !only_used || weight_[index(m)] > 0; };
  for (const Curves& curves : curves_) {
    const auto between = curves.around(x, hidden);
    if (!between) continue;
    const std::size_t low = between->low, high = between->high, axis = curves.axis();
    const double a = family_->latency_us[low], b = family_->latency_us[high], share = between->share;
    if (between->inside) {
      out[index(Method::kLinear)] = std::log(a + (b - a) * share);
      const double span = std::log(family_->at(high, axis) / family_->at(low, axis));
      const double part = low == high ? 0 : std::log(x[axis] / family_->at(low, axis)) / span;
      out[index(Method::kLogUtilisation)] = scale + space_.z(low) + (space_.z(high) - space_.z(low)) * part;
      break;  // the first axis on which the question lies inside
    }
    if (options_.situation != Situation::kBeyond || !std::isnan(out[index(Method::kEdgeUtilisation)])) continue;
    out[index(Method::kEdgeUtilisation)] = scale + space_.z(share > 1 ? high : low);
    const double straight = a + (b - a) * share;
    if (straight > 0) out[index(Method::kEdgeSlope)] = std::log(straight);
    const double octaves =
        std::log(x[axis] / family_->at(low, axis)) / std::log(family_->at(high, axis) / family_->at(low, axis));
    out[index(Method::kEdgePower)] = std::log(a) + std::log(b / a) * octaves;
  }
  if (process_ && used(Method::kProcess)) {
    const bool nothing_hidden = hidden.of < 0 && hidden.out == nullptr;
    out[index(Method::kProcess)] =
        scale + (prepared_ && nothing_hidden ? process_->predict_fast(at) : process_->predict(at, hidden));
  }
  if (!absolute_.empty() || !squared_.empty()) {
    double features[Space::kMostDims + 8];
    space_.features(at, flops, bytes, features);
    if (!absolute_.empty() && used(Method::kTreesAbsolute))
      out[index(Method::kTreesAbsolute)] = scale + absolute_.predict(features);
    if (!squared_.empty() && used(Method::kTreesSquared)) out[index(Method::kTreesSquared)] = scale + squared_.predict(features);
  }
  return out;
}

double Predictor::blend(const Values& values) const {
  double sum = 0, weight = 0;
  for (std::size_t m = 0; m < kMethods; ++m) {
    if (weight_[m] <= 0 || std::isnan(values[m])) continue;
    sum += weight_[m] * values[m];
    weight += weight_[m];
  }
  if (weight > 0) return sum / weight;
  // None of the chosen has an anchor here; whatever has one, in the order of the list.
  for (double v : values) {
    if (!std::isnan(v)) return v;
  }
  return kNone;
}

double Predictor::spread(const Values& values) const {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (double v : values) {
    if (std::isnan(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  return high > low ? high - low : 0;
}

std::optional<double> Predictor::linear(const double* x, std::int32_t hidden_group) const {
  const Hidden hidden{&options_.groups, hidden_group, nullptr};
  for (const Curves& curves : curves_) {
    const auto between = curves.around(x, hidden);
    if (!between || between->inside == (options_.situation == Situation::kBeyond)) continue;
    const double a = family_->latency_us[between->low], b = family_->latency_us[between->high];
    const double value = a + (b - a) * between->share;
    if (value > 0) return value;
  }
  return std::nullopt;
}

std::optional<Estimate> Predictor::predict(const double* x, double flops, double bytes, std::int32_t hidden_group,
                                           std::string* refused) const {
  const Hidden hidden{&options_.groups, hidden_group, nullptr};
  const auto refuse = [&](std::string why) -> std::optional<Estimate> {
    if (refused != nullptr) *refused = std::move(why);
    return std::nullopt;
  };
  for (std::size_t a = 0; a < family_->axes.size(); ++a) {
    if (!std::isfinite(x[a]) || x[a] < 0) return refuse(fmt::format("{} is not a size", family_->axes[a].name));
  }
  double encoded[Space::kMostDims];
  space_.encode(x, encoded);
  for (std::size_t k = 0; k < space_.dims(); ++k) {
    if (std::isnan(encoded[k])) return refuse(fmt::format("no row has this {}", family_->axes[space_.active()[k]].name));
  }
  for (std::size_t a = 0; a < family_->axes.size(); ++a) {
    const bool varies = std::find(space_.active().begin(), space_.active().end(), a) != space_.active().end();
    if (!varies && family_->axes[a].role == AxisRole::kCategory && x[a] != family_->at(0, a)) {
      return refuse(fmt::format("no row has this {}", family_->axes[a].name));
    }
  }
  Estimate out;
  double widen = 1;  // farther past the end than was judged: errors grow as those of a random walk
  for (const Curves& curves : curves_) {
    const auto between = curves.around(x, hidden);
    if (!between) continue;
    if (!out.anchors.empty() && !between->inside) continue;
    out.anchors = {family_->line[between->low]};
    if (between->high != between->low) out.anchors.push_back(family_->line[between->high]);
    if (between->inside) {
      out.extrapolated = false;
      break;
    }
    const std::size_t axis = curves.axis();
    const double end = family_->at(between->share > 1 ? between->high : between->low, axis);
    const double octaves = std::abs(std::log2(x[axis] / end));
    if (options_.situation == Situation::kBeyond && octaves > reach_ + 1e-9) {
      return refuse(fmt::format("{} {} is {:.1f} octaves past the measured {}; {:g} are allowed", family_->axes[axis].name,
                                x[axis], octaves, end, reach_));
    }
    out.extrapolated = true;
    widen = std::sqrt(std::max(1.0, octaves / judged_octaves_));
  }
  const Values values = all(x, flops, bytes, hidden, true);
  const double log_latency = blend(values);
  if (!std::isfinite(log_latency)) return refuse("no measured row near enough");
  out.latency_us = std::exp(log_latency);
  const double s = spread(values);
  auto bin = std::find_if(bins_.begin(), bins_.end(), [&](const Bin& b) { return s <= b.up_to; });
  if (bin == bins_.end() && !bins_.empty()) bin = bins_.end() - 1;
  // Without judged rows nothing is known of the error: a factor of two either way.
  const double low = bins_.empty() ? -0.7 : bin->low, high = bins_.empty() ? 0.7 : bin->high;
  out.low_us = out.latency_us * std::exp(widen * low);
  out.high_us = out.latency_us * std::exp(widen * high);
  return out;
}

void Predictor::prepare() {
  if (prepared_) return;
  if (process_ && weight_[index(Method::kProcess)] > 0) process_->prepare();
  prepared_ = true;
}

std::string Predictor::method() const {
  std::string out;
  for (std::size_t m = 0; m < kMethods; ++m) {
    if (weight_[m] > 0) out += fmt::format("{}{:.2g} {}", out.empty() ? "" : " + ", weight_[m], name(static_cast<Method>(m)));
  }
  return out;
}

}  // namespace fuselab::perfdb
