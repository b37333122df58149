// fuselab repro: the check of a kernel's debug folder, without Python.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "cli/common.h"
#include "cli/launch.h"
#include "fuselab/core/error.h"
#include "fuselab/graph/text.h"

namespace fuselab::cli {
namespace {

struct Args {
  std::string folder;
  std::vector<std::string> inputs, sizes;
  std::uint64_t seed = 0;
  bool check = false, e2e = false, json = false, no_cache = false;
};

/// The texts in artifacts.json. Throws Error("repro.artifacts") for anything but the texts of one kernel.
codegen::Source read_artifacts(const std::string& path, Symbols& sizes) {
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
  if (!args.check) throw UsageError("repro has one mode without Python: --check; benchmark.py in the folder has the others.");
  const std::string folder = args.folder + "/";
  const Graph fragment = load_graph(folder + "fragment.graph");
  Symbols symbols = parse_sizes(args.sizes);
  codegen::Source source = read_artifacts(folder + "artifacts.json", symbols);
  if (args.e2e) source = codegen::generate_from_ir(read_file(folder + "kernel.ir"), folder + "kernel.ir").source;
  const std::vector<Tensor> inputs = make_inputs(fragment, args.inputs, symbols, args.seed, true);
  CheckOptions options;
  options.codegen = made_with(folder + "artifacts.json");
  options.read_cache = !args.no_cache;
  const KernelCheck result = check_kernel(fragment, source, inputs, symbols, "artifact", options);
  if (!result.passed()) set_exit(kFailed);
  if (args.json) {
    print_json({{"kernel", result.kernel},
                {"seed", args.seed},
                {"passed", result.passed()},
                {"failed", result.failed},
                {"lines", result.lines}});
    return;
  }
  std::cout << "kernel " << result.kernel << ", seed " << args.seed << "\n";
  for (const std::string& line : result.lines) std::cout << line << "\n";
}

}  // namespace

void add_repro(CLI::App& app) {
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("repro", "check the kernel of a debug folder");
  command->add_option("folder", args->folder, "folder with artifacts.json and fragment.graph")->required();
  command->add_flag("--check", args->check, "compare the kernel's text with fp64 and with the operators one by one");
  command->add_flag("--e2e", args->e2e, "make the text anew from kernel.ir, which may have been edited");
  command->add_option("--input", args->inputs, "NAME=FILE.npy or NAME=random; inputs not named are random");
  command->add_option("--size", args->sizes, "NAME=NUMBER: the value of a symbolic size");
  command->add_option("--seed", args->seed, "seed of random inputs (default 0)");
  command->add_flag("--no-cache", args->no_cache, "compile anew");
  command->add_flag("--json", args->json, "as JSON");
  command->footer(
      "Exit 0 passed, 1 failed, 2 the call was wrong.\nExample:\n"
      "  fuselab repro fuselab_debug/run_1/model__0/autofused_reduce_softmax_1a2b3c4d --check");
  command->callback([args] { repro(*args); });
}

}  // namespace fuselab::cli
