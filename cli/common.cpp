#include "cli/common.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "fuselab/core/error.h"
#include "fuselab/core/warn.h"
#include "fuselab/core/whole_file.h"
#include "fuselab/graph/text.h"
#include "fuselab/repro/folder.h"

namespace fuselab::cli {
namespace {

std::string env_or_empty(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

}  // namespace

void CompileOptions::add_to(CLI::App& command) {
  const auto flag = [&](const char* option, const char* name, const char* help) {
    command.add_option_function<std::string>(
               option, [this, name](const std::string& v) { flags[name] = v; }, help)
        ->type_name("TEXT")
        ->group("Fusing");
  };
  command.add_flag("--no-fuse-at-all", no_fuse, "--no-fuse: fusing off, one operator is one kernel")->group("");
  flag("--fuse", "autofuse_enable_pass", "only these fusion classes (elemwise,reduce,...), or all");
  flag("--no-fuse", "autofuse_disable_pass", "without =CLASSES: fusing off altogether; with: these classes off");
  flag("--keep-dtype", "autofuse_enhance_precision_blacklist", "operators left in their own dtype, or all");
  flag("--max_fusion_size", "max_fusion_size", "operators per kernel at most; 0: no fusing");
  flag("--recomputation_threshold", "recomputation_threshold", "consumers that may compute a cheap value again");
  command.add_option("--precision", precision, "block (default) or eager: round after every operator")
      ->check(CLI::IsMember({"block", "eager"}))
      ->group("Compiling");
  command.add_option("--skip-pass", skip_passes, "a graph pass or the kernel pass `simplify` to leave out")->group("Compiling");
  command.add_option("--opt-level", opt_level, "0: no simplification")->check(CLI::Range(0, 1))->group("Compiling");
  command.add_option("--threads", threads, "threads of a call; default: the pool's")
      ->check(CLI::Range(1, 4096))
      ->group("Compiling");
  command.add_flag("--no-cache", no_cache, "compile every kernel anew")->group("Compiling");
  flag("--debug-dir", "debug_dir", "write the debug folder of the graph and of each kernel below this folder");
}

fuse::Flags CompileOptions::resolved() const {
  std::map<std::string, std::string> given = flags;
  if (no_fuse) given["enable_autofuse"] = "false";
  return fuse::resolve({fuse::environment_settings(), fuse::named_settings(given, fuse::Origin::command_line)});
}

runtime::Options CompileOptions::runtime_options() const {
  const fuse::Flags flags_now = resolved();
  runtime::Options options;
  options.fuse = flags_now.fuse;
  options.codegen.keep_dtype = flags_now.keep_dtype;
  codegen::check_skip_passes(skip_passes);
  options.codegen.skip_passes = skip_passes;
  options.codegen.opt_level = opt_level;
  const bool emulate = env_or_empty("TORCHINDUCTOR_EMULATE_PRECISION_CASTS") == "1";
  const std::string mode = !precision.empty() ? precision : emulate ? "eager" : "block";
  options.codegen.precision = mode == "eager" ? codegen::Precision::eager : codegen::Precision::block;
  options.threads = threads;
  options.dumps = flags_now.debug;
  for (const char* name : {"FUSELAB_FORCE_DISABLE_CACHES", "TORCHINDUCTOR_FORCE_DISABLE_CACHES"}) {
    if (env_or_empty(name) == "1") options.jit.read_cache = false;
  }
  if (no_cache) options.jit.read_cache = false;
  return options;
}

void CompileOptions::debug_folder(const runtime::CompiledGraph& graph, const std::map<std::string, std::int64_t>& sizes) const {
  const fuse::Flags flags_now = resolved();
  if (!flags_now.debug) return;
  repro::FolderRequest request;
  request.root = flags_now.debug_dir;
  request.hints = sizes;
  std::cerr << "fuselab: debug folder " << repro::write_debug_folder(graph, request) << "\n";
}

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw UsageError(path + " is a folder, not a file.");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UsageError("cannot read " + path + ": there is no such file, or it may not be read.");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& text) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  write_whole(path, {text});
}

Graph load_graph(const std::string& path) { return parse_graph(read_file(path), path); }

void print_json(const nlohmann::ordered_json& document) {
  std::cout << document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}

void show_warnings_on_stderr() {
  set_warning_handler([](const std::string& code, const std::string& message) {
    std::cerr << "fuselab: warning: " << message << " [" << code << "]\n";
  });
}

std::map<std::string, std::int64_t> parse_sizes(const std::vector<std::string>& given) {
  std::map<std::string, std::int64_t> out;
  for (const std::string& text : given) {
    const auto equals = text.find('=');
    std::size_t used = 0;
    std::int64_t value = -1;
    try {
      if (equals != std::string::npos && equals > 0) value = std::stoll(text.substr(equals + 1), &used);
    } catch (const std::exception&) {
      value = -1;
    }
    if (value < 0 || used != text.size() - equals - 1)
      throw UsageError("--size " + text + ": write NAME=NUMBER, for example --size B=4.");
    if (!out.emplace(text.substr(0, equals), value).second) throw UsageError("--size " + text + ": the symbol is given twice.");
  }
  return out;
}

}  // namespace fuselab::cli
