#include "fuselab/profile/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <mutex>
#include <numeric>

#include "fuselab/core/error.h"
#include "fuselab/graph/text.h"
#include "fuselab/profile/recorder.h"
#include "fuselab/runtime/compiled.h"

namespace fuselab::profile {
namespace {

namespace fs = std::filesystem;

double mean(std::span<const double> v) {
  return v.empty() ? 0 : std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

/// 99.95 % quantiles of Student's t for 1 to 9 degrees of freedom (any table of it).
double student(std::size_t freedom) {
  constexpr double kTable[] = {636.62, 31.599, 12.924, 8.610, 6.869, 5.959, 5.408, 5.041, 4.781};
  return kTable[std::min(freedom, std::size(kTable)) - 1];
}

std::span<const double> kept(std::span<const double> v, std::size_t count) { return v.first(std::min(v.size(), count)); }

std::string row(const std::string& label, double graph, double eager) {
  return fmt::format(" {:^4}  | {:>18.2f} | {:>18.2f} | {:>5.2f} x", label, graph, eager,
                     graph > 0 ? eager / graph : std::numeric_limits<double>::infinity());
}

/// Processor time of this thread: other processes do not count.
std::int64_t thread_ns() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

Ratio ratio(std::span<const double> graph, std::span<const double> other) {
  const std::size_t n = std::min({graph.size(), other.size(), std::size_t{kSteps}});
  graph = graph.first(n);
  other = other.first(n);
  const double g = mean(graph), o = mean(other);
  Ratio out;
  if (n == 0 || g <= 0) {
    out.value = n == 0 || o <= 0 ? 1 : std::numeric_limits<double>::infinity();
    return out;
  }
  out.value = o / g;
  if (n < 2) {
    out.spread = std::numeric_limits<double>::infinity();
    return out;
  }
  double squares = 0;  // of other - value * graph, whose mean is 0
  for (std::size_t i = 0; i < n; ++i) {
    const double d = other[i] - out.value * graph[i];
    squares += d * d;
  }
  const double error = std::sqrt(squares / static_cast<double>(n - 1) / static_cast<double>(n)) / g;
  out.spread = student(n - 1) * error;
  out.ambiguous = std::fabs(out.value - 1) <= std::max(out.spread, kResolution);
  return out;
}

std::vector<std::string> bench_table(const std::string& kernel, std::span<const double> graph, std::span<const double> eager) {
  const std::string rule = "-------+--------------------+--------------------+---------";
  const std::size_t count = std::min({graph.size(), eager.size(), std::size_t{kSteps}});
  std::vector<std::string> out = {"Benchmark: " + kernel, " Step  | Graph Mode (us)    | Eager (us)         |  Ratio", rule};
  for (std::size_t i = 0; i < count; ++i) out.push_back(row(std::to_string(i + 1), graph[i], eager[i]));
  out.push_back(rule);
  out.push_back(row("Avg", mean(kept(graph, count)), mean(kept(eager, count))));
  return out;
}

Ratio judged_ratio(const BenchSteps& steps) {
  Ratio out = ratio(steps.graph, steps.eager);
  if (!steps.again.empty() && !ratio(steps.graph, steps.again).ambiguous) out.ambiguous = true;
  return out;
}

std::vector<std::string> bench_verdict(const BenchSteps& steps) {
  std::vector<std::string> out;
  const Ratio own = ratio(steps.graph, steps.eager), judged = judged_ratio(steps);
  const std::size_t count = std::min({steps.graph.size(), steps.eager.size(), std::size_t{kSteps}});
  const char* word = own.ambiguous      ? "AMBIGUOUS: the ratio is inside the noise"
                     : judged.ambiguous ? "AMBIGUOUS: the control differs from itself"
                     : own.value > 1    ? "faster than "
                                        : "slower than ";
  out.push_back(fmt::format("spread: {:.2f} x +- {:.2f} (99.9 %, {} paired steps); {}{}", own.value, own.spread, count, word,
                            judged.ambiguous ? "" : steps.other));
  if (!steps.again.empty()) {
    const Ratio control = ratio(steps.graph, steps.again);
    out.push_back(
        fmt::format("control: graph mode against itself {:.2f} x +- {:.2f}; {}", control.value, control.spread,
                    control.ambiguous ? "AMBIGUOUS, as it must be" : "not the same: the machine is not quiet, measure again"));
  }
  if (!steps.artifact.empty()) {
    const Ratio artifact = ratio(steps.artifact, steps.eager);
    out.push_back(fmt::format("artifact: mean {:.2f} us, {:.2f} x +- {:.2f}{}", mean(kept(steps.artifact, kSteps)),
                              artifact.value, artifact.spread, artifact.ambiguous ? " (AMBIGUOUS)" : ""));
  }
  return out;
}

std::string newest_profile(const std::string& folder) {
  std::error_code error;
  fs::path best;
  fs::file_time_type latest{};
  std::vector<std::string> there;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    there.push_back(name);
    const bool ascend = name.ends_with("_ascend_pt");
    if (!ascend && !name.ends_with("_fuselab")) continue;
    const fs::path place = ascend ? it->path() / "ASCEND_PROFILER_OUTPUT" : it->path();
    std::error_code absent;
    const fs::file_time_type time = fs::last_write_time(place / "kernel_details.csv", absent);
    if (absent) continue;
    if (best.empty() || time > latest || (time == latest && place > best)) {
      best = place;
      latest = time;
    }
  }
  if (best.empty()) {
    std::sort(there.begin(), there.end());
    fail("profile.not_found",
         "{} has no *_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv and no *_fuselab/kernel_details.csv with 'Step Id' and "
         "'Duration(us)'; it holds {}. See docs/repro.md#no-kernel_details.",
         folder, there.empty() ? "nothing" : fmt::format("{}", fmt::join(there, ", ")));
  }
  return best.string();
}

std::int64_t last_level_cache_bytes() {
  for (const int level : {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE}) {
    const long bytes = sysconf(level);
    if (bytes > 0) return bytes;
  }
  return std::int64_t{32} << 20;
}

void evict_caches() {
  static std::mutex mutex;
  static std::vector<unsigned char> memory;
  const std::lock_guard lock(mutex);
  memory.resize(static_cast<std::size_t>(2 * last_level_cache_bytes()));
  volatile unsigned char* p = memory.data();
  for (std::size_t i = 0; i < memory.size(); i += 64) p[i] = static_cast<unsigned char>(p[i] + 1);
}

double recording_cost_ns() {
  const runtime::CompiledGraph graph(parse_graph("graph cost(x: f32[1]) {\n  y = neg(x)\n  return y\n}\n", "<profile cost>"));
  const std::vector<Tensor> inputs = {Tensor::of(DType::f32, {1}, {1.0})};
  constexpr int kCalls = 2000, kRounds = 15;
  const auto per_call = [&](bool recorded) {
    if (recorded) start_recording();
    graph(inputs);
    const std::int64_t begin = thread_ns();
    for (int i = 0; i < kCalls; ++i) graph(inputs);
    const std::int64_t end = thread_ns();
    if (recorded) stop_recording();
    return static_cast<double>(end - begin) / kCalls;
  };
  double off = std::numeric_limits<double>::infinity(), on = off;
  for (int round = 0; round < kRounds; ++round) {
    off = std::min(off, per_call(false));
    on = std::min(on, per_call(true));
  }
  return std::max(0.0, on - off);
}

}  // namespace fuselab::profile
