#include "fuselab/repro/script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace fuselab::repro {
namespace {

/// As JSON writes it in ASCII, which is a Python literal too.
std::string quoted(const std::string& s) {
  return nlohmann::json(s).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string tuple_text(const std::vector<std::int64_t>& list) {
  std::string out = "(";
  for (const std::int64_t v : list) out += std::to_string(v) + ", ";
  if (list.size() > 1) out.resize(out.size() - 2);
  if (list.size() == 1) out.pop_back();
  return out + ")";
}

std::string buffer_text(const Buffer& b) {
  std::string out = fmt::format("{{\"name\": {}, \"dtype\": \"{}\", \"shape\": {}, \"stride\": {}", quoted(b.name), name(b.dtype),
                                tuple_text(b.shape), tuple_text(b.stride));
  if (!is_float(b.dtype) && !is_bool(b.dtype)) out += fmt::format(", \"low\": {}, \"high\": {}", b.range.low, b.range.high);
  if (!b.value.empty()) out += ", \"value\": " + b.value;
  return out + "}";
}

std::string buffers_text(const std::vector<Buffer>& list) {
  std::string out = "[";
  for (const Buffer& b : list) out += "\n    " + buffer_text(b) + ",";
  return out + (list.empty() ? "]" : "\n]");
}

std::string names_text(const std::vector<std::string>& list) {
  std::string out = "[";
  for (const std::string& s : list) out += (out.size() > 1 ? ", " : "") + quoted(s);
  return out + "]";
}

/// Text that may stand inside the script's opening docstring.
std::string in_docstring(std::string s) {
  for (char& c : s) {
    if (c == '\\') c = '/';
    if (c == '"') c = '\'';
  }
  return s;
}

std::string docstring(const BenchmarkSpec& spec) {
  std::string out =
      "\"\"\"The kernel " + spec.kernel_name + " on its own: needs fuselab and torch, and no file beside it.\n\nNodes:\n";
  for (const std::string& line : spec.node_summary) out += "    " + in_docstring(line) + "\n";
  out += "\nModes:\n    --profile  (default) compiles and runs the artifact below 11 times, and writes ./profiling\n";
  if (spec.precision) {
    out +=
        "    --check    compares PyTorch's eager fragment, the fragment compiled anew, the artifact below, and fp64\n"
        "    --bench    times the eager and the recompiled fragment\n";
  } else {
    out += "               --check and --bench are not to be had: " + in_docstring(spec.no_precision_reason) + "\n";
  }
  out +=
      "    --e2e      with a mode: makes the artifact anew from KERNEL_IR below, which may be edited\n"
      "\nExit codes: 0 done and held, 1 failed, 2 the call was wrong. docs/repro.md says more.\n"
      "Made with fuselab " +
      spec.fuselab_version + (spec.torch_version.empty() ? "" : " and torch " + spec.torch_version) + ".\n\"\"\"\n";
  return out;
}

std::string environment_block(const BenchmarkSpec& spec) {
  std::string out =
      "import os\nimport sys\n\n# The variables of the process that made this script. What the caller sets wins.\n_bench_env = {";
  for (const auto& [name, value] : spec.environment) out += "\n    " + quoted(name) + ": " + quoted(value) + ",";
  out += spec.environment.empty() ? "}\n" : "\n}\n";
  out +=
      "for _name, _value in _bench_env.items():\n"
      "    if os.environ.setdefault(_name, _value) != _value:\n"
      "        print(f\"WARNING: {_name} is {os.environ[_name]!r} here; it was {_value!r} when this script was made.\", "
      "file=sys.stderr)\n"
      "for _name in (\"AUTOFUSE_DFX_FLAGS\", \"TORCH_COMPILE_DEBUG\", \"FUSELAB_CHECK_KERNELS\"):\n"
      "    os.environ.pop(_name, None)  # a script writes no scripts\n"
      "os.environ[\"FUSELAB_BACKEND\"] = \"cpu\"\n\n";
  return out;
}

std::string artifacts_text(const Artifacts& a) {
  std::string out = "ARTIFACTS = {\n";
  const auto put = [&](const char* key, const std::string& text) { out += fmt::format("    \"{}\": {},\n", key, text); };
  put("name", quoted(a.name));
  put("target", quoted(a.target));
  put("sizes", names_text(a.sizes));
  put("vector_core_num", std::to_string(a.vector_core_num));
  put("ai_core_num", std::to_string(a.ai_core_num));
  put("hash", quoted(a.hash));
  put("wrapper", python_text(a.wrapper));
  put("tiling_def", python_text(a.tiling_def));
  put("host_impl", python_text(a.host_impl));
  put("device_impl", python_text(a.device_impl));
  return out + "}\n";
}

std::string precision_block(const BenchmarkSpec& spec, const PrecisionContext& p) {
  std::string options = "{";
  for (const auto& [name, text] : spec.options) options += (options.size() > 1 ? ", " : "") + quoted(name) + ": " + text;
  options += "}";
  return "\nimport torch\n\n_fx_inputs = " + buffers_text(p.fx_input_meta) + "\nOUTPUT_NAMES = " + names_text(p.output_names) +
         "\n\n\n" + p.eager_fn_code + "\n\ndef _run_eager(inputs):\n    return eager_fn(*inputs)\n\n\n" +
         "def _run_compiled(inputs, **options):\n"
         "    compiled = torch.compile(eager_fn, backend=\"fuselab\", options={**OPTIONS, **options}, dynamic=not IS_STATIC)\n"
         "    return compiled(*inputs)\n\n\n" +
         "OPTIONS = " + options + "\n";
}

}  // namespace

std::string python_text(const std::string& s) {
  const bool raw = s.find("'''") == std::string::npos && s.find('\r') == std::string::npos && s.find('\0') == std::string::npos &&
                   (s.empty() || (s.back() != '\\' && s.back() != '\''));
  const bool ascii = s.find('\x7f') == std::string::npos;
  if (s.find('\n') == std::string::npos || !raw || !ascii) return quoted(s);
  return "r'''" + s + "'''";
}

Script generate_benchmark_script(const BenchmarkSpec& spec) {
  Script script;
  script.has_precision = spec.precision.has_value();
  std::string& t = script.text;
  t = docstring(spec) + environment_block(spec);
  t += "KERNEL = " + quoted(spec.kernel_name) + "\n";
  t += "MADE_WITH = {\"fuselab\": " + quoted(spec.fuselab_version) + ", \"torch\": " + quoted(spec.torch_version) + "}\n";
  t += std::string("IS_STATIC = ") + (spec.is_static ? "True" : "False") + "\n";
  t += "PRECISION = " + quoted(spec.precision_mode) + "\n";
  t += "SIZE_HINTS = {";
  for (const auto& [name, value] : spec.size_hints)
    t += (t.back() == '{' ? "" : ", ") + quoted(name) + ": " + std::to_string(value);
  t += "}\n";
  if (!spec.precision) t += "NO_CHECK_REASON = " + quoted(spec.no_precision_reason) + "\n";
  t += "\n# What the kernel is called with: sizes by name, tensors by layout.\nCALL_ARGUMENTS = [";
  for (const CallArgument& a : spec.call_arguments)
    t += (t.back() == '[' ? "" : ", ") + fmt::format("({}, {})", a.is_size ? "\"size\"" : "\"tensor\"", quoted(a.name));
  t += "]\nPROFILE_BUFFERS = " + buffers_text(spec.profile_buffers) + "\n\n";
  t += "FRAGMENT = " + python_text(spec.fragment) + "\n\n";
  t += artifacts_text(spec.artifacts);
  t += "\n# --e2e compiles this text.\nKERNEL_IR = " + python_text(spec.kernel_ir) + "\n";
  if (spec.precision) t += precision_block(spec, *spec.precision);
  t += "\n\nif __name__ == \"__main__\":\n    from fuselab.repro.runner import main\n\n    sys.exit(main(globals()))\n";
  return script;
}

}  // namespace fuselab::repro
