#include "compile.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "callable.h"
#include "errors.h"
#include "fuselab/core/error.h"
#include "fuselab/core/hash.h"
#include "fuselab/fuse/flags.h"
#include "fuselab/graph/text.h"
#include "fuselab/runtime/compiled.h"

namespace nb = nanobind;

namespace fuselab::python {
namespace {

/// A list of names, or one string with commas.
std::vector<std::string> strings(nb::handle value, const char* key) {
  std::vector<std::string> out;
  if (nb::isinstance<nb::str>(value)) {
    std::string item;
    for (const char c : nb::cast<std::string>(value) + ",") {
      if (c != ',') {
        if (c != ' ') item += c;
      } else if (!item.empty()) {
        out.push_back(std::exchange(item, {}));
      }
    }
    return out;
  }
  if (!nb::isinstance<nb::list>(value) && !nb::isinstance<nb::tuple>(value) && !nb::isinstance<nb::set>(value))
    fail("options.bad_value", "option '{}' is a list of names or one string with commas", key);
  for (nb::handle item : value) {
    if (!nb::isinstance<nb::str>(item)) fail("options.bad_value", "option '{}' holds something that is no string", key);
    out.push_back(nb::cast<std::string>(item));
  }
  return out;
}

std::string joined(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ",") + item;
  return out;
}

std::int64_t integer(nb::handle value, const char* key, std::int64_t least) {
  if (!PyLong_Check(value.ptr())) fail("options.bad_value", "option '{}' is a whole number", key);
  const std::int64_t n = PyLong_AsLongLong(value.ptr());
  if (PyErr_Occurred() || n < least || n > 1'000'000'000) {
    PyErr_Clear();
    fail("options.bad_value", "option '{}' is a number from {} to 1000000000", key, least);
  }
  return n;
}

bool boolean(nb::handle value, const char* key) {
  if (!PyBool_Check(value.ptr())) fail("options.bad_value", "option '{}' is True or False", key);
  return value.ptr() == Py_True;
}

struct Parsed {
  runtime::Options options;
  const DLPackExchangeAPI* api = nullptr;
};

/// The API's name of a flag, and the flag (fuselab/fuse/flags.h), whose parser checks the value.
constexpr std::pair<const char*, const char*> kFlags[] = {{"enable_autofuse", "enable_autofuse"},
                                                          {"fuse", "autofuse_enable_pass"},
                                                          {"no_fuse", "autofuse_disable_pass"},
                                                          {"max_fusion_size", "max_fusion_size"},
                                                          {"recomputation_threshold", "recomputation_threshold"},
                                                          {"keep_dtype", "autofuse_enhance_precision_blacklist"},
                                                          {"debug_dir", "debug_dir"}};

std::string flag_value(nb::handle v, const char* key) {
  if (PyBool_Check(v.ptr())) return v.ptr() == Py_True ? "true" : "false";
  if (PyLong_Check(v.ptr())) return std::to_string(integer(v, key, 0));
  const std::string names = joined(strings(v, key));
  return names.empty() && std::string_view(key) == "fuse" ? "elemwise" : names;  // elemwise is always among them
}

Parsed parse_options(const nb::dict& from) {
  Parsed out;
  runtime::Options& o = out.options;
  std::map<std::string, std::string> flags;
  for (auto [k, v] : from) {
    const std::string key = nb::cast<std::string>(k);
    const char* name = key.c_str();
    if (v.is_none()) continue;
    const auto* flag = std::find_if(std::begin(kFlags), std::end(kFlags), [&](const auto& f) { return key == f.first; });
    if (key == "no_fuse" && PyBool_Check(v.ptr())) {
      flags["enable_autofuse"] = v.ptr() == Py_True ? "false" : "true";
    } else if (flag != std::end(kFlags)) {
      flags[flag->second] = key == "debug_dir" && nb::isinstance<nb::str>(v) ? nb::cast<std::string>(v) : flag_value(v, name);
    } else if (key == "precision") {
      const std::string mode = nb::isinstance<nb::str>(v) ? nb::cast<std::string>(v) : "";
      if (mode != "block" && mode != "eager") fail("options.bad_value", "option 'precision' is \"block\" or \"eager\"");
      o.codegen.precision = mode == "eager" ? codegen::Precision::eager : codegen::Precision::block;
    } else if (key == "skip_passes") {
      codegen::check_skip_passes(o.codegen.skip_passes = strings(v, name));
    } else if (key == "opt_level") {
      o.codegen.opt_level = static_cast<int>(integer(v, name, 0));
      if (o.codegen.opt_level > 1) fail("options.bad_value", "option 'opt_level' is 0 or 1");
    } else if (key == "threads") {
      o.threads = static_cast<int>(integer(v, name, 0));
    } else if (key == "poison") {
      o.poison = static_cast<int>(integer(v, name, 0));
      if (o.poison > 255) fail("options.bad_value", "option 'poison' is a byte");
    } else if (key == "compile_threads") {
      o.compile_threads = static_cast<int>(integer(v, name, 0));
    } else if (key == "read_cache") {
      o.jit.read_cache = boolean(v, name);
    } else if (key == "dumps") {
      o.dumps = boolean(v, name);
    } else if (key == "exchange_api") {
      if (!PyCapsule_IsValid(v.ptr(), "dlpack_exchange_api"))
        fail("options.bad_value", "option 'exchange_api' is a dlpack_exchange_api capsule");
      out.api = static_cast<const DLPackExchangeAPI*>(PyCapsule_GetPointer(v.ptr(), "dlpack_exchange_api"));
    } else {
      std::string known;
      for (const auto& f : kFlags) known += std::string(f.first) + ", ";
      fail("options.unknown",
           "unknown option '{}'; there are {}precision, skip_passes, opt_level, threads, compile_threads, read_cache, dumps, "
           "poison, exchange_api",
           key, known);
    }
  }
  const fuse::Flags chosen = fuse::resolve({fuse::environment_settings(), fuse::named_settings(flags, fuse::Origin::api)});
  o.fuse = chosen.fuse;
  o.codegen.keep_dtype = chosen.keep_dtype;
  o.dumps = o.dumps || chosen.debug;
  return out;
}

/// Which parameters of `graph name(B: size, x: f32[B])` are sizes, in order: a Graph keeps sizes and tensors apart.
std::vector<bool> size_parameters(std::string_view text, const Graph& g) {
  std::vector<bool> out;
  std::string clean;  // without comments
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#')
      while (i < text.size() && text[i] != '\n') ++i;
    if (i < text.size()) clean += text[i];
  }
  std::size_t at = clean.find('(');
  int depth = 0;
  std::string piece;
  for (; at < clean.size(); ++at) {
    const char c = clean[at];
    if (c == '(' || c == '[' || c == '{') ++depth;
    const bool end = c == ')' && depth == 1;
    if (end || (c == ',' && depth == 1)) {
      const std::size_t colon = piece.find(':');
      if (colon != std::string::npos) {
        const std::size_t first = piece.find_first_not_of(" \t\r\n", colon + 1);
        std::size_t last = piece.find_last_not_of(" \t\r\n");
        out.push_back(first != std::string::npos && piece.substr(first, last - first + 1) == "size");
      }
      piece.clear();
      if (end) break;
      continue;
    }
    if (c == ')' || c == ']' || c == '}') --depth;
    if (!(c == '(' && depth == 1)) piece += c;
  }
  const auto sizes = static_cast<std::size_t>(std::count(out.begin(), out.end(), true));
  if (sizes != g.size_params.size() || out.size() - sizes != g.inputs.size())
    fail("graph.syntax", "the parameters of graph {} cannot be told apart", g.name);  // not reached after a successful parse
  return out;
}

nb::object compile_graph(const std::string& text, const nb::dict& options, const nb::list& externs, const std::string& file) {
  Parsed parsed = parse_options(options);
  CallableParts parts;
  {
    Graph graph = parse_graph(text, file);
    parts.is_size = size_parameters(text, graph);
    nb::gil_scoped_release unlocked;  // compiling takes long, and needs no Python
    parts.graph = std::make_shared<runtime::CompiledGraph>(std::move(graph), parsed.options);
  }
  parts.api = parsed.api;
  for (nb::handle f : externs) {
    if (!PyCallable_Check(f.ptr())) fail("call.extern", "extern {} is no callable", parts.externs.size());
    parts.externs.push_back(f.inc_ref().ptr());
  }
  return nb::steal(make_callable(std::move(parts)));
}

/// One kernel from texts made elsewhere: an artifact, an edited kernel.
nb::object compile_artifact(const std::string& text, const nb::dict& artifact, const nb::dict& options, const std::string& file) {
  const Parsed parsed = parse_options(options);
  const auto part = [&](const char* key) {
    if (!artifact.contains(key) || !nb::isinstance<nb::str>(artifact[key]))
      fail("options.bad_value", "the artifact has no text '{}'", key);
    return nb::cast<std::string>(artifact[key]);
  };
  codegen::Generated made;
  made.source.name = part("name");
  made.source.tiling_def = part("tiling_def");
  made.source.host_impl = part("host_impl");
  made.source.device_impl = part("device_impl");
  if (artifact.contains("sizes")) made.source.sizes = strings(artifact["sizes"], "sizes");
  made.source.hash = hash_hex(made.source.text());
  if (artifact.contains("ir") && nb::isinstance<nb::str>(artifact["ir"])) made.kernel_ir = nb::cast<std::string>(artifact["ir"]);
  if (artifact.contains("bounds")) {
    for (nb::handle item : nb::cast<nb::list>(artifact["bounds"])) {
      const auto texts = strings(item, "bounds");
      if (texts.size() != 3) fail("options.bad_value", "the artifact has a bound of {} texts, not of 3", texts.size());
      made.bounds.push_back({Expr::parse(texts[0]), Expr::parse(texts[1]), texts[2]});
    }
  }
  CallableParts parts;
  Graph graph = parse_graph(text, file);
  parts.is_size = size_parameters(text, graph);
  parts.api = parsed.api;
  {
    nb::gil_scoped_release unlocked;
    fuse::Plan plan = runtime::one_kernel_plan(graph, made.source.name);
    parts.graph = std::make_shared<runtime::CompiledGraph>(std::move(graph), std::move(plan),
                                                           std::vector<codegen::Generated>{std::move(made)}, parsed.options);
  }
  return nb::steal(make_callable(std::move(parts)));
}

/// The three texts of kernel IR, as a dictionary that compile_artifact takes.
nb::dict generate_from_ir(const std::string& ir, const std::string& file, const std::optional<std::string>& fragment) {
  std::optional<Graph> graph;
  if (fragment) graph = parse_graph(*fragment);
  const codegen::Generated g = codegen::generate_from_ir(ir, file, graph ? &*graph : nullptr);
  nb::dict d;
  d["name"] = g.source.name;
  d["tiling_def"] = g.source.tiling_def;
  d["host_impl"] = g.source.host_impl;
  d["device_impl"] = g.source.device_impl;
  nb::list sizes;
  for (const std::string& s : g.source.sizes) sizes.append(s);
  d["sizes"] = sizes;
  nb::list bounds;
  for (const kernel::Bound& b : g.bounds) {
    nb::list texts;
    for (const std::string& s : {b.when.str(), b.slack.str(), b.what}) texts.append(s);
    bounds.append(texts);
  }
  d["bounds"] = bounds;
  d["hash"] = g.source.hash;
  d["ir"] = g.kernel_ir;
  return d;
}

const char* kind_name(fuse::Step::Kind k) {
  return k == fuse::Step::Kind::kernel ? "kernel" : k == fuse::Step::Kind::extern_call ? "extern" : "view";
}

nb::dict explain(nb::handle callable) {
  const runtime::CompiledGraph& g = graph_of(callable.ptr());
  nb::dict out;
  nb::list steps;
  for (std::size_t i = 0; i < g.plan().steps.size(); ++i) {
    const fuse::Step& s = g.plan().steps[i];
    nb::dict d;
    d["kind"] = kind_name(s.kind);
    d["name"] = g.program().steps[i].label;
    const auto names = [&](const std::vector<ValueId>& values) {
      nb::list list;
      for (const ValueId v : values) list.append(g.graph().values[v].name);
      return list;
    };
    if (s.kind == fuse::Step::Kind::kernel) {
      d["block_kind"] = s.block_kind;
      d["inputs"] = names(s.inputs);
      d["outputs"] = names(s.outputs);
      d["fragment"] = print_graph(s.fragment);
    }
    nb::list nodes;
    for (const NodeId n : s.nodes) {
      const Node& node = g.graph().nodes[n];
      nb::dict item;
      item["op"] = node.op ? node.op->name : node.target;
      item["name"] = node.results.empty() ? std::string() : g.graph().values[node.results[0]].name;
      item["origin"] = node.origin;
      if (n < static_cast<int>(g.plan().reasons.size())) item["reason"] = g.plan().reasons[n];
      nodes.append(item);
    }
    d["nodes"] = nodes;
    steps.append(d);
  }
  out["graph"] = g.graph().name;
  out["steps"] = steps;
  nb::list reasons;
  for (const std::string& r : g.plan().reasons) reasons.append(r);
  out["reasons"] = reasons;
  nb::dict timing;
  const runtime::Timing& t = g.timing();
  timing["simplify"] = t.simplify;
  timing["fuse"] = t.fuse;
  timing["codegen"] = t.codegen;
  timing["compile"] = t.compile;
  timing["load"] = t.load;
  timing["first_run"] = t.first_run;
  timing["total"] = t.total;
  out["timing_ms"] = timing;
  nb::dict counts;
  counts["kernels"] = g.kernel_steps();
  counts["distinct_kernels"] = g.kernels().size();
  counts["externs"] = g.extern_steps();
  counts["calls"] = g.calls();
  counts["size_sets"] = g.bindings();
  out["counts"] = counts;
  return out;
}

nb::list kernel_texts(nb::handle callable) {
  const runtime::CompiledGraph& g = graph_of(callable.ptr());
  nb::list out;
  for (std::size_t i = 0; i < g.generated().size(); ++i) {
    const codegen::Generated& k = g.generated()[i];
    nb::dict d;
    d["name"] = k.source.name;
    d["graph"] = g.program().kernels[i].text;
    d["uses"] = g.program().kernels[i].uses;
    d["ir"] = k.kernel_ir;
    d["cpp"] = k.source.text();
    d["tiling_def"] = k.source.tiling_def;
    d["host_impl"] = k.source.host_impl;
    d["device_impl"] = k.source.device_impl;
    d["hash"] = k.source.hash;
    nb::list sizes;
    for (const std::string& s : k.source.sizes) sizes.append(s);
    d["sizes"] = sizes;
    nb::list dumps;
    for (const auto& [pass, text] : k.dumps) dumps.append(nb::make_tuple(pass, text));
    d["dumps"] = dumps;
    d["compile_ms"] = g.kernels()[i].compile_ms;
    d["load_ms"] = g.kernels()[i].load_ms;
    d["from_cache"] = g.kernels()[i].from_cache;
    out.append(d);
  }
  return out;
}

/// (dtype, sizes, strides in elements) of any array a compiled graph takes.
nb::tuple describe(nb::handle object) {
  Borrowed b;
  b.view(object.ptr(), "the array");
  nb::list sizes, strides;
  std::int64_t row = 1;
  for (int d = 0; d < b.input.rank; ++d) sizes.append(b.input.sizes[d]);
  if (b.input.strides) {
    for (int d = 0; d < b.input.rank; ++d) strides.append(b.input.strides[d]);
  } else {
    for (int d = b.input.rank - 1; d >= 0; --d) {
      strides.insert(0, row);
      row *= b.input.sizes[d];
    }
  }
  return nb::make_tuple(std::string(name(b.input.dtype)), nb::tuple(sizes), nb::tuple(strides));
}

/// name -> (dtype, sizes, strides) as texts, for every value of a graph text.
nb::dict value_types(const std::string& text) {
  const Graph g = parse_graph(text, "<traced function>");
  nb::dict out;
  const auto texts = [](const std::vector<Expr>& list) {
    nb::list l;
    for (const Expr& e : list) l.append(e.str());
    return nb::tuple(l);
  };
  for (const Value& v : g.values)
    out[v.name.c_str()] = nb::make_tuple(std::string(name(v.type.dtype)), texts(v.type.sizes), texts(v.type.strides));
  return out;
}

}  // namespace

runtime::Options runtime_options(const nb::dict& options) { return parse_options(options).options; }

void add_compile(nb::module_& m) {
  m.def("compile_graph", &compile_graph, nb::arg("text"), nb::arg("options") = nb::dict(), nb::arg("externs") = nb::list(),
        nb::arg("file") = "<text>", "A callable from a graph in text form. `externs[k]` runs the nodes `extern(..., call=k)`.");
  m.def("compile_artifact", &compile_artifact, nb::arg("text"), nb::arg("artifact"), nb::arg("options") = nb::dict(),
        nb::arg("file") = "<text>",
        "A callable that runs a whole fragment as the one kernel whose texts are given: name, tiling_def, host_impl, "
        "device_impl, sizes.");
  m.def(
      "kept_operators", [](const nb::dict& options) { return parse_options(options).options.codegen.keep_dtype; },
      nb::arg("options") = nb::dict(), "Operators that options and environment leave in their own dtype (keep_dtype).");
  m.def("generate_from_ir", &generate_from_ir, nb::arg("ir"), nb::arg("file") = "<ir>", nb::arg("fragment").none() = nb::none(),
        "The texts of a kernel from its IR; with the text of its fragment, buffers that are not the fragment's and accesses "
        "outside them are an error.");
  m.def("explain", &explain, nb::arg("compiled"), "Steps, reasons, counts and the time of each phase of a compiled graph.");
  m.def("kernels", &kernel_texts, nb::arg("compiled"), "The texts of each distinct kernel of a compiled graph.");
  m.def("graph_text", [](nb::handle callable) { return print_graph(graph_of(callable.ptr()).original()); }, nb::arg("compiled"));
  m.def("describe", &describe, nb::arg("array"), "(dtype, sizes, strides in elements) of any array a compiled graph takes.");
  m.def("value_types", &value_types, nb::arg("text"), "name -> (dtype, sizes, strides) for every value of a graph text.");
  m.def(
      "parse_graph", [](const std::string& text, const std::string& file) { return print_graph(parse_graph(text, file)); },
      nb::arg("text"), nb::arg("file") = "<text>", "Checks a graph text and gives it back as the printer writes it.");
}

}  // namespace fuselab::python
