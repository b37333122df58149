// fuselab db mapping: a first op_mapping.yaml, and what changed between two.
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/common.h"
#include "cli/db.h"
#include "fuselab/core/error.h"
#include "fuselab/perfdb/mapping_init.h"

namespace fuselab::cli {
namespace {

struct Args {
  std::string directory, before, after;
  bool json = false;
};

std::string mapping_of(const std::string& path) {
  return std::filesystem::is_directory(path) ? (std::filesystem::path(path) / "op_mapping.yaml").string() : path;
}

void init(const Args& args) {
  if (!perfdb::write_first_mapping(args.directory, utc_now().substr(0, 10))) {
    fail("db.mapping_exists", "{}: there is an op_mapping.yaml already; it stays as it is.", args.directory);
  }
  std::cout << mapping_of(args.directory) << "\n";
}

void diff(const Args& args) {
  const std::vector<std::string> lines = perfdb::mapping_diff(mapping_of(args.before), mapping_of(args.after));
  if (args.json) {
    print_json({{"changes", lines}});
    return;
  }
  for (const std::string& line : lines) std::cout << line << "\n";
  if (lines.empty()) std::cout << "no operator differs\n";
}

}  // namespace

void add_db_mapping(CLI::App& db) {
  auto args = std::make_shared<Args>();
  CLI::App* mapping = db.add_subcommand("mapping", "op_mapping.yaml: a first one, and what changed between two");
  mapping->require_subcommand(1);
  CLI::App* i = mapping->add_subcommand("init", "Writes a first op_mapping.yaml: every kernel's CSV by its own name");
  i->add_option("directory", args->directory, "The directory of the database")->required();
  i->callback([args] { init(*args); });
  CLI::App* d = mapping->add_subcommand("diff", "Operators that were added (+), removed (-) or changed (~)");
  d->add_option("before", args->before, "A mapping or its directory")->required();
  d->add_option("after", args->after, "Another")->required();
  d->add_flag("--json", args->json, "As JSON");
  d->callback([args] { diff(*args); });
  mapping->footer("Examples:\n  fuselab db mapping init DIR\n  fuselab db mapping diff OLD/op_mapping.yaml NEW/op_mapping.yaml");
}

}  // namespace fuselab::cli
