// fuselab profile: what a profile says, by kernel.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "cli/common.h"
#include "fuselab/core/error.h"
#include "fuselab/profile/bench.h"
#include "fuselab/profile/kernel_details.h"
#include "fuselab/profile/trace.h"

namespace fuselab::cli {
namespace {

struct Args {
  std::string path;
  bool json = false, salvage = false;
};

struct Sum {
  std::int64_t launches = 0;
  double us = 0;
};

/// A folder: the newest profile in or below it.
std::string file_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  const fs::path own = fs::path(path) / "kernel_details.csv",
                 theirs = fs::path(path) / "ASCEND_PROFILER_OUTPUT/kernel_details.csv";
  if (fs::exists(own, error)) return own.string();
  if (fs::exists(theirs, error)) return theirs.string();
  return profile::newest_profile(path) + "/kernel_details.csv";
}

void summarise(const Args& args) {
  const std::string file = file_of(args.path);
  std::map<std::string, Sum> sums;
  std::vector<std::pair<std::int64_t, double>> steps;
  std::int64_t lost = 0, without_time = 0;
  const auto add = [&](const std::string& name, std::optional<double> us) {
    Sum& sum = sums[name];
    ++sum.launches;
    sum.us += us.value_or(0);
    without_time += !us;
  };
  if (file.ends_with(".json")) {
    const profile::Trace trace = profile::read_trace(file, args.salvage);
    lost = trace.lost;
    for (const profile::TraceEvent& e : trace.events) {
      if (e.phase != "X") continue;
      add(e.name, e.duration_ns ? std::optional(static_cast<double>(*e.duration_ns) / 1000) : std::nullopt);
    }
    if (sums.empty()) fail("profile.empty", "{}: no kernels in profile, no event has a duration.", file);
  } else {
    const profile::KernelTable table = profile::read_kernel_details(file);
    for (const profile::KernelRow& r : table.rows) add(r.name.empty() ? r.type : r.name, r.duration_us);
    if (table.has("Step Id")) steps = profile::step_sums(table);
  }
  std::vector<std::pair<std::string, Sum>> order(sums.begin(), sums.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
  if (args.json) {
    nlohmann::ordered_json kernels = nlohmann::ordered_json::array(), per_step = nlohmann::ordered_json::array();
    for (const auto& [name, sum] : order) kernels.push_back({{"name", name}, {"launches", sum.launches}, {"us", sum.us}});
    for (const auto& [step, us] : steps) per_step.push_back({{"step", step}, {"us", us}});
    print_json({{"file", file}, {"kernels", kernels}, {"steps", per_step}, {"without_time", without_time}, {"lost", lost}});
    return;
  }
  std::cout << fmt::format("{}\n{:>9}  {:>14}  kernel\n", file, "launches", "us");
  for (const auto& [name, sum] : order) std::cout << fmt::format("{:>9}  {:>14.3f}  {}\n", sum.launches, sum.us, name);
  for (const auto& [step, us] : steps) std::cout << fmt::format("step {}: {:.3f} us\n", step, us);
  if (without_time) std::cout << without_time << " launches have no duration in the file: they are counted, not summed\n";
  if (lost) std::cout << lost << " pieces of the file are no event and are left out\n";
}

}  // namespace

void add_profile(CLI::App& app) {
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("profile", "what a profile says, by kernel: ours, torch_npu's, msprof's, any trace");
  command->add_option("path", args->path, "kernel_details.csv, op_summary.csv, trace_view.json, or a folder with a profile")
      ->required();
  command->add_flag("--salvage", args->salvage, "of a trace that is no JSON: the events around the broken place");
  command->add_flag("--json", args->json, "as JSON");
  command->footer(
      "Exit 2 when the file has no kernels.\nExamples:\n  fuselab profile profiling\n  fuselab profile trace_view.json "
      "--salvage");
  command->callback([args] {
    try {
      summarise(*args);
    } catch (const Error& e) {  // whatever it is, it is about the file that was given
      throw UsageError(e.what());
    }
  });
}

}  // namespace fuselab::cli
