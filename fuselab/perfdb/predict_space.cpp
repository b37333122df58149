#include "fuselab/perfdb/predict_space.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace fuselab::perfdb {

Space::Space(const Family& family, const DeviceProfile* device, const std::vector<std::size_t>& rows)
    : family_(&family), rates_(rates_of(family, device, rows)) {
  const std::size_t n = family.size();
  floor_ = HUGE_VAL;
  for (std::size_t i : rows) floor_ = std::min(floor_, family.latency_us[i]);
  for (std::size_t a = 0; a < family.axes.size() && active_.size() < kMostDims; ++a) {
    for (std::size_t i = 1; i < n; ++i) {
      if (family.at(i, a) != family.at(0, a)) {
        active_.push_back(a);
        break;
      }
    }
  }
  if (active_.empty() && !family.axes.empty()) active_.push_back(0);
  const std::size_t d = active_.size();
  categories_.resize(d);
  std::vector<int> sized;
  for (std::size_t k = 0; k < d; ++k) {
    if (family.axes[active_[k]].role != AxisRole::kCategory) {
      if (sized.size() < 4) sized.push_back(static_cast<int>(k));
      continue;
    }
    std::map<double, std::pair<double, double>> sums;
    for (std::size_t i = 0; i < n; ++i) sums[family.at(i, active_[k])];
    double mean = 0;
    for (std::size_t i : rows) {
      const double z = std::log(family.latency_us[i]) - log_scale(family.flops[i], family.bytes[i]);
      auto& [sum, count] = sums[family.at(i, active_[k])];
      sum += z, count += 1;
      mean += z / static_cast<double>(rows.size());
    }
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (auto& [value, entry] : sums) {
      const double at = entry.second > 0 ? entry.first / entry.second : mean;
      categories_[k].emplace_back(value, at);
      low = std::min(low, at), high = std::max(high, at);
    }
    // Words that differ most stand as far apart as sizes of three octaves.
    constexpr double kSpan = 3;
    for (auto& [value, at] : categories_[k]) {
      at = family.axes[active_[k]].word ? (high > low ? (at - low) / (high - low) * kSpan : 0) : std::log2(std::max(value, 0.5));
    }
  }
  for (std::size_t i = 0; i < sized.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) pairs_.emplace_back(sized[j], sized[i]);
  }
  x_.resize(n * d);
  z_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    encode(family.point(i), x_.data() + i * d);
    z_[i] = std::log(family.latency_us[i]) - log_scale(family.flops[i], family.bytes[i]);
  }
}

void Space::encode(const double* x, double* out) const {
  for (std::size_t k = 0; k < dims(); ++k) {
    const double value = x[active_[k]];
    if (family_->axes[active_[k]].role == AxisRole::kCategory) {
      const auto at = std::lower_bound(categories_[k].begin(), categories_[k].end(), std::pair(value, -HUGE_VAL));
      out[k] = at != categories_[k].end() && at->first == value ? at->second : std::nan("");
    } else {
      out[k] = std::log2(std::max(value, 0.5));
    }
  }
}

double Space::log_scale(double flops, double bytes) const { return std::log(roofline_us(rates_, flops, bytes) + floor_); }

void Space::features(const double* encoded, double flops, double bytes, double* out) const {
  const std::size_t d = dims();
  std::copy(encoded, encoded + d, out);
  std::size_t at = d;
  for (const auto& [a, b] : pairs_) out[at++] = encoded[a] + encoded[b];
  out[at++] = std::log2(std::max(flops, 1.0));
  out[at++] = std::log2(std::max(bytes, 1.0));
}

}  // namespace fuselab::perfdb
