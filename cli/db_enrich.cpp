// fuselab db enrich: runtime values of attention launches into FusedInferAttentionScore.csv.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "cli/common.h"
#include "cli/db.h"
#include "fuselab/core/error.h"
#include "fuselab/perfdb/enrich.h"

namespace fuselab::cli {
namespace {

struct Args {
  std::string csv, jsonl, output, tag = "runtime_values_dumped";
  bool json = false;
};

/// A file that is not there is a step that failed (exit 1), as the other steps of the flow have it.
template <class Read>
auto step(const Read& read) {
  try {
    return read();
  } catch (const Error& e) {
    if (e.code() == "file.unreadable") fail("db.no_file", "{}", e.what());
    throw;
  }
}

void enrich(const Args& args) {
  const std::vector<perfdb::FiaRecord> records = step([&] { return perfdb::read_fia_records(args.jsonl); });
  perfdb::Table table = step([&] { return perfdb::Table::read(args.csv); });
  const perfdb::EnrichReport r = perfdb::enrich(table, records, args.tag);
  const std::string target = args.output.empty() ? args.csv : args.output;
  if (table.changed() || !args.output.empty()) table.write(target);
  if (args.json) {
    print_json({{"file", target},
                {"rows", r.rows},
                {"matched", r.matched},
                {"added", r.added},
                {"unmatched", r.unmatched},
                {"records", r.records},
                {"unused_records", r.unused_records}});
    return;
  }
  std::cout << fmt::format("{}: {} of {} rows have runtime values, {} rows added; {} of {} records belong to no row\n", target,
                           r.matched, r.rows, r.added, r.unused_records, r.records);
}

}  // namespace

void add_db_enrich(CLI::App& db) {
  auto args = std::make_shared<Args>();
  CLI::App* c = db.add_subcommand("enrich", "Joins dumped runtime values (JSON lines) to the rows of fused attention");
  c->add_option("--csv-path", args->csv, "FusedInferAttentionScore.csv")->required();
  c->add_option("--jsonl-path", args->jsonl, "The records, one JSON object a line")->required();
  c->add_option("--output-path", args->output, "Write here instead of over the CSV");
  c->add_option("--tag", args->tag, "Runtime metadata_completeness of matched rows")->capture_default_str();
  c->add_flag("--json", args->json, "The report as one JSON document");
  c->footer(
      "Examples:\n"
      "  fuselab db enrich --csv-path DIR/FusedInferAttentionScore.csv --jsonl-path fia.jsonl\n"
      "  fuselab db enrich --csv-path old.csv --jsonl-path fia.jsonl --output-path new.csv --tag runtime_values");
  c->callback([args] { enrich(*args); });
}

}  // namespace fuselab::cli
