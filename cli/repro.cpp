// fuselab repro: the modes of benchmark.py on a kernel's debug folder, without Python.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>

#include "cli/common.h"
#include "cli/kernel_bench.h"
#include "cli/launch.h"
#include "fuselab/core/error.h"
#include "fuselab/graph/bind.h"
#include "fuselab/graph/text.h"

namespace fuselab::cli {
namespace {

struct Args {
  std::string folder, file, precision;
  std::vector<std::string> inputs, sizes;
  std::uint64_t seed = 0;
  bool check = false, bench = false, profile = false, cold = false, recorded = false, e2e = false, json = false, no_cache = false,
       verbose = false;
};

/// The texts in artifacts.json. Throws Error("repro.artifacts") for anything but the texts of one kernel.
codegen::Source read_artifacts(const std::string& path, Symbols& sizes, std::optional<IntRanges>& ranges) {
  const std::string text = read_file(path);
  codegen::Source source;
  try {
    const auto document = nlohmann::json::parse(text);
    source.name = document.at("name").get<std::string>();
    source.tiling_def = document.at("tiling_def").get<std::string>();
    source.host_impl = document.at("host_impl").get<std::string>();
    source.device_impl = document.at("device_impl").get<std::string>();
    if (document.contains("sizes")) source.sizes = document.at("sizes").get<std::vector<std::string>>();
    if (document.contains("size_hints"))  // the sizes the folder was made with; those of the command line win
      for (const auto& [name, value] : document.at("size_hints").items()) sizes.emplace(name, value.get<std::int64_t>());
    if (document.contains("int_ranges")) {
      ranges.emplace();
      for (const auto& [name, range] : document.at("int_ranges").items())
        (*ranges)[name] = {range.at(0).get<std::int64_t>(), range.at(1).get<std::int64_t>()};
    }
    if (document.contains("hash")) source.hash = document.at("hash").get<std::string>();
  } catch (const nlohmann::json::exception& e) {
    fail("repro.artifacts", "{} does not hold the texts of a kernel: {}", path, e.what());
  }
  return source;
}

/// Precision mode and exemptions the kernel was made with; the defaults where the file does not say.
codegen::Options made_with(const std::string& path) {
  codegen::Options options;
  try {
    const auto document = nlohmann::json::parse(read_file(path));
    if (document.value("precision", "block") == "eager") options.precision = codegen::Precision::eager;
    if (document.contains("keep_dtype")) options.keep_dtype = document.at("keep_dtype").get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& e) {
    fail("repro.artifacts", "{} does not hold the texts of a kernel: {}", path, e.what());
  }
  return options;
}

void repro(const Args& args) {
  if (!args.check && !args.bench && !args.profile)
    throw UsageError("say what to do with the kernel: --check, --bench or --profile.");
  if ((args.cold || args.recorded) && !args.bench) throw UsageError("--cold and --recorded go with --bench.");
  const std::string folder = args.folder + "/";
  const Graph fragment = load_graph(folder + "fragment.graph");
  Symbols symbols = parse_sizes(args.sizes);
  std::optional<IntRanges> ranges;
  codegen::Source source = read_artifacts(folder + "artifacts.json", symbols, ranges);
  std::vector<kernel::Bound> bounds;
  if (args.e2e) {
    codegen::Generated made = codegen::generate_from_ir(read_file(folder + "kernel.ir"), folder + "kernel.ir", &fragment);
    source = std::move(made.source);
    bounds = std::move(made.bounds);
  }
  std::vector<Tensor> inputs = make_inputs(fragment, args.inputs, symbols, args.seed, true, ranges ? &*ranges : nullptr);
  if (!args.file.empty()) inputs_from_file(fragment, args.file, inputs);
  kernel::check_bounds(bounds, bind_symbols(fragment, inputs, symbols));
  CheckOptions options;
  options.codegen = made_with(folder + "artifacts.json");
  options.read_cache = !args.no_cache;
  options.recompile = true;
  if (!args.precision.empty())
    options.recompile_mode = args.precision == "eager" ? codegen::Precision::eager : codegen::Precision::block;

  nlohmann::ordered_json document = {{"kernel", source.name}, {"seed", args.seed}};
  std::vector<std::string> lines = {fmt::format("kernel {}, seed {}", source.name, args.seed)};
  const auto say = [&](const std::vector<std::string>& more) {
    for (const std::string& line : more) {
      if (!args.json) std::cout << line << std::endl;
      if (&more != &lines) lines.push_back(line);
    }
  };
  say(lines);
  bool passed = true;
  if (args.check) {
    const KernelCheck result = check_kernel(fragment, source, inputs, symbols, "artifact", options);
    say(result.lines);
    document["failed"] = result.failed;
    passed = result.passed();
  }
  if (args.bench || args.profile) {
    const KernelBench kernel{fragment, source, inputs, symbols, args.seed, !args.file.empty() || !args.inputs.empty(), options};
    if (args.bench) {
      if (args.e2e && !args.recorded)
        say({"NOTE: --e2e changes the artifact's time, not the table, which times the fragment compiled anew"});
      const BenchResult result = args.recorded ? recorded_bench(source.name) : bench_kernel(kernel, args.cold);
      say(result.lines);
      document["bench"] = result.document;
      passed = passed && result.passed;
    }
    if (args.profile) {
      const BenchResult result = profile_kernel(kernel);
      say(result.lines);
      document["profile"] = result.document;
    }
  }
  if (!passed) set_exit(kFailed);
  document["passed"] = passed;
  document["lines"] = lines;
  if (args.json) print_json(document);
}

}  // namespace

void add_repro(CLI::App& app) {
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("repro", "check, time or profile the kernel of a debug folder");
  command->add_option("folder", args->folder, "folder with artifacts.json and fragment.graph")->required();
  command->add_flag("--check", args->check,
                    "compare the kernel's text and the fragment compiled anew with fp64 and with the operators one by one");
  command->add_flag("--bench", args->bench, "time the fragment compiled anew against the operators one by one");
  command->add_flag("--profile", args->profile, "run the kernel's text 11 times and write ./profiling");
  command->add_flag("--cold", args->cold, "with --bench: nothing is in a cache when a step begins");
  command->add_flag(
      "--recorded", args->recorded,
      "with --bench: the table of the newest profiles in ./bench_eager_prof and ./bench_compiled_prof; runs nothing");
  command->add_flag("--e2e", args->e2e, "make the text anew from kernel.ir, which may have been edited");
  command->add_option("--inputs", args->file, "inputs from a file of named tensors (.safetensors), as capture_inputs saves them");
  command->add_option("--precision", args->precision, "of the fragment compiled anew (default: as the kernel was made)")
      ->check(CLI::IsMember({"block", "eager"}));
  command->add_option("--input", args->inputs, "NAME=FILE.npy or NAME=random; inputs not named are random");
  command->add_option("--size", args->sizes, "NAME=NUMBER: the value of a symbolic size");
  command->add_option("--seed", args->seed, "seed of random inputs (default 0)");
  command->add_flag("--no-cache", args->no_cache, "compile anew");
  command->add_flag("--json", args->json, "as JSON");
  command->add_flag("--verbose", args->verbose, "taken as benchmark.py takes it; errors here have no traceback");
  command->footer(
      "Exit 0 passed, 1 failed, 2 the call was wrong.\nExample:\n"
      "  fuselab repro fuselab_debug/run_1/model__0/autofused_reduce_softmax_1a2b3c4d --check\n"
      "  fuselab repro DIR --bench --cold\n  fuselab repro DIR --check --e2e --inputs DIR/inputs.safetensors");
  command->callback([args] { repro(*args); });
}

}  // namespace fuselab::cli
