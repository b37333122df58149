// fuselab explain: which operators became which kernel, and why.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/common.h"
#include "fuselab/core/error.h"
#include "fuselab/graph/dot.h"
#include "fuselab/graph/reshape_copies.h"
#include "fuselab/graph/simplify.h"
#include "fuselab/graph/text.h"
#include "fuselab/kernel/describe.h"

namespace fuselab::cli {
namespace {

using Kind = fuse::Step::Kind;

struct Args {
  std::string file, svg, dot;
  bool json = false, timing = false, passes = false;
  CompileOptions compile;
};

/// Bytes a step moves; nothing when a size is symbolic.
Expr bytes_of(const Graph& g, const std::vector<ValueId>& values) {
  Expr sum = 0;
  for (ValueId v : values) sum = sum + product(g.values[v].type.sizes) * Expr(size_of(g.values[v].type.dtype));
  return sum;
}

std::string label(const Graph& g, const std::vector<ValueId>& values) {
  std::string out;
  for (ValueId v : values) out += (out.empty() ? "" : ", ") + g.values[v].name + ": " + g.values[v].type.str();
  return out;
}

/// Bytes the same operators would move one by one.
Expr unfused_bytes(const Graph& g, const fuse::Step& step) {
  Expr sum = 0;
  for (NodeId n : step.nodes) {
    const Node& node = g.nodes[n];
    const bool stored = std::find(step.outputs.begin(), step.outputs.end(), node.results[0]) != step.outputs.end();
    if (node.op && node.op->kind == ops::Kind::create) continue;
    if (node.op && node.op->kind == ops::Kind::view && !stored) continue;  // an alias; a stored one is a reshape that copies
    std::vector<ValueId> values = node.results;
    for (const Operand& arg : node.args) {
      if (const auto* v = std::get_if<ValueId>(&arg)) values.push_back(*v);
    }
    sum = sum + bytes_of(g, values);
  }
  return sum;
}

Blocks blocks_of(const Graph& g, const fuse::Plan& plan) {
  Blocks blocks;
  blocks.of_node.assign(g.nodes.size(), -1);
  for (const fuse::Step& step : plan.steps) {
    if (step.kind != Kind::kernel) continue;
    for (NodeId n : step.nodes) blocks.of_node[n] = static_cast<int>(blocks.names.size());
    blocks.names.push_back(step.name);
  }
  return blocks;
}

nlohmann::ordered_json steps_json(const Graph& g, const fuse::Plan& plan) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const fuse::Step& step : plan.steps) {
    nlohmann::ordered_json row;
    row["kind"] = step.kind == Kind::kernel ? "kernel" : step.kind == Kind::view ? "view" : "extern";
    if (step.kind == Kind::kernel) {
      row["name"] = step.name;
      row["block"] = step.block_kind;
    }
    for (const char* key : {"nodes", "inputs", "outputs"}) row[key] = nlohmann::ordered_json::array();
    for (NodeId n : step.nodes) row["nodes"].push_back(g.values[g.nodes[n].results[0]].name);
    for (ValueId v : step.inputs) row["inputs"].push_back(g.values[v].name);
    for (ValueId v : step.outputs) row["outputs"].push_back(g.values[v].name);
    if (step.kind == Kind::kernel) {
      row["bytes"] = (bytes_of(g, step.inputs) + bytes_of(g, step.outputs)).str();
      row["bytes_unfused"] = unfused_bytes(g, step).str();
    } else if (step.kind == Kind::extern_call) {
      row["target"] = g.nodes[step.nodes[0]].op ? g.nodes[step.nodes[0]].op->name : g.nodes[step.nodes[0]].target;
    }
    rows.push_back(row);
  }
  return rows;
}

void print_steps(const Graph& g, const fuse::Plan& plan) {
  int kernels = 0, externs = 0;
  for (const fuse::Step& step : plan.steps) {
    kernels += step.kind == Kind::kernel;
    externs += step.kind == Kind::extern_call;
  }
  std::cout << fmt::format("graph {}: {} operators, {} kernels, {} calls of the host framework\n", g.name, g.nodes.size(),
                           kernels, externs);
  for (const fuse::Step& step : plan.steps) {
    const Node& node = g.nodes[step.nodes[0]];
    if (step.kind == Kind::view) {
      std::cout << "view    " << g.values[node.results[0]].name << " of " << label(g, step.inputs) << "\n";
    } else if (step.kind == Kind::extern_call) {
      std::cout << "extern  " << (node.op ? node.op->name : node.target) << " -> " << label(g, step.outputs) << "\n";
    } else {
      std::cout << "kernel  " << step.name << "\n        reads  " << label(g, step.inputs) << "\n        writes "
                << label(g, step.outputs)
                << fmt::format("\n        moves {} bytes, {} unfused\n",
                               (bytes_of(g, step.inputs) + bytes_of(g, step.outputs)).str(), unfused_bytes(g, step).str());
    }
  }
  std::cout << "\n";
  std::size_t width = 0;
  for (const Node& n : g.nodes) width = std::max(width, g.values[n.results[0]].name.size());
  for (const Node& n : g.nodes) {
    std::cout << fmt::format("{:<{}}  {:<12}  {}\n", g.values[n.results[0]].name, width, n.op ? n.op->name : "extern",
                             plan.reasons[n.id]);
  }
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// "graph passes: cse, neutral" of those that changed the graph, in their order.
std::string took_effect(const std::vector<PassDump>& dumps) {
  std::string names;
  for (const PassDump& d : dumps) names += (names.empty() ? "" : ", ") + d.pass;
  return "graph passes: " + (names.empty() ? "none changed the graph" : names) + "\n";
}

void explain(const Args& args) {
  Graph g = load_graph(args.file);
  runtime::Options options = args.compile.runtime_options();
  options.dumps = options.dumps || args.passes;
  if (!args.timing && !args.passes) {
    // Without compiling: still the plan that a run would use, so the kernel rooms are asked what they can do.
    fuse::Options fuse_options = options.fuse;
    fuse_options.accept = [&](const Graph& fragment, const std::string& name) -> std::string {
      try {
        codegen::generate(fragment, name, options.codegen);
      } catch (const Error& e) {
        if (e.code() == "kernel.unsupported") return e.what();
        throw;
      }
      return "";
    };
    std::vector<PassDump> dumps;
    g = copy_before_reshape(simplify(g, {options.codegen.opt_level, options.codegen.skip_passes}, &dumps));
    const fuse::Plan plan = fuse::fuse(g, fuse_options);
    const Blocks blocks = blocks_of(g, plan);
    if (!args.svg.empty()) write_file(args.svg, to_svg(g, blocks));
    if (!args.dot.empty()) write_file(args.dot, to_dot(g, blocks));
    if (!args.json) {
      print_steps(g, plan);
      std::cout << "\n" << took_effect(dumps);
      return;
    }
    nlohmann::ordered_json reasons = nlohmann::ordered_json::array();
    for (const Node& n : g.nodes) {
      reasons.push_back(
          {{"node", g.values[n.results[0]].name}, {"op", n.op ? n.op->name : n.target}, {"reason", plan.reasons[n.id]}});
    }
    nlohmann::ordered_json passes = nlohmann::ordered_json::array();
    for (const PassDump& d : dumps) passes.push_back(d.pass);
    print_json({{"graph", g.name}, {"steps", steps_json(g, plan)}, {"nodes", reasons}, {"graph_passes", passes}});
    return;
  }
  const runtime::CompiledGraph compiled(std::move(g), options);
  args.compile.debug_folder(compiled);
  if (!args.svg.empty()) write_file(args.svg, to_svg(compiled.graph(), blocks_of(compiled.graph(), compiled.plan())));
  if (!args.dot.empty()) write_file(args.dot, to_dot(compiled.graph(), blocks_of(compiled.graph(), compiled.plan())));
  const runtime::Timing& t = compiled.timing();
  std::vector<double> per_kernel;
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < compiled.kernels().size(); ++i) {
    const jit::Kernel& k = compiled.kernels()[i];
    per_kernel.push_back(k.compile_ms + k.load_ms);
    nlohmann::ordered_json row = {{"name", compiled.program().kernels[i].name},
                                  {"compile_ms", k.compile_ms},
                                  {"load_ms", k.load_ms},
                                  {"from_cache", k.from_cache}};
    if (args.passes) {
      row["passes"] = nlohmann::ordered_json::array();
      for (const auto& [pass, text] : compiled.generated()[i].dumps) row["passes"].push_back({{"pass", pass}, {"ir", text}});
      row["schedule"] = kernel::describe(kernel::schedule(kernel::parse_kernel(compiled.generated()[i].kernel_ir, "kernel.ir")));
    }
    kernels.push_back(row);
  }
  nlohmann::ordered_json graph_passes = nlohmann::ordered_json::array();
  if (args.passes)
    for (const PassDump& d : compiled.graph_dumps()) graph_passes.push_back({{"pass", d.pass}, {"graph", print_graph(d.graph)}});
  const double share = per_kernel.empty() ? 0 : (t.fuse + t.codegen) / static_cast<double>(per_kernel.size());
  const double median_ms = median(per_kernel) + share;
  if (args.json) {
    print_json(
        {{"graph", compiled.graph().name},
         {"steps", steps_json(compiled.graph(), compiled.plan())},
         {"timing_ms", {{"fuse", t.fuse}, {"codegen", t.codegen}, {"compile", t.compile}, {"load", t.load}, {"total", t.total}}},
         {"median_per_kernel_ms", median_ms},
         {"graph_passes", graph_passes},
         {"kernels", kernels}});
    return;
  }
  if (args.passes) std::cout << took_effect(compiled.graph_dumps());
  for (const auto& row : graph_passes)
    std::cout << "--- after " << row["pass"].get<std::string>() << "\n" << row["graph"].get<std::string>();
  for (const auto& row : kernels) {
    if (args.timing) {
      std::cout << fmt::format("{:<72} compile {:>8.2f} ms  load {:>6.2f} ms{}\n", row["name"].get<std::string>(),
                               row["compile_ms"].get<double>(), row["load_ms"].get<double>(),
                               row["from_cache"].get<bool>() ? "  (cached)" : "");
    }
    if (!args.passes) continue;
    std::cout << "kernel " << row["name"].get<std::string>() << "\n";
    for (const auto& pass : row["passes"])
      std::cout << "--- after " << pass["pass"].get<std::string>() << "\n" << pass["ir"].get<std::string>();
    std::cout << "--- schedule\n" << row["schedule"].get<std::string>();
  }
  if (args.timing) {
    std::cout << fmt::format(
        "fuse {:.2f} ms, codegen {:.2f} ms, compile {:.2f} ms, load {:.2f} ms, total {:.2f} ms; median per kernel {:.2f} ms\n",
        t.fuse, t.codegen, t.compile, t.load, t.total, median_ms);
  }
}

}  // namespace

void add_explain(CLI::App& app) {
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("explain", "show what was fused, and why");
  command->add_option("file", args->file, "graph in text form")->required();
  command->add_option("--svg", args->svg, "write a picture of the graph with its blocks");
  command->add_option("--dot", args->dot, "write the same for Graphviz");
  command->add_flag("--timing", args->timing, "compile, and show how long each phase took");
  command->add_flag("--passes", args->passes, "compile, and show the kernel IR after each pass that changed it");
  command->add_flag("--json", args->json, "as JSON");
  args->compile.add_to(*command);
  command->footer(
      "Examples:\n  fuselab explain model.graph\n  fuselab explain model.graph --no-fuse=reduce\n  fuselab explain model.graph "
      "--svg model.svg --timing");
  command->callback([args] { explain(*args); });
}

}  // namespace fuselab::cli
