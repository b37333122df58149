#include "fuselab/repro/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <thread>

#include "fuselab/core/version.h"
#include "fuselab/graph/text.h"

namespace fuselab::repro {
namespace {

constexpr std::int64_t kDefaultHint = 16;

/// Runs a kernel on one thread: the order of calls that the runtime follows too.
std::string wrapper_text(const codegen::Source& s) {
  return fmt::format(
      "// One launch on one thread. buffers: inputs, then outputs; sizes: the values of [{1}]; tiling: {0}_tiling_bytes bytes;\n"
      "// scratch and shared: as many bytes as {0}_tile() writes into the tiling, 64-byte aligned. 0 when all went well.\n"
      "extern \"C\" long {0}_launch(void* const* buffers, const long* sizes, void* tiling, char* scratch, char* shared) {{\n"
      "  {0}_tile(sizes, 1, tiling);\n"
      "  const struct {0}_tiling* const t = (const struct {0}_tiling*)tiling;\n"
      "  for (long phase = 0; phase < t->phases; ++phase) {{\n"
      "    const long status = {0}_run(buffers, tiling, phase, 0, t->units[phase], scratch, shared);\n"
      "    if (status) return status;\n"
      "  }}\n"
      "  return 0;\n"
      "}}\n",
      s.name, fmt::join(s.sizes, ", "));
}

std::set<std::string> symbols_of(const Graph& g) {
  std::set<std::string> out(g.size_params.begin(), g.size_params.end());
  const auto add = [&](const std::vector<Expr>& list) {
    for (const Expr& e : list) e.collect_symbols(out);
  };
  for (const Value& v : g.values) {
    add(v.type.sizes);
    add(v.type.strides);
  }
  return out;
}

std::vector<std::int64_t> evaluated(const std::vector<Expr>& list, const Symbols& symbols) {
  std::vector<std::int64_t> out;
  for (const Expr& e : list) out.push_back(e.eval(symbols));
  return out;
}

}  // namespace

IntRange safe_range(const codegen::Generated& generated) {
  for (const char* divides : {"idiv", "imod", "irem"}) {
    if (generated.kernel_ir.find(divides) != std::string::npos) return {1, 9};
  }
  return {};
}

Artifacts make_artifacts(const codegen::Source& s) {
  Artifacts a;
  a.name = s.name;
  a.target = jit::Target::host().isa;
  a.wrapper = wrapper_text(s);
  a.tiling_def = s.tiling_def;
  a.host_impl = s.host_impl;
  a.device_impl = s.device_impl;
  a.sizes = s.sizes;
  a.vector_core_num = a.ai_core_num = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  a.hash = s.hash;
  return a;
}

std::string artifacts_json(const Artifacts& a, const Symbols& size_hints, const codegen::Options& options,
                           const std::vector<Buffer>& buffers) {
  nlohmann::ordered_json document = {{"name", a.name},
                                     {"target", a.target},
                                     {"sizes", a.sizes},
                                     {"size_hints", size_hints},
                                     {"precision", options.precision == codegen::Precision::eager ? "eager" : "block"},
                                     {"keep_dtype", options.keep_dtype},
                                     {"wrapper", a.wrapper},
                                     {"tiling_def", a.tiling_def},
                                     {"host_impl", a.host_impl},
                                     {"device_impl", a.device_impl},
                                     {"vector_core_num", a.vector_core_num},
                                     {"ai_core_num", a.ai_core_num},
                                     {"hash", a.hash}};
  for (const Buffer& b : buffers)
    if (!is_float(b.dtype) && !is_bool(b.dtype)) document["int_ranges"][b.name] = {b.range.low, b.range.high};
  return document.dump(2) + "\n";
}

Graph standalone(const Graph& fragment) {
  std::set<std::string> known(fragment.size_params.begin(), fragment.size_params.end());
  for (const ValueId v : fragment.inputs) {
    for (const Expr& e : fragment.values[v].type.sizes)
      if (e.is_symbol()) known.insert(e.str());
  }
  Graph out = fragment;
  for (const std::string& s : symbols_of(fragment))
    if (known.insert(s).second) out.size_params.push_back(s);
  return out;
}

BenchmarkSpec make_spec(const runtime::CompiledGraph& graph, std::size_t k, const Symbols& hints) {
  const runtime::DistinctKernel& kernel = graph.program().kernels.at(k);
  const codegen::Generated& generated = graph.generated().at(k);
  const Graph fragment = standalone(kernel.fragment);
  BenchmarkSpec spec;
  spec.kernel_name = generated.source.name;
  spec.artifacts = make_artifacts(generated.source);
  spec.fragment = print_graph(fragment);
  spec.kernel_ir = generated.kernel_ir;
  for (const Node& n : fragment.nodes) {
    spec.node_summary.push_back(print_node(fragment, n) + (n.origin.empty() ? "" : "   # " + n.origin));
  }
  Symbols symbols;
  for (const std::string& s : symbols_of(fragment)) {
    const auto hint = hints.find(s);
    symbols[s] = hint == hints.end() ? kDefaultHint : hint->second;
  }
  spec.size_hints = {symbols.begin(), symbols.end()};
  spec.is_static = symbols.empty();
  for (const std::string& s : fragment.size_params) spec.call_arguments.push_back({s, true});
  const IntRange range = safe_range(generated);
  for (const ValueId v : fragment.inputs) {
    const Value& value = fragment.values[v];
    spec.call_arguments.push_back({value.name, false});
    spec.profile_buffers.push_back(
        {value.name, value.type.dtype, evaluated(value.type.sizes, symbols), evaluated(value.type.strides, symbols), range, {}});
  }
  spec.precision_mode = graph.options().codegen.precision == codegen::Precision::eager ? "eager" : "block";
  spec.environment = environment_snapshot();
  spec.fuselab_version = std::string(version());
  return spec;
}

std::map<std::string, std::string> environment_snapshot() {
  static constexpr std::string_view kPrefixes[] = {"FUSELAB_", "AUTOFUSE_", "TORCHINDUCTOR_"};
  // A script must neither write scripts nor look into a cache that may be gone; its head sets the backend.
  static constexpr std::string_view kLeftOut[] = {"FUSELAB_CACHE_DIR",  "TORCHINDUCTOR_CACHE_DIR",
                                                  "AUTOFUSE_DFX_FLAGS", "FUSELAB_CHECK_KERNELS",
                                                  "FUSELAB_BACKEND",    "TORCHINDUCTOR_NPU_BACKEND"};
  std::map<std::string, std::string> out;
  for (char** at = environ; at && *at; ++at) {
    const std::string_view entry = *at;
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    const bool wanted = std::any_of(std::begin(kPrefixes), std::end(kPrefixes), [&](auto p) { return name.starts_with(p); });
    if (wanted && std::find(std::begin(kLeftOut), std::end(kLeftOut), name) == std::end(kLeftOut))
      out.emplace(name, entry.substr(equals + 1));
  }
  return out;
}

}  // namespace fuselab::repro
