#include "fuselab/perfdb/loo.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "fuselab/core/error.h"

namespace fuselab::perfdb {
namespace {

const char* const kTasks[] = {"gemm-m", "gemm-nk", "ctx",     "ctx-seq", "gen",    "gen-seq",  "moe",
                              "ew",     "comm",    "generic", "extra1",  "extra3", "extrahalf"};

LooErrors summary(std::vector<double> e) {
  LooErrors out;
  out.n = e.size();
  if (e.empty()) return out;
  std::sort(e.begin(), e.end());
  const auto percentile = [&](double q) {
    const double at = q * static_cast<double>(e.size() - 1);
    const std::size_t low = static_cast<std::size_t>(at), high = std::min(low + 1, e.size() - 1);
    return e[low] + (e[high] - e[low]) * (at - static_cast<double>(low));
  };
  out.median = percentile(0.5);
  out.p90 = percentile(0.9);
  out.p99 = percentile(0.99);
  out.max = e.back();
  return out;
}

double ape(double predicted, double measured) { return std::abs(predicted - measured) / measured * 100; }

/// Rows that agree in every axis but `without` get one number.
std::vector<std::int32_t> group_by(const Family& family, const std::function<bool(std::size_t axis)>& without) {
  std::map<std::vector<double>, std::int32_t> number;
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < family.size(); ++i) {
    std::vector<double> key;
    for (std::size_t a = 0; a < family.axes.size(); ++a) {
      if (!without(a)) key.push_back(family.at(i, a));
    }
    out.push_back(number.emplace(std::move(key), static_cast<std::int32_t>(number.size())).first->second);
  }
  return out;
}

std::size_t axis_named(const Family& family, const char* name) {
  for (std::size_t a = 0; a < family.axes.size(); ++a) {
    if (family.axes[a].name == name) return a;
  }
  return family.axes.size();
}

/// Rows with a row on both sides along an axis.
std::vector<std::uint8_t> inside_along(const Family& family, std::size_t axis) {
  std::map<std::vector<double>, std::pair<double, double>> ends;
  const auto key = [&](std::size_t i) {
    std::vector<double> k(family.point(i), family.point(i) + family.axes.size());
    k[axis] = 0;
    return k;
  };
  for (std::size_t i = 0; i < family.size(); ++i) {
    const double v = family.at(i, axis);
    auto& [low, high] = ends.emplace(key(i), std::pair(v, v)).first->second;
    low = std::min(low, v), high = std::max(high, v);
  }
  std::vector<std::uint8_t> out(family.size());
  for (std::size_t i = 0; i < family.size(); ++i) {
    const auto& [low, high] = ends.at(key(i));
    out[i] = family.at(i, axis) > low && family.at(i, axis) < high;
  }
  return out;
}

struct Tally {
  std::vector<double> ours, linear, width;
  std::size_t inside = 0;

  void add(const std::optional<Estimate>& estimate, const std::optional<double>& straight, double truth, LooResult& result) {
    ++result.scored;
    if (straight) linear.push_back(ape(*straight, truth));
    if (!estimate) {
      ++result.missed;
      return;
    }
    ours.push_back(ape(estimate->latency_us, truth));
    width.push_back((estimate->high_us - estimate->low_us) / estimate->latency_us);
    inside += truth >= estimate->low_us && truth <= estimate->high_us ? 1 : 0;
  }
  void finish(LooResult& result) {
    result.inside = ours.empty() ? 0 : 100.0 * static_cast<double>(inside) / static_cast<double>(ours.size());
    result.ours = summary(std::move(ours));
    result.linear = summary(std::move(linear));
    result.width = summary(std::move(width)).median;
  }
};

struct Inner {
  std::string task;
  Situation situation;
  std::vector<std::int32_t> groups;
  std::vector<std::uint8_t> scored;
};

LooResult run_inner(const Family& family, const DeviceProfile* device, Inner task, const LooOptions& options) {
  LooResult result{task.task, family.file, family.regime, family.kind, 0, 0, {}, {}, 0, 0, {}};
  Tally tally;
  const std::size_t n = family.size();
  // More of them on small families, where a part that is missing thins the neighbours that methods are judged with.
  constexpr std::size_t kLarge = 15000;
  const int folds = std::max(2, std::min<int>(n > kLarge ? options.folds : 2 * options.folds, static_cast<int>(n)));
  // Parts of the groups, by a hash of their number: neighbours on a curve fall into different ones.
  const auto fold_of = [&](std::size_t i) {
    return static_cast<int>((static_cast<std::uint64_t>(task.groups[i]) * 0x9E3779B97F4A7C15u >> 40) %
                            static_cast<std::uint64_t>(folds));
  };
  for (int fold = 0; fold < folds; ++fold) {
    PredictorOptions choice;
    choice.situation = task.situation;
    choice.coverage = options.coverage;
    choice.device = device;
    choice.groups = task.groups;
    choice.held_out.assign(n, 0);
    std::size_t rest = n, asked = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (fold_of(i) != fold) continue;
      choice.held_out[i] = 1;
      --rest;
      asked += task.scored[i];
    }
    if (asked == 0 || rest == 0) continue;
    if (options.progress) options.progress(static_cast<double>(fold) / folds, fmt::format("{} {}", family.file, task.task));
    const Predictor predictor(family, choice);
    if (result.method.empty()) result.method = predictor.method();
    for (std::size_t i = 0; i < n; ++i) {
      if (fold_of(i) != fold || !task.scored[i]) continue;
      tally.add(predictor.predict(family.point(i), family.flops[i], family.bytes[i], task.groups[i]),
                predictor.linear(family.point(i), task.groups[i]), family.latency_us[i], result);
    }
  }
  tally.finish(result);
  return result;
}

LooResult run_beyond(const Family& family, const DeviceProfile* device, const std::string& task, double cut, double octaves,
                     const LooOptions& options) {
  LooResult result{task, family.file, family.regime, family.kind, 0, 0, {}, {}, 0, 0, {}};
  std::size_t axis = 0;
  while (axis < family.axes.size() && family.axes[axis].role != AxisRole::kCurve) ++axis;
  if (axis == family.axes.size()) return result;
  Family rest = family;
  const std::size_t d = family.axes.size();
  rest.x.clear(), rest.latency_us.clear(), rest.flops.clear(), rest.bytes.clear(), rest.line.clear();
  std::map<std::vector<double>, int> left;
  const auto key = [&](std::size_t i) {
    std::vector<double> k(family.point(i), family.point(i) + d);
    k[axis] = 0;
    return k;
  };
  for (std::size_t i = 0; i < family.size(); ++i) {
    if (family.at(i, axis) > cut) continue;
    ++left[key(i)];
    rest.x.insert(rest.x.end(), family.point(i), family.point(i) + d);
    rest.latency_us.push_back(family.latency_us[i]);
    rest.flops.push_back(family.flops[i]);
    rest.bytes.push_back(family.bytes[i]);
    rest.line.push_back(family.line[i]);
  }
  if (rest.size() == 0) return result;
  PredictorOptions choice;
  choice.situation = Situation::kBeyond;
  choice.octaves = octaves;
  choice.coverage = options.coverage;
  choice.device = device;
  if (options.progress) options.progress(0, fmt::format("{} {}", family.file, task));
  const Predictor predictor(rest, choice);
  result.method = predictor.method();
  Tally tally;
  for (std::size_t i = 0; i < family.size(); ++i) {
    if (family.at(i, axis) <= cut) continue;
    const auto found = left.find(key(i));
    if (found == left.end() || found->second < 2) continue;
    tally.add(predictor.predict(family.point(i), family.flops[i], family.bytes[i]), predictor.linear(family.point(i)),
              family.latency_us[i], result);
  }
  tally.finish(result);
  return result;
}

}  // namespace

std::vector<LooResult> leave_one_out(const Family& family, const DeviceProfile* device, double smallest, double largest,
                                     const LooOptions& options) {
  const auto wanted = [&](const std::string& task) { return options.task.empty() || options.task == task; };
  std::vector<LooResult> out;
  const auto rows = group_by(family, [](std::size_t) { return false; });
  const auto inner = [&](const std::string& task, Situation situation, std::vector<std::int32_t> groups,
                         std::vector<std::uint8_t> scored) {
    if (!wanted(task) || std::find(scored.begin(), scored.end(), 1) == scored.end()) return;
    out.push_back(run_inner(family, device, {task, situation, std::move(groups), std::move(scored)}, options));
  };
  const auto curve = [&] {
    for (std::size_t a = 0; a < family.axes.size(); ++a) {
      if (family.axes[a].role == AxisRole::kCurve) return a;
    }
    return std::size_t{0};
  }();
  const auto along = inside_along(family, curve);
  switch (family.kind) {
    case FamilyKind::kMatmul: {
      inner("gemm-m", Situation::kOnCurve, rows, along);
      inner("gemm-nk", Situation::kNewCurve, group_by(family, [&](std::size_t a) { return a == curve; }),
            std::vector<std::uint8_t>(family.size(), 1));
      break;
    }
    case FamilyKind::kAttention: {
      const bool prefill = family.regime.find(" prefill") != std::string::npos;
      const std::size_t batch = axis_named(family, "batch");
      std::vector<std::uint8_t> scored = along;
      if (prefill) {
        const auto other = inside_along(family, batch);
        for (std::size_t i = 0; i < scored.size(); ++i) scored[i] |= other[i];
      }
      inner(prefill ? "ctx" : "gen", Situation::kOnCurve, rows, scored);
      inner(prefill ? "ctx-seq" : "gen-seq", Situation::kOnCurve, group_by(family, [&](std::size_t a) { return a == batch; }),
            along);
      break;
    }
    case FamilyKind::kMoe:
      inner("moe", Situation::kOnCurve, rows, along);
      break;
    case FamilyKind::kElementwise:
      inner("ew", Situation::kOnCurve, rows, along);
      break;
    case FamilyKind::kCommunication: {
      const std::size_t dtype = axis_named(family, "dtype");
      inner("comm", Situation::kOnCurve, group_by(family, [&](std::size_t a) { return a == dtype; }), along);
      break;
    }
    case FamilyKind::kGeneric:
      inner("generic", Situation::kOnCurve, rows, along);
      break;
  }
  const std::pair<const char*, double> kEnds[] = {
      {"extra1", largest / 2}, {"extra3", largest / 8}, {"extrahalf", std::sqrt(smallest * largest)}};
  for (const auto& [task, cut] : kEnds) {
    if (!wanted(task)) continue;
    const double octaves = std::string(task) == "extra1" ? 1 : kMostOctaves;
    LooResult result = run_beyond(family, device, task, cut, octaves, options);
    if (result.scored > 0) out.push_back(std::move(result));
  }
  return out;
}

std::vector<LooResult> leave_one_out(const std::string& directory, const LooOptions& options) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(directory)) fail("perfdb.no_directory", "{} is not a directory of kernel CSV files.", directory);
  if (!options.task.empty() && std::find(std::begin(kTasks), std::end(kTasks), options.task) == std::end(kTasks)) {
    fail("perfdb.unknown_task", "'{}' is no task; there are {}.", options.task, fmt::join(kTasks, ", "));
  }
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.is_regular_file() && entry.path().extension() == ".csv") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  const auto device = device_of_directory(directory);
  std::vector<LooResult> out;
  for (std::size_t f = 0; f < files.size(); ++f) {
    std::vector<Family> families;
    for (const Family& family : read_families(files[f])) families.push_back(without_duplicates(family));
    double smallest = HUGE_VAL, largest = 0;
    for (const Family& family : families) {
      for (std::size_t i = 0; i < family.size(); ++i) {
        smallest = std::min(smallest, family.at(i, 0));
        largest = std::max(largest, family.at(i, 0));
      }
    }
    for (std::size_t k = 0; k < families.size(); ++k) {
      if (families[k].size() < 3) continue;
      LooOptions part = options;
      if (options.progress) {
        part.progress = [&](double share, const std::string& what) {
          const double inner = (static_cast<double>(k) + share) / static_cast<double>(families.size());
          options.progress((static_cast<double>(f) + inner) / static_cast<double>(files.size()), what);
        };
      }
      for (LooResult& result : leave_one_out(families[k], device ? &*device : nullptr, smallest, largest, part))
        out.push_back(std::move(result));
    }
  }
  return out;
}

}  // namespace fuselab::perfdb
