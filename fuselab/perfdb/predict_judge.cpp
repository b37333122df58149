// Rows that play the unseen: which they are for each situation, and what each method says of them.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "fuselab/perfdb/predict.h"
#include "fuselab/perfdb/predict_limits.h"

namespace fuselab::perfdb {
namespace {

constexpr std::size_t index(Method method) { return static_cast<std::size_t>(method); }

}  // namespace

/// Share of the curves that grow with the axis at their last row, when only rows up to `cut` are seen. Where they do not, what
/// bounds them later has not shown itself.
double Predictor::growing(double cut) const {
  constexpr double kGrows = 0.5;  // exponent of latency over the axis; 1 is proportional
  const std::size_t axis = curves_[0].axis();
  std::vector<std::uint8_t> out(family_->size(), 1);
  for (std::size_t i : visible_) out[i] = family_->at(i, axis) > cut ? 1 : 0;
  const Hidden hidden{nullptr, -1, &out};
  std::size_t grow = 0, curves = 0;
  for (std::size_t i : visible_) {
    if (out[i] != 0) continue;
    std::vector<double> x(family_->point(i), family_->point(i) + family_->axes.size());
    const double here = x[axis];
    x[axis] = here * 1.0001;
    const auto end = curves_[0].around(x.data(), hidden);
    if (!end || end->inside || end->high != i) continue;
    ++curves;
    const double growth = std::log(family_->latency_us[end->high] / family_->latency_us[end->low]);
    grow += growth > kGrows * std::log(here / family_->at(end->low, axis)) ? 1 : 0;
  }
  return curves == 0 ? 0 : static_cast<double>(grow) / static_cast<double>(curves);
}

/// Rows past a cut play the unseen: as many octaves of them as the predictor is for, but one where that cut lies so low that
/// other bounds rule there than at the real end.
void Predictor::judge_beyond(std::vector<Values>& values, std::vector<double>& truth) {
  const std::size_t axis = curves_[0].axis();
  double last = 0;
  for (std::size_t i : visible_) last = std::max(last, family_->at(i, axis));
  const double at_end = growing(last);
  constexpr double kFewGrow = 0.1;
  reach_ = at_end >= kFewGrow ? kMostOctaves : 1;
  const bool alike = growing(last / std::exp2(options_.octaves)) > 0.5 * at_end;
  judged_octaves_ = alike ? options_.octaves : 1;
  const double cut = last / std::exp2(judged_octaves_);
  std::vector<std::uint8_t> out = options_.held_out;
  if (out.empty()) out.assign(family_->size(), 0);
  std::vector<std::size_t> judged, kept;
  for (std::size_t i : visible_) (family_->at(i, axis) > cut ? judged : kept).push_back(i);
  for (std::size_t i : judged) out[i] = 1;
  const Hidden base{&options_.groups, -1, &out};
  keep_answerable(judged, base);
  judged = sample(judged, kJudged);
  if (judged.empty() || kept.size() < 20) return;
  choose_process(sample(judged, kTuning), base);
  if (visible_.size() >= kLeastForTrees && kept.size() >= kLeastForTrees / 4) fit_trees(kept, absolute_, squared_);
  judge(judged, base, values, truth);
}

void Predictor::judge_inside(std::vector<Values>& values, std::vector<double>& truth) {
  std::vector<std::uint8_t> out = options_.held_out;
  if (out.empty()) out.assign(family_->size(), 0);
  const Hidden base{&options_.groups, -1, &out};
  std::vector<std::size_t> asked = visible_;
  if (options_.situation != Situation::kNewCurve) keep_answerable(asked, base);
  if (asked.empty()) return;
  std::vector<std::size_t> judged = asked;
  if (visible_.size() >= 20) {
    // Rows on which the process was tuned flatter it: they are not judged where others are left.
    const std::size_t most = space_.dims() > 5 ? 2 * kTuning : kTuning;
    const std::vector<std::size_t> tuning =
        asked.size() >= kLeastForBlend ? sample(asked, std::min(most, asked.size() / 2)) : asked;
    choose_process(tuning, base);
    if (tuning.size() < asked.size()) {
      judged.clear();
      std::set_difference(asked.begin(), asked.end(), tuning.begin(), tuning.end(), std::back_inserter(judged));
    }
  }
  if (visible_.size() >= kLeastForTrees) {
    // Trees can be judged only by rows that they have not seen.
    std::vector<std::size_t> kept, unseen;
    const auto unseen_by_trees = [&](std::size_t i) { return mixed(static_cast<std::uint64_t>(options_.groups[i])) % 4 == 0; };
    for (std::size_t i : visible_) {
      if (!unseen_by_trees(i)) kept.push_back(i);
    }
    std::copy_if(judged.begin(), judged.end(), std::back_inserter(unseen), unseen_by_trees);
    fit_trees(kept, absolute_, squared_);
    judge(sample(unseen, kJudged), base, values, truth);
    choose_blend(values, truth);
    if (weight_[index(Method::kTreesAbsolute)] + weight_[index(Method::kTreesSquared)] > kWorthTrees) return;
    absolute_ = squared_ = Trees();
    values.clear(), truth.clear();
  }
  judge(sample(judged, kJudged), base, values, truth);
}

/// Leaves those rows that a question of the situation could be.
void Predictor::keep_answerable(std::vector<std::size_t>& rows, const Hidden& base) const {
  if (curves_.empty()) return;
  std::erase_if(rows, [&](std::size_t i) {
    Hidden hidden = base;
    hidden.of = options_.groups[i];
    return std::none_of(curves_.begin(), curves_.end(), [&](const Curves& c) {
      const auto between = c.around(family_->point(i), hidden);
      return between && between->inside == (options_.situation != Situation::kBeyond);
    });
  });
}

void Predictor::judge(const std::vector<std::size_t>& rows, const Hidden& base, std::vector<Values>& values,
                      std::vector<double>& truth) const {
  for (std::size_t i : rows) {
    Hidden hidden = base;
    hidden.of = options_.groups[i];
    values.push_back(all(family_->point(i), family_->flops[i], family_->bytes[i], hidden, false));
    truth.push_back(std::log(family_->latency_us[i]));
  }
}

}  // namespace fuselab::perfdb
