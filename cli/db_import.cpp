// fuselab db import: recorded profiles into a directory of the database.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/common.h"
#include "cli/db.h"
#include "fuselab/perfdb/import.h"

namespace fuselab::cli {
namespace {

struct Args {
  DbTarget target;
  std::vector<std::string> paths, profiling;
  bool allow_stack_mismatch = false, json = false;
  int threads = 0;
};

void print_report(const perfdb::ImportReport& r, const std::string& target) {
  std::cout << fmt::format("{:>8}  {:>8}  {:>8}  file\n", "rows", "new", "updated");
  for (const perfdb::ImportedFile& f : r.files)
    std::cout << fmt::format("{:>8}  {:>8}  {:>8}  {}\n", f.rows, f.added, f.updated, f.name);
  std::cout << fmt::format("{} of {} rows of {} file{} are in {}\n", r.counts.used, r.counts.rows, r.read.size(),
                           r.read.size() == 1 ? "" : "s", target);
  for (const std::string& n : r.notes) std::cout << "note: " << n << "\n";
  for (const perfdb::SkippedFile& s : r.skipped) std::cout << "skipped: " << s.path << ": " << s.reason << "\n";
}

void import(const Args& args) {
  perfdb::ImportOptions options;
  options.paths = args.paths;
  options.paths.insert(options.paths.end(), args.profiling.begin(), args.profiling.end());
  if (options.paths.empty()) throw UsageError("give the profiles: fuselab db import PATH..., or --profiling-path PATH");
  options.target = args.target.directory();
  options.stack = args.target.stack();
  options.allow_stack_mismatch = args.allow_stack_mismatch;
  options.threads = args.threads;
  options.time = utc_now();
  options.command = "fuselab db import";
  for (const std::string& p : options.paths) options.command += " " + std::filesystem::path(p).filename().string();
  Progress bar("import");
  options.progress = [&](const std::string& file, std::uint64_t done, std::uint64_t bytes) {
    bar.show(bytes ? static_cast<double>(done) / static_cast<double>(bytes) : 1, std::filesystem::path(file).filename().string());
  };
  const perfdb::ImportReport r = perfdb::import_profiles(options);
  if (!args.json) {
    print_report(r, options.target);
    return;
  }
  nlohmann::ordered_json files = nlohmann::ordered_json::array(), skipped = nlohmann::ordered_json::array();
  for (const perfdb::ImportedFile& f : r.files) {
    files.push_back({{"name", f.name}, {"rows", f.rows}, {"added", f.added}, {"updated", f.updated}});
  }
  for (const perfdb::SkippedFile& s : r.skipped) skipped.push_back({{"path", s.path}, {"reason", s.reason}});
  print_json({{"target", options.target},
              {"read", r.read},
              {"skipped", skipped},
              {"rows", r.counts.rows},
              {"used", r.counts.used},
              {"without_shapes", r.counts.without_shapes},
              {"communication", r.counts.communication},
              {"communication_twins", r.counts.communication_twins},
              {"bad_duration", r.counts.bad_duration},
              {"without_type", r.counts.without_type},
              {"files", files},
              {"notes", r.notes}});
}

}  // namespace

void add_db_import(CLI::App& db) {
  auto args = std::make_shared<Args>();
  CLI::App* c = db.add_subcommand("import", "Sums recorded profiles up into one CSV per kernel type, a row per signature");
  c->add_option("paths", args->paths, "kernel_details*.csv or op_summary_*.csv (also .gz), or folders that hold them");
  c->add_option("--profiling-path", args->profiling, "The same, by the RFC's name");
  args->target.add_to(*c);
  c->add_flag("--allow-stack-mismatch", args->allow_stack_mismatch, "Import although versions differ; it is recorded");
  c->add_option("--threads", args->threads, "Threads (default: all)");
  c->add_flag("--json", args->json, "The report as one JSON document");
  c->footer(
      "Examples:\n"
      "  fuselab db import run1/ASCEND_PROFILER_OUTPUT --database-path db/A3/vllm_ascend/vllm0.18.0_torch2.9.0_cann8.5\n"
      "  fuselab db import run1 run2 --root db --device A3 --vllm-version 0.18.0 --torch-version 2.9.0 --cann-version 8.5\n"
      "  fuselab db import fuselab_profile --root db --device CPU_EPYC_2C --torch-version 2.13.0 --isa avx512");
  c->callback([args] { import(*args); });
}

}  // namespace fuselab::cli
