// The program `fuselab`: one subcommand per file. Errors go to stderr; exit code 1: the work failed, 2: the call was wrong.
#include <iostream>
#include <string>
#include <vector>

#include "cli/common.h"
#include "fuselab/core/error.h"
#include "fuselab/core/version.h"

namespace fuselab::cli {
namespace {

int g_exit = kDone;

/// Errors that come from how the program was called, not from the work.
bool is_wrong_call(const std::string& code) {
  for (const char* prefix : {"flags.", "call.", "cli.usage", "npy.", "safetensors.", "zip.", "pickle.", "file.unreadable",
                             "file.unknown_format", "options.bad_value", "jit.bad_isa"}) {
    if (code.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

int report(const std::string& code, const std::string& message, int exit_code, bool json) {
  std::cerr << "fuselab: error: " << message << (code.empty() ? "" : " [" + code + "]") << "\n";
  if (json) print_json({{"error", {{"code", code}, {"message", message}}}, {"exit", exit_code}});
  return exit_code;
}

int run_program(std::vector<std::string> args) {
  CLI::App app("Fuses tensor graphs into kernels, compiles, runs, explains and checks them.", "fuselab");
  app.set_version_flag("--version", std::string(version()) + " (clang " + std::string(llvm_version()) + ")");
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 the work failed, 2 the call was wrong.\nExample: fuselab explain model.graph");
  add_run(app);
  add_explain(app);
  add_compile(app);
  add_check(app);
  add_ops(app);
  add_cache(app);
  add_flags(app);
  add_repro(app);
  add_compare(app);
  add_profile(app);
  add_prove(app);
  add_db(app);
  bool json = false;
  for (std::string& arg : args) {
    if (arg == "--no-fuse") arg = "--no-fuse-at-all";  // `--no-fuse` alone and `--no-fuse=CLASSES` are two things
    json = json || arg == "--json";
  }
  show_warnings_on_stderr();
  try {
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    app.parse(reversed);
    return g_exit;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kDone : kWrongCall;
  } catch (const UsageError& e) {
    return report("cli.usage", e.what(), kWrongCall, json);
  } catch (const Error& e) {
    return report(e.code(), e.what(), is_wrong_call(e.code()) ? kWrongCall : kFailed, json);
  } catch (const std::bad_alloc&) {
    return report("runtime.out_of_memory", "The memory does not suffice.", kFailed, json);
  } catch (const std::exception& e) {
    return report("internal", e.what(), kFailed, json);
  }
}

}  // namespace

void set_exit(int code) { g_exit = code; }

}  // namespace fuselab::cli

int main(int argc, char** argv) { return fuselab::cli::run_program({argv + 1, argv + argc}); }
