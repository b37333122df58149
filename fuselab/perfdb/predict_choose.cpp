// Which methods a family uses, how they are weighed, and how wide the interval is: all from its own rows, each predicted from the
// rest.
#include <algorithm>
#include <cmath>

#include "fuselab/perfdb/predict.h"
#include "fuselab/perfdb/predict_limits.h"

namespace fuselab::perfdb {
namespace {

constexpr std::size_t index(Method method) { return static_cast<std::size_t>(method); }

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return HUGE_VAL;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const std::size_t low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (at - static_cast<double>(low));
}

struct Error2 {
  double median = HUGE_VAL, p90 = HUGE_VAL;
};

Error2 errors(const std::vector<double>& predicted, const std::vector<double>& truth) {
  std::vector<double> e;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    if (!std::isnan(predicted[i])) e.push_back(std::abs(std::expm1(predicted[i] - truth[i])));
  }
  return {quantile(e, 0.5), quantile(e, 0.9)};
}

}  // namespace

std::vector<std::size_t> Predictor::sample(const std::vector<std::size_t>& rows, std::size_t most) const {
  if (rows.size() <= most) return rows;
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  for (std::size_t i : rows) order.emplace_back(mixed(i), i);
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end());
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < most; ++i) out.push_back(order[i].second);
  std::sort(out.begin(), out.end());
  return out;
}

void Predictor::fit_trees(const std::vector<std::size_t>& rows, Trees& absolute, Trees& squared) const {
  const std::size_t width = space_.width();
  std::vector<double> features(rows.size() * width), target(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    space_.features(space_.row(rows[i]), family_->flops[rows[i]], family_->bytes[rows[i]], features.data() + i * width);
    target[i] = space_.z(rows[i]);
  }
  Trees::Options options;
  options.loss = Trees::Loss::kAbsolute;
  absolute.fit(features, width, target, options);
  options.loss = Trees::Loss::kSquared;
  squared.fit(features, width, target, options);
}

/// Hill climbing over the scales, the neighbours and the smoothness, on a sample.
void Predictor::choose_process(const std::vector<std::size_t>& rows, const Hidden& base) {
  ProcessOptions best;
  for (std::size_t k : space_.active()) {
    const AxisRole role = family_->axes[k].role;
    best.scale.push_back(role == AxisRole::kCurve ? 4 : 2);
  }
  const std::vector<std::size_t>& targets = rows;
  std::vector<double> truth, predicted(targets.size());
  for (std::size_t i : targets) truth.push_back(space_.z(i));
  Error2 first;
  const auto score = [&](const ProcessOptions& options) {
    const Process process(space_, options);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      Hidden hidden = base;
      hidden.of = (*base.group)[targets[i]];
      predicted[i] = process.predict(space_.row(targets[i]), hidden);
    }
    const Error2 e = errors(predicted, truth);
    if (first.median == HUGE_VAL) first = e;
    return e.median / std::max(first.median, 1e-9) + e.p90 / std::max(first.p90, 1e-9);
  };
  if (targets.size() < kLeastForBlend / 2) {  // scales climbed on few rows fit their noise
    process_.emplace(space_, best);
    return;
  }
  double least = score(best);
  const auto attempt = [&](const ProcessOptions& options) {
    const double s = score(options);
    if (!(s < least - 1e-3)) return false;
    least = s;
    best = options;
    return true;
  };
  for (int round = 0; round < 3; ++round) {
    const double before = least;
    for (const int nu : {1, 3, 5}) {
      for (const double nugget : {1e-4, 1e-2, 5e-2}) {
        ProcessOptions next = best;
        next.twice_nu = nu;
        next.nugget = nugget;
        attempt(next);
      }
    }
    for (const int neighbours : {24, 48}) {
      ProcessOptions next = best;
      next.neighbours = neighbours;
      attempt(next);
    }
    for (std::size_t a = 0; a < best.scale.size(); ++a) {
      for (const double factor : {2.0, 0.5}) {
        bool moved = false;
        for (;;) {
          ProcessOptions next = best;
          next.scale[a] *= factor;
          if (next.scale[a] > 64 || next.scale[a] < 0.2 || !attempt(next)) break;
          moved = true;
        }
        if (moved) break;
      }
    }
    if (before - least < 0.02) break;
  }
  process_.emplace(space_, best);
}

void Predictor::choose_blend(const std::vector<Values>& values, const std::vector<double>& truth) {
  const std::size_t n = truth.size();
  std::array<bool, kMethods> usable{};
  std::array<Error2, kMethods> alone;
  std::vector<double> column(n);
  for (std::size_t m = 0; m < kMethods; ++m) {
    std::size_t answered = 0;
    for (std::size_t i = 0; i < n; ++i) answered += std::isnan(column[i] = values[i][m]) ? 0 : 1;
    usable[m] = answered * 10 >= n * 9 && answered > 0;
    alone[m] = errors(column, truth);
  }
  weight_.fill(0);
  // What is to be beaten: linear between rows, a straight line (alpha-beta) past the largest message, else the best of all.
  const bool beyond = options_.situation == Situation::kBeyond;
  const std::size_t base = index(beyond && family_->kind == FamilyKind::kCommunication ? Method::kEdgeSlope : Method::kLinear);
  Error2 reference = alone[base];
  const bool has_linear = usable[base];
  if (!has_linear) {
    reference = {};
    for (std::size_t m = 0; m < kMethods; ++m) {
      if (!usable[m]) continue;
      reference.median = std::min(reference.median, alone[m].median);
      reference.p90 = std::min(reference.p90, alone[m].p90);
    }
  }
  if (reference.median == HUGE_VAL) {
    weight_[index(beyond ? Method::kEdgeUtilisation : Method::kLinear)] = 1;
    return;
  }
  const double median = std::max(reference.median, 1e-9), p90 = std::max(reference.p90, 1e-9);
  // Worse than linear in the middle is not made good by a better tail, and better by less than chance gives is not better.
  const double bar = 1 - 0.7 / std::sqrt(static_cast<double>(n));
  const auto cost = [&](const Error2& e) {
    constexpr double kNever = 20;
    return e.median / median + kTail * e.p90 / p90 + (has_linear ? kNever * std::max(0.0, e.median / median - bar) : 0);
  };
  if (n < kLeastForBlend) {
    std::size_t best = has_linear ? base : kMethods;
    constexpr double kWorthIt = 0.85;  // a switch from linear on few rows needs a clear win
    double least = has_linear ? kWorthIt * (1 + kTail) : HUGE_VAL;
    for (std::size_t m = 0; m < kMethods; ++m) {
      if (usable[m] && m != base && cost(alone[m]) < least) {
        least = cost(alone[m]);
        best = m;
      }
    }
    weight_[best] = 1;
    return;
  }
  std::vector<double> sum(n, 0), trial(n);
  double least = has_linear ? 1 + kTail : HUGE_VAL;
  std::array<double, kMethods> bag{}, chosen{};
  if (has_linear) chosen[base] = 1;
  for (int step = 1; step <= kBlendSteps; ++step) {
    double here = HUGE_VAL;
    std::size_t pick = kMethods;
    for (std::size_t m = 0; m < kMethods; ++m) {
      if (!usable[m]) continue;
      for (std::size_t i = 0; i < n; ++i) trial[i] = (sum[i] + values[i][m]) / step;
      const double c = cost(errors(trial, truth));
      if (c < here) here = c, pick = m;
    }
    if (pick == kMethods) break;
    bag[pick] += 1;
    for (std::size_t i = 0; i < n; ++i) sum[i] += values[i][pick];
    if (here < least - 1e-3) {
      least = here;
      for (std::size_t m = 0; m < kMethods; ++m) chosen[m] = bag[m] / step;
    }
  }
  weight_ = chosen;
}

void Predictor::set_interval(const std::vector<Values>& values, const std::vector<double>& truth) {
  // Where the methods disagree the error is larger: quantiles by how much they do.
  std::vector<std::pair<double, double>> seen;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    Values used = values[i];
    for (std::size_t m = 0; m < kMethods; ++m) {
      const bool free = m == index(Method::kLinear) || m == index(Method::kLogUtilisation) ||
                        m == index(Method::kEdgeUtilisation) || m == index(Method::kEdgeSlope) || m == index(Method::kEdgePower);
      if (!free && weight_[m] <= 0) used[m] = std::nan("");  // predict() does not compute these
    }
    const double p = blend(used);
    if (!std::isnan(p)) seen.emplace_back(spread(used), truth[i] - p);
  }
  std::sort(seen.begin(), seen.end());
  // The end is not like the ends that played it; measured on devices at hand, a fifth.
  constexpr double kUnlike = 1.2;
  const double widen = options_.situation == Situation::kBeyond ? kUnlike : 1.0;
  bins_.clear();
  if (seen.size() < 5) return;
  const std::size_t count = std::clamp<std::size_t>(seen.size() / 80, 1, 12);
  for (std::size_t b = 0; b < count; ++b) {
    std::vector<double> rest;
    const std::size_t begin = b * seen.size() / count, end = (b + 1) * seen.size() / count;
    for (std::size_t i = begin; i < end; ++i) rest.push_back(seen[i].second);
    // One more row than was seen: the quantile of n values that holds for the next one.
    const double n = static_cast<double>(rest.size());
    const double tail = std::max(0.0, ((1 - options_.coverage) / 2 * (n + 1) - 1) / (n - 1));
    bins_.push_back({b + 1 == count ? HUGE_VAL : seen[end - 1].first, widen * std::min(0.0, quantile(rest, tail)),
                     widen * std::max(0.0, quantile(rest, 1 - tail))});
  }
}

void Predictor::choose() {
  std::vector<Values> values;
  std::vector<double> truth;
  if (options_.situation == Situation::kBeyond && !curves_.empty()) {
    judge_beyond(values, truth);
  } else {
    judge_inside(values, truth);
  }
  choose_blend(values, truth);
  set_interval(values, truth);
  const bool keep_trees = weight_[index(Method::kTreesAbsolute)] > 0 || weight_[index(Method::kTreesSquared)] > 0;
  absolute_ = squared_ = Trees();
  if (keep_trees) fit_trees(visible_, absolute_, squared_);
  if (weight_[index(Method::kTreesAbsolute)] <= 0) absolute_ = Trees();
  if (weight_[index(Method::kTreesSquared)] <= 0) squared_ = Trees();
  if (weight_[index(Method::kProcess)] <= 0) process_.reset();
}

}  // namespace fuselab::perfdb
