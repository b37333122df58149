// fuselab db lint: what is wrong with a directory of the database.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "cli/common.h"
#include "cli/db.h"
#include "fuselab/perfdb/lint.h"

namespace fuselab::cli {
namespace {

struct Args {
  DbTarget target;
  std::string directory;
  bool json = false;
};

void lint(const Args& args) {
  const std::string directory = args.directory.empty() ? args.target.directory() : args.directory;
  const perfdb::LintReport r = perfdb::lint(directory);
  const std::size_t errors = r.errors(), warnings = r.findings.size() - errors;
  if (args.json) {
    nlohmann::ordered_json findings = nlohmann::ordered_json::array();
    for (const perfdb::Finding& f : r.findings) {
      findings.push_back(
          {{"level", f.error ? "error" : "warning"}, {"rule", f.rule}, {"file", f.file}, {"line", f.line}, {"text", f.text}});
    }
    print_json({{"directory", directory},
                {"files", r.files},
                {"rows", r.rows},
                {"measured", r.measured},
                {"without_time", r.without_time},
                {"errors", errors},
                {"warnings", warnings},
                {"findings", findings}});
  } else {
    for (const perfdb::Finding& f : r.findings) {
      std::string where = f.file.empty() ? directory : f.file;
      if (f.line > 0) where += fmt::format(":{}", f.line);
      std::cout << fmt::format("{}: {}: {} [{}]\n", where, f.error ? "error" : "warning", f.text, f.rule);
    }
    std::cout << fmt::format("{} files, {} rows ({} without a time): {} errors, {} warnings\n", r.files, r.rows, r.without_time,
                             errors, warnings);
  }
  if (errors > 0) set_exit(kFailed);
}

}  // namespace

void add_db_lint(CLI::App& db) {
  auto args = std::make_shared<Args>();
  CLI::App* c = db.add_subcommand("lint", "Checks a directory: schema, slots, duplicates, times, mapping; exit 1 on errors");
  c->add_option("directory", args->directory, "The directory of the database");
  args->target.add_to(*c);
  c->add_flag("--json", args->json, "The findings as one JSON document");
  c->footer(
      "Examples:\n"
      "  fuselab db lint db/A3/vllm_ascend/vllm0.18.0_torch2.9.0_cann8.5\n"
      "  fuselab db lint db/A3/hccl/v8.5 --json");
  c->callback([args] { lint(*args); });
}

}  // namespace fuselab::cli
