// fuselab check: a graph, fused, against the same graph operator by operator and against fp64; then every kernel alone.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <set>

#include "cli/common.h"
#include "cli/inner_values.h"
#include "cli/launch.h"
#include "cli/npy.h"
#include "fuselab/core/error.h"
#include "fuselab/graph/text.h"
#include "fuselab/numerics/verdict.h"
#include "fuselab/reference/reference.h"

namespace fuselab::cli {
namespace {

struct Args {
  std::string file, out;
  std::vector<std::string> inputs, sizes;
  std::uint64_t seed = 0;
  bool json = false, values = false;
  CompileOptions compile;
};

void check(const Args& args) {
  const Graph g = args.values ? with_every_value(load_graph(args.file)) : load_graph(args.file);
  runtime::Options options = args.compile.runtime_options();
  Symbols symbols = parse_sizes(args.sizes);
  const std::vector<Tensor> inputs = make_inputs(g, args.inputs, symbols, args.seed, true);
  const runtime::CompiledGraph fused(g, options);
  args.compile.debug_folder(fused, symbols);
  if (fused.extern_steps() > 0) {
    fail("graph.extern", "{} has {} calls of the host framework, which only PyTorch can run; `fuselab explain` lists them.",
         args.file, fused.extern_steps());
  }
  runtime::Options unfused_options = options;
  unfused_options.fuse.enable = false;
  const runtime::CompiledGraph unfused(g, unfused_options);
  const std::vector<std::int64_t> size_args = size_arguments(g, symbols);
  const std::vector<Tensor> actual = fused(inputs, size_args), again = fused(inputs, size_args),
                            expected = unfused(inputs, size_args);
  reference::Options reference_options;
  for (const fuse::Step& step : fused.plan().steps) {
    if (step.kind == fuse::Step::Kind::kernel) {
      reference_options.stored.insert(reference_options.stored.end(), step.outputs.begin(), step.outputs.end());
    }
  }
  if (options.codegen.precision == codegen::Precision::eager) reference_options.rounding = reference::Rounding::eager;
  if (!options.codegen.keep_dtype.empty()) reference_options.any_borders = true;
  const std::vector<reference::Output> reference = reference::fp64_reference(g, inputs, reference_options);

  std::vector<std::string> lines, failed;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const std::string& name = g.values[g.outputs[i]].name;
    numerics::Evidence evidence;
    evidence.expected = expected[i];
    evidence.actual = actual[i];
    evidence.second_run = again[i];
    evidence.reference = &reference[i];
    const numerics::Verdict verdict = numerics::judge(evidence);
    lines.push_back(numerics::precision_line(name, "precision", verdict));
    if (is_float(actual[i].dtype()) && actual[i].numel() > 0) {
      lines.push_back(numerics::fp64_line(
          name, reference[i], {{"unfused", expected[i], verdict.expected_error}, {"fused", actual[i], verdict.actual_error}}));
    }
    if (!verdict.passed) failed.push_back(name);
  }
  lines.push_back(numerics::summary_line(failed));
  std::vector<nlohmann::ordered_json> values;
  if (args.values) values = value_rows(g, inputs, actual);
  for (std::size_t i = 0; i < actual.size() && !args.out.empty(); ++i)
    write_npy(args.out + "/" + g.values[g.outputs[i]].name + ".npy", actual[i]);

  // Each kernel alone, over poisoned outputs: what the graph's results cannot show.
  std::vector<KernelCheck> kernels;
  for (std::size_t k = 0; k < fused.kernels().size(); ++k) {
    const Graph& fragment = fused.program().kernels[k].fragment;
    Symbols kernel_symbols = symbols;
    const std::vector<Tensor> data = make_inputs(fragment, {}, kernel_symbols, args.seed + k + 1, true);
    kernels.push_back(check_kernel(fragment, fused.generated()[k].source, data, kernel_symbols, "artifact",
                                   CheckOptions{options.codegen, options.jit.read_cache}));
  }
  std::size_t bad_kernels = 0;
  for (const KernelCheck& k : kernels) bad_kernels += !k.passed();
  if (!failed.empty() || bad_kernels > 0) set_exit(kFailed);
  if (args.json) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const KernelCheck& k : kernels)
      rows.push_back({{"name", k.kernel}, {"passed", k.passed()}, {"failed", k.failed}, {"lines", k.lines}});
    nlohmann::ordered_json document = {{"graph", g.name},  {"seed", args.seed}, {"passed", failed.empty() && bad_kernels == 0},
                                       {"failed", failed}, {"lines", lines},    {"kernels", rows}};
    if (args.values) document["values"] = values;
    print_json(document);
    return;
  }
  for (const auto& row : values) std::cout << value_line(row) << "\n";
  for (const std::string& line : lines) std::cout << line << "\n";
  for (const KernelCheck& k : kernels) {
    std::cout << "kernel " << k.kernel << (k.passed() ? ": passed\n" : ": FAILED\n");
    if (!k.passed()) {
      for (const std::string& line : k.lines) std::cout << "  " << line << "\n";
    }
  }
  std::cout << fmt::format("seed {}: {} outputs, {} failed; {} kernels, {} failed\n", args.seed, actual.size(), failed.size(),
                           kernels.size(), bad_kernels);
}

}  // namespace

void add_check(CLI::App& app) {
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("check", "compare a graph's fused results with fp64 and with the operators one by one");
  command->add_option("file", args->file, "graph in text form")->required();
  command->add_option("--input", args->inputs, "NAME=FILE.npy or NAME=random; inputs not named are random");
  command->add_option("--size", args->sizes, "NAME=NUMBER: the value of a symbolic size");
  command->add_option("--seed", args->seed, "seed of random inputs (default 0)");
  command->add_flag("--values", args->values,
                    "every inner value becomes a result: shows where a NaN, an infinity or an error comes up first");
  command->add_option("--out", args->out, "folder for the fused results, one .npy each");
  command->add_flag("--json", args->json, "as JSON");
  args->compile.add_to(*command);
  command->footer(
      "Exit 1 when a result is outside its error bound, or an element is not written.\n"
      "Examples:\n  fuselab check softmax.graph\n  fuselab check ffn.graph --size B=7 --seed 3 --json\n"
      "  fuselab check softmax.graph --input x=x.npy --values --out values");
  command->callback([args] { check(*args); });
}

}  // namespace fuselab::cli
