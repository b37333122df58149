// fuselab run: a graph with inputs from files or at random.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <memory>

#include "cli/common.h"
#include "cli/inputs.h"
#include "cli/npy.h"
#include "fuselab/core/error.h"

namespace fuselab::cli {
namespace {

/// What a person wants to see of a tensor: how big, and the numbers' range.
nlohmann::ordered_json summary(const Tensor& t) {
  double low = INFINITY, high = -INFINITY, sum = 0;
  std::int64_t nan = 0;
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    const double v = t.get(i);
    if (std::isnan(v)) {
      ++nan;
      continue;
    }
    low = std::min(low, v);
    high = std::max(high, v);
    sum += v;
  }
  nlohmann::ordered_json out = {{"dtype", name(t.dtype())}, {"sizes", t.sizes()}};
  if (t.numel() > nan) {
    const auto number = [](double v) {
      return std::isfinite(v) ? nlohmann::ordered_json(v) : nlohmann::ordered_json(fmt::format("{}", v));
    };
    out["min"] = number(low);
    out["max"] = number(high);
    out["mean"] = number(sum / static_cast<double>(t.numel() - nan));
  }
  if (nan > 0) out["nan"] = nan;
  return out;
}

struct Args {
  std::string file, out;
  std::vector<std::string> inputs, sizes;
  std::uint64_t seed = 0;
  bool json = false;
  CompileOptions compile;
};

void run(const Args& args) {
  const Graph g = load_graph(args.file);
  const runtime::Options options = args.compile.runtime_options();
  Symbols symbols = parse_sizes(args.sizes);
  const std::vector<Tensor> inputs = make_inputs(g, args.inputs, symbols, args.seed, false);
  const runtime::CompiledGraph compiled(g, options);
  args.compile.debug_folder(compiled, symbols);
  if (compiled.extern_steps() > 0) {
    fail("graph.extern", "{} has {} calls of the host framework, which only PyTorch can run; `fuselab explain` lists them.",
         args.file, compiled.extern_steps());
  }
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Tensor> outputs = compiled(inputs, size_arguments(g, symbols));
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = g.values[g.outputs[i]].name;
    nlohmann::ordered_json row = {{"name", name}};
    row.update(summary(outputs[i]));
    if (!args.out.empty()) {
      const std::string path = args.out + "/" + name + ".npy";
      write_npy(path, outputs[i]);
      row["file"] = path;
    }
    rows.push_back(row);
  }
  if (args.json) {
    print_json({{"graph", g.name},
                {"seed", args.seed},
                {"kernels", compiled.kernel_steps()},
                {"compile_ms", compiled.timing().total},
                {"run_ms", ms},
                {"outputs", rows}});
    return;
  }
  for (const auto& row : rows) {
    std::cout << row["name"].get<std::string>();
    for (const auto& [key, value] : row.items()) {
      if (key != "name") std::cout << "  " << key << "=" << (value.is_string() ? value.get<std::string>() : value.dump());
    }
    std::cout << "\n";
  }
  std::cout << fmt::format("{} kernels, compiled in {:.1f} ms, ran in {:.3f} ms\n", compiled.kernel_steps(),
                           compiled.timing().total, ms);
}

}  // namespace

void add_run(CLI::App& app) {
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("run", "compile a graph and run it once");
  command->add_option("file", args->file, "graph in text form")->required();
  command->add_option("--input", args->inputs, "NAME=FILE.npy or NAME=random, once per input");
  command->add_option("--size", args->sizes, "NAME=NUMBER: the value of a symbolic size");
  command->add_option("--out", args->out, "folder for the outputs, one .npy each");
  command->add_option("--seed", args->seed, "seed of random inputs (default 0)");
  command->add_flag("--json", args->json, "as JSON");
  args->compile.add_to(*command);
  command->footer(
      "Examples:\n  fuselab run softmax.graph --input x=random\n  fuselab run ffn.graph --input x=x.npy --input w=random --size "
      "B=4 --out results");
  command->callback([args] { run(*args); });
}

}  // namespace fuselab::cli
