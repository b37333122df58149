#include "repro.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "callable.h"
#include "compile.h"
#include "fuselab/core/error.h"
#include "fuselab/fuse/flags.h"
#include "fuselab/graph/bind.h"
#include "fuselab/graph/text.h"
#include "fuselab/repro/folder.h"
#include "fuselab/repro/script.h"

namespace nb = nanobind;

namespace fuselab::python {
namespace {

template <typename T>
T item(const nb::dict& d, const char* key, T fallback) {
  if (!d.contains(key) || nb::handle(d[key]).is_none()) return fallback;
  try {
    return nb::cast<T>(d[key]);
  } catch (const nb::cast_error&) {
    fail("options.bad_value", "'{}' of the spec has the wrong type", key);
  }
}

repro::Buffer buffer_of(const nb::dict& d) {
  repro::Buffer b;
  b.name = item<std::string>(d, "name", "");
  b.dtype = parse_dtype(item<std::string>(d, "dtype", "f32"));
  b.shape = item<std::vector<std::int64_t>>(d, "shape", {});
  b.stride = item<std::vector<std::int64_t>>(d, "stride", {});
  b.range = {item<std::int64_t>(d, "low", 0), item<std::int64_t>(d, "high", 9)};
  b.value = item<std::string>(d, "value", "");
  return b;
}

std::vector<repro::Buffer> buffers_of(const nb::dict& d, const char* key) {
  std::vector<repro::Buffer> out;
  for (const nb::dict& b : item<std::vector<nb::dict>>(d, key, {})) out.push_back(buffer_of(b));
  return out;
}

repro::PrecisionContext precision_of(const nb::dict& d) {
  return {item<std::string>(d, "eager_fn_code", ""), buffers_of(d, "fx_input_meta"),
          item<std::vector<std::string>>(d, "output_names", {})};
}

std::vector<std::pair<std::string, std::string>> options_of(const nb::dict& d) {
  return item<std::vector<std::pair<std::string, std::string>>>(d, "options", {});
}

/// A spec made by hand: what BenchmarkSpec in Python holds.
repro::BenchmarkSpec spec_of(const nb::dict& d) {
  repro::BenchmarkSpec s;
  s.kernel_name = item<std::string>(d, "kernel_name", "");
  s.node_summary = item<std::vector<std::string>>(d, "node_summary", {});
  const auto a = item<nb::dict>(d, "artifacts", {});
  s.artifacts = {item<std::string>(a, "name", s.kernel_name),
                 item<std::string>(a, "target", ""),
                 item<std::string>(a, "wrapper", ""),
                 item<std::string>(a, "tiling_def", ""),
                 item<std::string>(a, "host_impl", ""),
                 item<std::string>(a, "device_impl", ""),
                 item<std::vector<std::string>>(a, "sizes", {}),
                 item<int>(a, "vector_core_num", 0),
                 item<int>(a, "ai_core_num", 0),
                 item<std::string>(a, "hash", "")};
  s.fragment = item<std::string>(d, "fragment", "");
  s.kernel_ir = item<std::string>(d, "kernel_ir", "");
  for (const auto& [kind, name] : item<std::vector<std::pair<std::string, std::string>>>(d, "call_arguments", {}))
    s.call_arguments.push_back({name, kind == "size"});
  s.size_hints = item<std::map<std::string, std::int64_t>>(d, "size_hints", {});
  s.profile_buffers = buffers_of(d, "profile_buffers");
  if (d.contains("precision") && nb::isinstance<nb::dict>(d["precision"]))
    s.precision = precision_of(nb::cast<nb::dict>(d["precision"]));
  s.no_precision_reason = item<std::string>(d, "no_precision_reason", "");
  s.is_static = item<bool>(d, "is_static", true);
  s.precision_mode = item<std::string>(d, "precision_mode", "block");
  s.options = options_of(d);
  s.environment = item<std::map<std::string, std::string>>(d, "environment", {});
  s.fuselab_version = item<std::string>(d, "fuselab_version", "");
  s.torch_version = item<std::string>(d, "torch_version", "");
  return s;
}

nb::dict buffer_dict(const repro::Buffer& b) {
  nb::dict d;
  d["name"] = b.name;
  d["dtype"] = std::string(name(b.dtype));
  d["shape"] = b.shape;
  d["stride"] = b.stride;
  d["low"] = b.range.low;
  d["high"] = b.range.high;
  if (!b.value.empty()) d["value"] = b.value;
  return d;
}

/// What spec_of takes, for distinct kernel `k` of a compiled graph: all but the precision context.
nb::dict benchmark_spec(nb::handle callable, std::size_t k, const std::map<std::string, std::int64_t>& hints) {
  const runtime::CompiledGraph& graph = graph_of(callable.ptr());
  if (k >= graph.generated().size()) fail("options.bad_value", "there are {} kernels, no number {}", graph.generated().size(), k);
  const repro::BenchmarkSpec s = repro::make_spec(graph, k, hints);
  nb::dict a;
  a["name"] = s.artifacts.name;
  a["target"] = s.artifacts.target;
  a["sizes"] = s.artifacts.sizes;
  a["wrapper"] = s.artifacts.wrapper;
  a["tiling_def"] = s.artifacts.tiling_def;
  a["host_impl"] = s.artifacts.host_impl;
  a["device_impl"] = s.artifacts.device_impl;
  a["vector_core_num"] = s.artifacts.vector_core_num;
  a["ai_core_num"] = s.artifacts.ai_core_num;
  a["hash"] = s.artifacts.hash;
  nb::list calls, buffers;
  for (const repro::CallArgument& c : s.call_arguments) calls.append(nb::make_tuple(c.is_size ? "size" : "tensor", c.name));
  for (const repro::Buffer& b : s.profile_buffers) buffers.append(buffer_dict(b));
  nb::dict d;
  d["kernel_name"] = s.kernel_name;
  d["artifacts"] = a;
  d["fragment"] = s.fragment;
  d["kernel_ir"] = s.kernel_ir;
  d["call_arguments"] = calls;
  d["size_hints"] = s.size_hints;
  d["profile_buffers"] = buffers;
  d["node_summary"] = s.node_summary;
  d["is_static"] = s.is_static;
  d["precision_mode"] = s.precision_mode;
  d["environment"] = s.environment;
  d["fuselab_version"] = s.fuselab_version;
  return d;
}

std::string write_debug_folder(nb::handle callable, const nb::dict& request) {
  const runtime::CompiledGraph& graph = graph_of(callable.ptr());
  repro::FolderRequest r;
  r.root = item<std::string>(request, "root", "fuselab_debug");
  r.kind = item<std::string>(request, "kind", "inference");
  r.number = item<int>(request, "number", 0);
  r.graph_text = item<std::string>(request, "graph_text", "");
  r.output_code = item<std::string>(request, "output_code", "");
  r.hints = item<std::map<std::string, std::int64_t>>(request, "hints", {});
  const auto contexts = item<nb::dict>(request, "precision", {});
  const auto options = options_of(request);
  const auto torch_version = item<std::string>(request, "torch_version", "");
  if (!torch_version.empty()) {
    r.complete = [&](repro::BenchmarkSpec& spec, const Graph& fragment) {
      spec.torch_version = torch_version;
      spec.options = options;
      const char* name = spec.kernel_name.c_str();
      if (!contexts.contains(name)) return;
      if (nb::isinstance<nb::str>(contexts[name])) {
        spec.no_precision_reason = nb::cast<std::string>(contexts[name]);
        return;
      }
      const auto context = nb::cast<nb::dict>(contexts[name]);
      spec.precision = precision_of(context);
      for (const ValueId v : fragment.outputs) spec.precision->output_names.push_back(fragment.values[v].name);
      // Parameters of eager_fn have the layout that the kernel's inputs have.
      const auto names = item<std::vector<std::pair<std::string, int>>>(context, "parameters", {});
      for (const auto& [name, index] : names) {
        repro::Buffer b = spec.profile_buffers.at(static_cast<std::size_t>(index));
        b.name = name;
        spec.precision->fx_input_meta.push_back(b);
      }
      for (const repro::Buffer& b : buffers_of(context, "extra")) spec.precision->fx_input_meta.push_back(b);
      const auto values = item<std::map<std::string, std::string>>(context, "values", {});
      for (repro::Buffer& b : spec.profile_buffers) {
        const auto value = values.find(b.name);
        if (value != values.end()) b.value = value->second;
      }
      spec.is_static = item<bool>(context, "is_static", spec.is_static);
    };
  }
  return repro::write_debug_folder(graph, r);
}

/// (folder, kernel that does not compile or "").
nb::tuple write_failed_folder(const std::string& text, const nb::dict& options, const nb::dict& request) {
  repro::FolderRequest r;
  r.root = item<std::string>(request, "root", "fuselab_debug");
  r.kind = item<std::string>(request, "kind", "inference");
  r.number = item<int>(request, "number", 0);
  r.graph_text = item<std::string>(request, "graph_text", "");
  r.hints = item<std::map<std::string, std::int64_t>>(request, "hints", {});
  const repro::Failure failure = repro::write_failed_folder(parse_graph(text), runtime_options(options), r);
  return nb::make_tuple(failure.folder, failure.kernel);
}

/// (on, folder): what API (None: says nothing) and environment say together.
nb::tuple debug_flags(nb::handle debug_dir) {
  std::map<std::string, std::string> given;
  if (nb::isinstance<nb::str>(debug_dir)) given["debug_dir"] = nb::cast<std::string>(debug_dir);
  const fuse::Flags flags = fuse::resolve({fuse::environment_settings(), fuse::named_settings(given, fuse::Origin::api)});
  return nb::make_tuple(flags.debug || !given.empty(), flags.debug_dir);
}

}  // namespace

void add_repro(nb::module_& m) {
  m.def("write_debug_folder", &write_debug_folder, nb::arg("compiled"), nb::arg("request") = nb::dict(),
        "Writes the debug folder of a compiled graph and returns its path. request: root, kind, number, graph_text, output_code, "
        "hints, "
        "torch_version, options, precision.");
  m.def("benchmark_spec", &benchmark_spec, nb::arg("compiled"), nb::arg("kernel"),
        nb::arg("hints") = std::map<std::string, std::int64_t>(),
        "The spec of a distinct kernel's script as a dictionary; sizes without a hint count as 16.");
  m.def("write_failed_folder", &write_failed_folder, nb::arg("text"), nb::arg("options"), nb::arg("request"),
        "The folder of a graph whose compilation threw, and the name of the kernel that does not compile.");
  m.def(
      "benchmark_script",
      [](const nb::dict& spec) {
        const repro::Script script = repro::generate_benchmark_script(spec_of(spec));
        return nb::make_tuple(script.text, script.has_precision);
      },
      nb::arg("spec"), "(text, has a precision context) of the script for a spec as a dictionary.");
  m.def(
      "parameters",
      [](const std::string& text) {
        const Graph g = parse_graph(text);
        std::vector<std::pair<std::string, std::string>> out;
        for (const std::string& s : g.size_params) out.emplace_back(s, "size");
        for (const ValueId v : g.inputs) out.emplace_back(g.values[v].name, "tensor");
        return out;
      },
      nb::arg("text"), "(name, \"size\" or \"tensor\") of the parameters of a graph text as the printer writes it.");
  m.def(
      "concrete_graph",
      [](const std::string& text, const std::map<std::string, std::int64_t>& sizes) {
        return print_graph(concrete(parse_graph(text), sizes));
      },
      nb::arg("text"), nb::arg("sizes"), "The graph text with every symbolic size replaced by its value.");
  m.def("environment_snapshot", &repro::environment_snapshot, "The variables that a script restores.");
  m.def("debug_flags", &debug_flags, nb::arg("debug_dir").none() = nb::none(),
        "(on, folder) of the debug folder, from the API's option and the environment.");
}

}  // namespace fuselab::python
