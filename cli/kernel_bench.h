// --bench and --profile of one kernel, without Python.
#pragma once
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "cli/launch.h"

namespace fuselab::cli {

struct KernelBench {
  const Graph& fragment;
  const codegen::Source& source;
  std::vector<Tensor>& inputs;
  const Symbols& symbols;
  std::uint64_t seed = 0;
  bool given = false;  ///< the inputs are somebody's data: steps move it in memory and make no other
  const CheckOptions& options;
};

struct BenchResult {
  std::vector<std::string> lines;
  nlohmann::ordered_json document;
  bool passed = true;  ///< results were right before and after
};

/// The operators one by one, the fragment compiled anew (twice: the second is the control) and the artifact, 11 steps by turns,
/// other inputs in each; profiles in ./bench_eager_prof and ./bench_compiled_prof. Throws what compiling, calling and writing
/// files throw.
BenchResult bench_kernel(const KernelBench& kernel, bool cold);
/// The table of the newest profiles in these two folders, torch_npu's or ours; runs nothing.
BenchResult recorded_bench(const std::string& name);
/// The artifact 11 times; a row per launch of the last 10 in ./profiling.
BenchResult profile_kernel(const KernelBench& kernel);

}  // namespace fuselab::cli
