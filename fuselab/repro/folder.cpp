#include "fuselab/repro/folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "fuselab/core/error.h"
#include "fuselab/graph/dot.h"
#include "fuselab/graph/text.h"
#include "fuselab/repro/script.h"

namespace fuselab::repro {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const std::string& path, const std::string& why) {
  fail("repro.folder", "{}: the debug folder cannot be written ({}); choose another one with debug_dir or --debug-dir.", path,
       why);
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) cannot_write(path.string(), error.message());
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) cannot_write(path.string(), std::strerror(errno));
}

/// Makes a folder that was not there; false when it was.
bool make_new_folder(const fs::path& path) {
  std::error_code error;
  const bool made = fs::create_directory(path, error);
  if (error) cannot_write(path.string(), error.message());
  return made;
}

std::string pre_fusion_text(const runtime::CompiledGraph& g) {
  std::string out = "# as given\n" + print_graph(g.original(), true);
  for (const PassDump& dump : g.graph_dumps()) out += "\n# after " + dump.pass + "\n" + print_graph(dump.graph, true);
  if (g.graph_dumps().empty()) out += "\n# no graph pass changed anything\n";
  return out;
}

std::string names_of(const Graph& g, const std::vector<ValueId>& values) {
  std::string out;
  for (const ValueId v : values) out += (out.empty() ? "" : ", ") + g.values[v].name;
  return out;
}

std::string steps_text(const runtime::CompiledGraph& g) {
  std::string out = "# How the compiled graph runs: one line per step.\n";
  for (const fuse::Step& s : g.plan().steps) {
    if (s.kind == fuse::Step::Kind::kernel) {
      out += fmt::format("{} = {}({})\n", names_of(g.graph(), s.outputs), s.name, names_of(g.graph(), s.inputs));
    } else {
      out += print_node(g.graph(), g.graph().nodes[s.nodes.at(0)]) + "\n";
    }
  }
  return out + "return " + names_of(g.graph(), g.graph().outputs) + "\n";
}

void write_kernel(const runtime::CompiledGraph& g, std::size_t k, const FolderRequest& request, const fs::path& folder) {
  BenchmarkSpec spec = make_spec(g, k, request.hints);
  spec.no_precision_reason = "the graph came as text, so there is no PyTorch fragment; `fuselab repro` checks the kernel";
  const Graph& fragment = g.program().kernels[k].fragment;
  if (request.complete) request.complete(spec, fragment);
  make_folder(folder);
  write(folder / "benchmark.py", generate_benchmark_script(spec).text);
  write(folder / "fragment.graph", spec.fragment);
  write(folder / "kernel.ir", spec.kernel_ir);
  write(folder / "kernel.cpp", g.generated()[k].source.text());
  write(folder / "artifacts.json", artifacts_json(spec.artifacts, spec.size_hints, g.options().codegen, spec.profile_buffers));
  write(folder / "graph.svg", to_svg(fragment));
}

fs::path new_model_folder(const FolderRequest& request) {
  const fs::path run = run_folder(request.root);
  for (int again = 0;; ++again) {
    const fs::path model = run / fmt::format("model__{0}_{1}_{0}.{2}", request.number, request.kind, again);
    if (make_new_folder(model)) return model;
  }
}

}  // namespace

std::string run_folder(const std::string& root) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, long>, std::string> known;  // a forked process gets a folder of its own
  const std::lock_guard lock(mutex);
  std::error_code error;
  const fs::path absolute = fs::absolute(root, error);
  if (error) cannot_write(root, error.message());
  const long pid = getpid();
  std::string& run = known[{absolute.string(), pid}];
  if (run.empty() || !fs::exists(run, error)) {
    const auto now = std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
    const auto micros = now.time_since_epoch().count() % 1'000'000;
    make_folder(absolute);
    std::string made;
    for (int again = 0; made.empty(); ++again) {
      const fs::path path = absolute / fmt::format("run_{:%Y_%m_%d_%H_%M_%S}_{:06}{}-pid_{}",
                                                   fmt::localtime(std::chrono::system_clock::to_time_t(now)), micros,
                                                   again ? fmt::format("_{}", again) : "", pid);
      if (make_new_folder(path)) made = path.string();
    }
    run = made;
  }
  return run;
}

std::string post_fusion_text(const runtime::CompiledGraph& g) {
  std::string out;
  for (const fuse::Step& s : g.plan().steps) {
    if (s.kind == fuse::Step::Kind::kernel) {
      out += fmt::format("kernel {} ({})\n  reads {}\n  writes {}\n{}\n", s.name, s.block_kind, names_of(g.graph(), s.inputs),
                         names_of(g.graph(), s.outputs), print_graph(s.fragment, true));
    } else {
      const NodeId n = s.nodes.at(0);
      out += fmt::format("{} {}\n\n", s.kind == fuse::Step::Kind::view ? "view" : "extern",
                         print_node(g.graph(), g.graph().nodes[n]));
    }
  }
  out += "# why each node is where it is\n";
  for (std::size_t n = 0; n < g.plan().reasons.size(); ++n) {
    const Node& node = g.graph().nodes[n];
    out +=
        fmt::format("{}: {}\n", node.results.empty() ? node.target : g.graph().values[node.results[0]].name, g.plan().reasons[n]);
  }
  for (std::size_t k = 0; k < g.generated().size(); ++k) {
    for (const auto& [pass, text] : g.generated()[k].dumps)
      out += fmt::format("\n# {} after {}\n{}", g.generated()[k].source.name, pass, text);
  }
  return out;
}

Failure write_failed_folder(const Graph& given, const runtime::Options& options, const FolderRequest& request) {
  const Graph g = simplify(given, {options.codegen.opt_level, options.codegen.skip_passes});
  const fuse::Plan plan = fuse::fuse(g, options.fuse);
  Failure failure;
  try {
    const fs::path model = new_model_folder(request);
    failure.folder = model.string();
    write(model / "graph.txt", request.graph_text.empty() ? print_graph(given, true) : request.graph_text);
    for (const fuse::Step& step : plan.steps) {
      const fs::path folder = model / step.name;
      if (step.kind != fuse::Step::Kind::kernel || !make_new_folder(folder)) continue;
      write(folder / "fragment.graph", print_graph(standalone(step.fragment)));
      try {
        const codegen::Generated made = codegen::generate(step.fragment, step.name, options.codegen);
        write(folder / "kernel.ir", made.kernel_ir);
        write(folder / "kernel.cpp", made.source.text());
        write(folder / "artifacts.json", artifacts_json(make_artifacts(made.source), request.hints, options.codegen));
        jit::load(made.source, jit::Target::host(), options.jit);
      } catch (const Error& e) {
        if (e.code() == "repro.folder") throw;
        write(folder / "error.txt", std::string(e.what()) + "\n");
        if (failure.kernel.empty() && e.code().starts_with("jit.")) failure.kernel = step.name;
      }
    }
  } catch (const fs::filesystem_error& e) {
    cannot_write(request.root, e.code().message());
  }
  return failure;
}

std::string write_debug_folder(const runtime::CompiledGraph& g, const FolderRequest& request) {
  try {
    const fs::path model = new_model_folder(request);
    write(model / "graph.txt", request.graph_text.empty() ? print_graph(g.original(), true) : request.graph_text);
    write(model / "ir_pre_fusion.txt", pre_fusion_text(g));
    write(model / "ir_post_fusion.txt", post_fusion_text(g));
    if (request.output_code.empty()) {
      write(model / "output_code.txt", steps_text(g));
    } else {
      write(model / "output_code.py", request.output_code);
    }
    write(model / "fuse_summary.csv", summary_csv(g, request.hints));
    for (std::size_t k = 0; k < g.generated().size(); ++k) write_kernel(g, k, request, model / g.generated()[k].source.name);
    return model.string();
  } catch (const fs::filesystem_error& e) {
    cannot_write(request.root, e.code().message());
  }
}

}  // namespace fuselab::repro
