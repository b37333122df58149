#include "fuselab/perfdb/predict_curves.h"

#include <algorithm>
#include <cstring>

namespace fuselab::perfdb {

Curves::Curves(const Family& family, std::size_t axis) : family_(&family), axis_(axis) {
  for (std::size_t i = 0; i < family.size(); ++i) {
    auto& candidates = curves_[key(family.point(i))];
    const auto same = [&](const std::vector<std::uint32_t>& curve) {
      for (std::size_t a = 0; a < family.axes.size(); ++a) {
        if (a != axis && family.at(curve[0], a) != family.at(i, a)) return false;
      }
      return true;
    };
    auto at = std::find_if(candidates.begin(), candidates.end(), same);
    if (at == candidates.end()) at = candidates.emplace(candidates.end());
    at->push_back(static_cast<std::uint32_t>(i));
  }
  for (auto& [hash, candidates] : curves_) {
    for (auto& curve : candidates) {
      std::stable_sort(curve.begin(), curve.end(), [&](auto a, auto b) { return family.at(a, axis) < family.at(b, axis); });
    }
  }
}

std::uint64_t Curves::key(const double* x) const {
  std::uint64_t hash = 14695981039346656037u;
  for (std::size_t a = 0; a < family_->axes.size(); ++a) {
    if (a == axis_) continue;
    std::uint64_t bits;
    std::memcpy(&bits, x + a, sizeof bits);
    hash = (hash ^ bits) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

const std::vector<std::uint32_t>* Curves::find(const double* x) const {
  const auto found = curves_.find(key(x));
  if (found == curves_.end()) return nullptr;
  for (const auto& curve : found->second) {
    bool same = true;
    for (std::size_t a = 0; a < family_->axes.size() && same; ++a) same = a == axis_ || family_->at(curve[0], a) == x[a];
    if (same) return &curve;
  }
  return nullptr;
}

std::optional<Neighbours> Curves::around(const double* x, const Hidden& hidden) const {
  const auto* curve = find(x);
  if (curve == nullptr) return std::nullopt;
  const double target = x[axis_];
  const auto split =
      std::lower_bound(curve->begin(), curve->end(), target, [&](auto row, double v) { return family_->at(row, axis_) < v; });
  constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t below[2] = {kNone, kNone}, above[2] = {kNone, kNone};
  // A slope from m and m + 1 would be one of noise: the second row stands at least kApart away.
  constexpr double kApart = 1.4;
  int found = 0;
  for (auto at = split; at != curve->end() && found < 2; ++at) {
    if (!hidden(*at) && (found == 0 || family_->at(*at, axis_) > kApart * family_->at(above[0], axis_))) above[found++] = *at;
  }
  if (above[0] != kNone && family_->at(above[0], axis_) == target) return Neighbours{above[0], above[0], 0, true};
  found = 0;
  for (auto at = split; at != curve->begin() && found < 2;) {
    --at;
    if (!hidden(*at) && (found == 0 || kApart * family_->at(*at, axis_) < family_->at(below[0], axis_))) below[found++] = *at;
  }
  Neighbours out;
  if (below[0] != kNone && above[0] != kNone) {
    out = {below[0], above[0], 0, true};
  } else if (below[0] != kNone && below[1] != kNone) {
    out = {below[1], below[0], 0, false};
  } else if (above[0] != kNone && above[1] != kNone) {
    out = {above[0], above[1], 0, false};
  } else {
    return std::nullopt;
  }
  const double low = family_->at(out.low, axis_), high = family_->at(out.high, axis_);
  out.share = (target - low) / (high - low);
  return out;
}

}  // namespace fuselab::perfdb
