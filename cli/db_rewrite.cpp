// fuselab db rewrite: a CSV of the database read and written again. Its bytes must not change: tests hold us to that.
#include <memory>

#include "cli/common.h"
#include "cli/db.h"
#include "fuselab/perfdb/table.h"

namespace fuselab::cli {
namespace {

struct Args {
  std::string csv, output;
  bool touch = false;
};

void rewrite(const Args& args) {
  perfdb::Table table = perfdb::Table::read(args.csv);
  for (std::size_t r = 0; args.touch && r < table.rows(); ++r) {
    for (std::size_t c = 0; c < table.columns().size(); ++c) {
      const std::string before(table.get(r, c));
      table.set(r, c, before + "x");
      table.set(r, c, before);
    }
  }
  table.write(args.output.empty() ? args.csv : args.output);
}

}  // namespace

void add_db_rewrite(CLI::App& db) {
  auto args = std::make_shared<Args>();
  CLI::App* c = db.add_subcommand("rewrite", "Reads a CSV and writes it again, byte for byte")->group("");
  c->add_option("csv", args->csv, "The file")->required();
  c->add_option("output", args->output, "Write here instead of over the file");
  c->add_flag("--touch", args->touch, "Change every cell and change it back before writing");
  c->footer("Example:\n  fuselab db rewrite MatMulV2.csv copy.csv --touch");
  c->callback([args] { rewrite(*args); });
}

}  // namespace fuselab::cli
