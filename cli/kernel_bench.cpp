#include "cli/kernel_bench.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "fuselab/core/random.h"
#include "fuselab/graph/bind.h"
#include "fuselab/numerics/verdict.h"
#include "fuselab/profile/bench.h"
#include "fuselab/profile/recorder.h"
#include "fuselab/reference/reference.h"
#include "fuselab/runtime/observe.h"

namespace fuselab::cli {
namespace {

std::string new_folder(const std::string& parent) {
  const auto now = std::chrono::system_clock::now();
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count() % 1'000'000'000;
  return fmt::format("{}/cpu_{:%Y%m%d%H%M%S}{:09}_fuselab", parent, fmt::localtime(std::chrono::system_clock::to_time_t(now)),
                     nanos);
}

/// Other values in the same memory, the same for the same step: few random ones are drawn anew, others and given data move on.
void refill(const KernelBench& k, const std::vector<Tensor>& originals, std::uint64_t step) {
  for (std::size_t i = 0; i < k.inputs.size(); ++i) {
    Tensor& t = k.inputs[i];
    if (t.numel() == 0) continue;
    if (!k.given && t.numel() < 4096) {
      fill_random(t, k.seed + 1 + step, i, {1, 9});
      continue;
    }
    const std::int64_t bytes = originals[i].extent_bytes();
    const std::int64_t shift = static_cast<std::int64_t>((step + 1) * 977) * size_of(t.dtype()) % bytes;
    const auto* from = static_cast<const char*>(originals[i].data());
    std::rotate_copy(from, from + shift, from + bytes, static_cast<char*>(t.data()));
  }
}

struct PathResults {
  const char* label;
  codegen::Precision mode;
  const std::vector<Tensor>& results;
};

/// The verdict on every output of each path against the operators one by one and fp64; "" or the line of the first wrong one.
std::string wrong(const KernelBench& k, const std::vector<Tensor>& expected, const std::vector<PathResults>& paths) {
  std::map<codegen::Precision, std::vector<reference::Output>> known;
  for (const PathResults& path : paths) {
    if (!known.count(path.mode)) {
      reference::Options o;
      if (path.mode == codegen::Precision::eager) o.rounding = reference::Rounding::eager;
      o.any_borders = !k.options.codegen.keep_dtype.empty();
      known[path.mode] = reference::fp64_reference(concrete(k.fragment, k.symbols), k.inputs, o);
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const bool seen = std::any_of(paths.data(), &path, [&](const PathResults& other) {
        return other.mode == path.mode && numerics::bit_equal(other.results.at(i), path.results.at(i));
      });
      if (seen) continue;  // the same bits have been judged
      numerics::Evidence evidence;
      evidence.expected = expected[i];
      evidence.actual = path.results.at(i);
      evidence.reference = &known[path.mode].at(i);
      const numerics::Verdict verdict = numerics::judge(evidence);
      if (!verdict.passed) return numerics::precision_line(k.fragment.values[k.fragment.outputs[i]].name, path.label, verdict);
    }
  }
  return "";
}

void write_steps(const std::string& parent, const std::string& name,
                 const std::vector<std::pair<std::int64_t, std::int64_t>>& spans) {
  profile::start_recording();
  std::int64_t step = 0;
  for (const auto& [begin, end] : spans) {
    profile::mark_step(++step);
    profile::record_span(name, "call", begin, end);
  }
  profile::write_profile(new_folder(parent), profile::stop_recording());
}

std::vector<double> sums(const std::string& parent) {
  std::vector<double> out;
  const std::string file = profile::newest_profile(parent) + "/kernel_details.csv";
  for (const auto& [step, us] : profile::step_sums(profile::read_kernel_details(file))) out.push_back(us);
  return out;
}

}  // namespace

BenchResult bench_kernel(const KernelBench& k, bool cold) {
  runtime::Options one_by_one, anew;
  one_by_one.fuse.enable = false;
  one_by_one.codegen = anew.codegen = k.options.codegen;
  anew.codegen.precision = k.options.recompile_mode.value_or(k.options.codegen.precision);
  one_by_one.jit.read_cache = anew.jit.read_cache = k.options.read_cache;
  const runtime::CompiledGraph unfused(k.fragment, one_by_one), compiled(k.fragment, anew),
      artifact = artifact_graph(k.fragment, k.source, anew);
  const std::vector<std::int64_t> sizes = size_arguments(k.fragment, k.symbols);
  std::vector<Tensor> originals;
  for (const Tensor& t : k.inputs) originals.push_back(t.clone());

  const runtime::CompiledGraph* const who[] = {&unfused, &compiled, &compiled, &artifact};
  constexpr std::size_t kPaths = std::size(who);
  std::vector<std::pair<std::int64_t, std::int64_t>> spans[kPaths];
  std::vector<Tensor> results[kPaths];
  const auto run = [&](std::size_t p, bool sweep = false) {
    results[p].clear();
    if (sweep) profile::evict_caches();  // before the clock is read
    const std::int64_t begin = runtime::now_ns();
    results[p] = (*who[p])(k.inputs, sizes);
    return std::pair{begin, runtime::now_ns()};
  };
  BenchResult out;
  for (std::size_t p = 0; p < kPaths; ++p) run(p);
  const codegen::Precision own = k.options.codegen.precision, mode = anew.codegen.precision;
  const auto judged = [&] {
    return wrong(k, results[0],
                 {{"precision", mode, results[1]}, {"precision", mode, results[2]}, {"artifact", own, results[3]}});
  };
  std::string problem = judged();
  const bool before = problem.empty();
  for (int step = 0; step < profile::kLoops; ++step) {
    for (std::size_t i = 0; i < kPaths; ++i) {
      const std::size_t p = step % 2 == 0 ? i : kPaths - 1 - i;  // by turns in both orders: drift falls on all alike
      refill(k, originals, static_cast<std::uint64_t>(profile::kLoops + step));
      run(p);  // finds its own code in the caches next time, not that of the path before
      refill(k, originals, static_cast<std::uint64_t>(step));
      const auto span = run(p, cold);
      if (step >= profile::kSkipped) spans[p].push_back(span);
    }
  }
  if (problem.empty()) problem = judged();
  for (std::size_t i = 0; i < k.inputs.size(); ++i)
    std::memcpy(k.inputs[i].data(), originals[i].data(), static_cast<std::size_t>(originals[i].extent_bytes()));

  write_steps("bench_eager_prof", "unfused", spans[0]);
  write_steps("bench_compiled_prof", k.source.name, spans[1]);
  const auto microseconds = [](const auto& list) {
    std::vector<double> us;
    for (const auto& [begin, end] : list) us.push_back(static_cast<double>(end - begin) / 1000);
    return us;
  };
  const profile::BenchSteps steps{sums("bench_compiled_prof"), sums("bench_eager_prof"), microseconds(spans[2]),
                                  microseconds(spans[3]), "unfused"};
  out.lines = profile::bench_table(k.source.name, steps.graph, steps.eager);
  for (std::string& line : profile::bench_verdict(steps)) out.lines.push_back(std::move(line));
  out.passed = problem.empty();
  out.lines.push_back(out.passed ? "outputs: right before and after the timing"
                                 : fmt::format("outputs: FAILED {} the timing: {}", before ? "after" : "before", problem));
  const double cost = profile::recording_cost_ns();
  out.lines.push_back(fmt::format("profiler: {:.0f} ns per launch", cost));
  const profile::Ratio found = profile::judged_ratio(steps);
  out.document = {{"graph_us", steps.graph},
                  {"eager_us", steps.eager},
                  {"control_us", steps.again},
                  {"artifact_us", steps.artifact},
                  {"ratio", found.value},
                  {"spread", found.spread},
                  {"ambiguous", found.ambiguous},
                  {"outputs", out.passed},
                  {"cold", cold},
                  {"profiler_ns", cost}};
  return out;
}

BenchResult recorded_bench(const std::string& name) {
  const std::string eager = profile::newest_profile("bench_eager_prof"), graph = profile::newest_profile("bench_compiled_prof");
  const profile::BenchSteps steps{sums("bench_compiled_prof"), sums("bench_eager_prof"), {}, {}, "eager"};
  BenchResult out;
  out.lines = profile::bench_table(name, steps.graph, steps.eager);
  for (std::string& line : profile::bench_verdict(steps)) out.lines.push_back(std::move(line));
  out.lines.push_back("read from " + eager + " and " + graph);
  const profile::Ratio found = profile::judged_ratio(steps);
  out.document = {{"graph_us", steps.graph}, {"eager_us", steps.eager},      {"ratio", found.value},
                  {"spread", found.spread},  {"ambiguous", found.ambiguous}, {"folders", nlohmann::json::array({eager, graph})}};
  return out;
}

BenchResult profile_kernel(const KernelBench& k) {
  runtime::Options options;
  options.codegen = k.options.codegen;
  options.jit.read_cache = k.options.read_cache;
  const runtime::CompiledGraph artifact = artifact_graph(k.fragment, k.source, options);
  const std::vector<std::int64_t> sizes = size_arguments(k.fragment, k.symbols);
  for (int i = 0; i < profile::kSkipped; ++i) artifact(k.inputs, sizes);
  profile::start_recording();
  for (int step = 1; step <= profile::kSteps; ++step) {
    profile::mark_step(step);
    artifact(k.inputs, sizes);
  }
  const std::string folder = new_folder("profiling");
  profile::write_profile(folder, profile::stop_recording());
  const std::vector<double> us = sums("profiling");
  BenchResult out;
  const double mean = std::accumulate(us.begin(), us.end(), 0.0) / static_cast<double>(us.size());
  out.lines.push_back(fmt::format("profile: {} steps, mean {:.2f} us, written to {}", us.size(), mean, folder));
  out.document = {{"folder", folder}, {"steps_us", us}};
  return out;
}

}  // namespace fuselab::cli
