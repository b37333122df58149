// fuselab compile: a graph's kernels, or one kernel from its IR, to source texts and object code.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "cli/common.h"
#include "fuselab/core/error.h"
#include "fuselab/graph/text.h"
#include "fuselab/repro/spec.h"
#include "fuselab/runtime/program.h"

namespace fuselab::cli {
namespace {

struct Args {
  std::string file, out;
  bool json = false;
  CompileOptions compile;
};

struct Made {
  codegen::Generated generated;
  std::string fragment;  ///< text; empty for a kernel from its IR
  std::size_t object_bytes = 0;
};

bool is_kernel_ir(const std::string& text) {
  const auto at = text.find_first_not_of(" \t\r\n");
  std::size_t begin = at == std::string::npos ? 0 : at;
  while (begin < text.size() && text[begin] == '#') {  // comments
    begin = text.find('\n', begin);
    begin = begin == std::string::npos ? text.size() : text.find_first_not_of(" \t\r\n", begin);
    if (begin == std::string::npos) return false;
  }
  return text.compare(begin, 6, "kernel") == 0;
}

void compile(const Args& args) {
  const std::string text = read_file(args.file);
  const runtime::Options options = args.compile.runtime_options();
  const jit::Target target = jit::Target::host();
  std::vector<Made> made;
  if (is_kernel_ir(text)) {
    made.push_back({codegen::generate_from_ir(text, args.file), "", 0});
  } else {
    runtime::CompiledGraph compiled(parse_graph(text, args.file), options);
    args.compile.debug_folder(compiled);
    for (std::size_t i = 0; i < compiled.generated().size(); ++i) {
      made.push_back({compiled.generated()[i], print_graph(compiled.program().kernels[i].fragment), 0});
    }
  }
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (Made& m : made) {
    const codegen::Source& s = m.generated.source;
    m.object_bytes = jit::compile_object(s.text(), s.name + ".cpp", target).size();
    nlohmann::ordered_json artifacts = {
        {"name", s.name},           {"target", target.isa},         {"sizes", s.sizes}, {"tiling_def", s.tiling_def},
        {"host_impl", s.host_impl}, {"device_impl", s.device_impl}, {"hash", s.hash}};
    if (!m.fragment.empty()) {
      artifacts["precision"] = options.codegen.precision == codegen::Precision::eager ? "eager" : "block";
      artifacts["keep_dtype"] = options.codegen.keep_dtype;
      const Graph fragment = parse_graph(m.fragment);
      const IntRange range = repro::safe_range(m.generated);
      for (const ValueId v : fragment.inputs) {
        const Value& value = fragment.values[static_cast<std::size_t>(v)];
        if (!is_float(value.type.dtype) && !is_bool(value.type.dtype))
          artifacts["int_ranges"][value.name] = {range.low, range.high};
      }
    }
    if (!args.out.empty()) {
      const std::string folder = args.out + "/" + s.name + "/";
      write_file(folder + "kernel.ir", m.generated.kernel_ir);
      write_file(folder + "kernel.cpp", s.text());
      write_file(folder + "artifacts.json", artifacts.dump(2) + "\n");
      if (!m.fragment.empty()) write_file(folder + "fragment.graph", m.fragment);
      artifacts["folder"] = folder;
    }
    artifacts["object_bytes"] = m.object_bytes;
    if (args.json) {
      artifacts["kernel_ir"] = m.generated.kernel_ir;
      rows.push_back(artifacts);
    } else if (args.out.empty()) {
      std::cout << "// ---- kernel IR of " << s.name << "\n";
      std::cout << m.generated.kernel_ir << "\n// ---- tiling_def\n"
                << s.tiling_def << "\n// ---- host_impl\n"
                << s.host_impl << "\n// ---- device_impl\n"
                << s.device_impl << "\n";
    }
    if (!args.json) std::cerr << fmt::format("{}: {} bytes of {} object code\n", s.name, m.object_bytes, target.isa);
  }
  if (args.json) print_json({{"file", args.file}, {"kernels", rows}});
}

}  // namespace

void add_compile(CLI::App& app) {
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("compile", "show or write the texts of a graph's kernels, or of one kernel's IR");
  command->add_option("file", args->file, "graph in text form, or kernel.ir of a debug folder")->required();
  command->add_option("--out", args->out, "write kernel.ir, kernel.cpp, artifacts.json and fragment.graph below this folder");
  command->add_flag("--json", args->json, "as JSON");
  args->compile.add_to(*command);
  command->footer(
      "Examples:\n  fuselab compile softmax.graph\n  fuselab compile debug/autofused_reduce_softmax_1a2b3c4d/kernel.ir\n"
      "  fuselab compile model.graph --out kernels");
  command->callback([args] { compile(*args); });
}

}  // namespace fuselab::cli
