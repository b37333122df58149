// Timing two ways to compute the same thing: what their steps say together, as lines; where profiles are; caches.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuselab::profile {

/// 11 steps are run, the first is skipped, 10 are kept.
inline constexpr int kLoops = 11, kSkipped = 1, kSteps = kLoops - kSkipped;
/// Where code and data happen to lie moves a time by this share; a smaller difference is none.
inline constexpr double kResolution = 0.01;

/// Averages of paired steps, `other / graph`: above 1 `graph` is the faster one.
struct Ratio {
  double value = 1;   ///< infinite when graph took no time
  double spread = 0;  ///< half of the interval that holds the true ratio with 99.9 % (Student's t over the steps' differences)
  bool ambiguous = true;  ///< 1 lies within max(spread, kResolution) of the ratio
};
/// Step i of both was run under the same load, one after the other: drift of the machine cancels. At most kSteps count.
Ratio ratio(std::span<const double> graph, std::span<const double> other);

/// The table that tools parse: at most kSteps rows, then the averages.
std::vector<std::string> bench_table(const std::string& kernel, std::span<const double> graph, std::span<const double> eager);

/// Microseconds per step of what is compared. `again` is the graph path once more, by turns with the first: a control that must
/// be AMBIGUOUS. `artifact` may be empty. `unfused`: what the other path is called.
struct BenchSteps {
  std::vector<double> graph, eager, again, artifact;
  std::string other = "eager";
};
/// Lines below the table: the ratio with its spread and the verdict, the control, the artifact.
std::vector<std::string> bench_verdict(const BenchSteps& steps);
/// The ratio of the table, AMBIGUOUS also when the control says that the machine was not quiet.
Ratio judged_ratio(const BenchSteps& steps);

/// Folder of the newest kernel_details.csv below `folder`: `*_ascend_pt/ASCEND_PROFILER_OUTPUT/` (torch_npu's) or `*_fuselab/`
/// (ours). Throws Error("profile.not_found"): what was looked for, and what is there.
std::string newest_profile(const std::string& folder);

/// Bytes of the last-level cache; 32 MiB when the system does not say.
std::int64_t last_level_cache_bytes();
/// Reads and writes twice that much memory, so that what is used next comes from memory.
void evict_caches();

/// Nanoseconds that recording adds to a launch, measured on this machine by calls of a graph with one small kernel. Throws
/// Error("profile.running") while something is recorded.
double recording_cost_ns();

}  // namespace fuselab::profile
