// What the subcommands share: options, reading files, saying what went wrong.
#pragma once
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

#include "fuselab/fuse/flags.h"
#include "fuselab/graph/graph.h"
#include "fuselab/runtime/compiled.h"

namespace fuselab::cli {

/// The call itself was wrong (exit code 2), as opposed to work that failed (1).
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum Exit : int { kDone = 0, kFailed = 1, kWrongCall = 2 };

/// Options of every command that compiles.
struct CompileOptions {
  std::map<std::string, std::string> flags;  ///< fusing options as given, by their name in the flag table
  bool no_fuse = false;
  std::string precision;
  std::vector<std::string> skip_passes;
  int opt_level = 1;
  int threads = 0;
  bool no_cache = false;

  void add_to(CLI::App& command);
  /// Command line over environment; strict. Throws Error("flags...").
  fuse::Flags resolved() const;
  runtime::Options runtime_options() const;
  /// Writes the debug folder when flags or environment ask for one, and says on stderr where. Throws Error("repro.folder").
  void debug_folder(const runtime::CompiledGraph& graph, const std::map<std::string, std::int64_t>& sizes = {}) const;
};

/// The text of a file; UsageError when it cannot be read.
std::string read_file(const std::string& path);
/// Writes a file, making its folder. Throws Error("file.write").
void write_file(const std::string& path, const std::string& text);
Graph load_graph(const std::string& path);

/// A command's result for programs goes to stdout as one JSON document; for people as lines.
void print_json(const nlohmann::ordered_json& document);

/// Warnings of the library go to stderr, each as one line.
void show_warnings_on_stderr();

/// Values for symbolic sizes: `--size B=4`.
std::map<std::string, std::int64_t> parse_sizes(const std::vector<std::string>& given);

// One per file.
void add_run(CLI::App& app);
void add_explain(CLI::App& app);
void add_compile(CLI::App& app);
void add_check(CLI::App& app);
void add_ops(CLI::App& app);
void add_cache(CLI::App& app);
void add_flags(CLI::App& app);
void add_repro(CLI::App& app);
void add_compare(CLI::App& app);
void add_profile(CLI::App& app);
void add_prove(CLI::App& app);
void add_db(CLI::App& app);

/// Set by a command that ran through but whose verdict is negative.
void set_exit(int code);

}  // namespace fuselab::cli
