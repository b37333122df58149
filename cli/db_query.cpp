// fuselab db query: the latency of an operator on given tensors.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <memory>

#include "cli/common.h"
#include "cli/db.h"
#include "fuselab/core/error.h"
#include "fuselab/perfdb/database.h"

namespace fuselab::cli {
namespace {

struct Args {
  DbTarget target;
  std::string directory, op, inputs, dtypes, formats, outputs, out_dtypes, out_formats, file;
  std::vector<std::string> context;
  bool strict = false, json = false;
};

std::vector<perfdb::Slot> slots(const std::string& shapes, const std::string& dtypes, const std::string& formats) {
  auto out = perfdb::parse_slots(shapes, dtypes, formats);
  if (!out) throw UsageError(fmt::format("\"{}\" is no list of shapes: write 136,7168;7168,3584", shapes));
  return *out;
}

/// One line of a file of lookups: {"op": ..., "inputs": "136,7168;...", "dtypes": ..., "formats": ..., "outputs": ...,
/// "output_dtypes": ..., "output_formats": ..., "context": {...}}.
perfdb::Query from_json(const nlohmann::json& j, const std::string& where) {
  if (!j.is_object() || !j.contains("op") || !j["op"].is_string())
    throw UsageError(where + ": a lookup is an object with \"op\"");
  const auto text = [&](const char* key) {
    if (!j.contains(key)) return std::string();
    if (!j[key].is_string()) throw UsageError(fmt::format("{}: \"{}\" is no text", where, key));
    return j[key].get<std::string>();
  };
  perfdb::Query q;
  q.op = text("op");
  q.inputs = slots(text("inputs"), text("dtypes"), text("formats"));
  q.outputs = slots(text("outputs"), text("output_dtypes"), text("output_formats"));
  if (j.contains("context")) {
    if (!j["context"].is_object()) throw UsageError(where + ": \"context\" is no object");
    for (const auto& [key, value] : j["context"].items())
      q.context[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return q;
}

nlohmann::ordered_json to_json(const perfdb::Answer& a) {
  nlohmann::ordered_json out = {{"source", perfdb::name_of(a.source)}};
  if (a.source != perfdb::Source::miss) {
    out["latency_us"] = a.latency_us;
    out["interval"] = {a.lo, a.hi};
    out["method"] = a.method;
    out["anchors"] = a.anchors;
  }
  if (!a.reason.empty()) out["reason"] = a.reason;
  if (a.accepted) out["accepted"] = true;
  return out;
}

void print(const perfdb::Query& q, const perfdb::Answer& a) {
  if (a.source == perfdb::Source::miss) {
    std::cout << fmt::format("{}: MISS{}: {}\n", q.op, a.accepted ? " (accepted)" : "", a.reason);
    return;
  }
  std::cout << fmt::format("{}: {:.3f} us  {}  {}", q.op, a.latency_us, perfdb::name_of(a.source), a.method);
  if (a.lo != a.hi) std::cout << fmt::format("  [{:.3f}, {:.3f}]", a.lo, a.hi);
  std::cout << "\n";
  if (!a.reason.empty()) std::cout << "  " << a.reason << "\n";
  for (const std::string& anchor : a.anchors) std::cout << "  " << anchor << "\n";
}

void query(const Args& args) {
  const perfdb::Database db(args.directory.empty() ? args.target.directory() : args.directory);
  std::vector<perfdb::Query> queries;
  if (!args.file.empty()) {
    std::ifstream in(args.file);
    if (!in) throw UsageError(args.file + ": cannot be read");
    std::string line;
    for (std::size_t n = 1; std::getline(in, line); ++n) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const std::string where = fmt::format("{}:{}", args.file, n);
      const nlohmann::json j = nlohmann::json::parse(line, nullptr, false);
      if (j.is_discarded()) throw UsageError(where + ": no JSON");
      queries.push_back(from_json(j, where));
    }
  } else {
    if (args.op.empty()) throw UsageError("give an operator, or a file of lookups with --file");
    perfdb::Query q;
    q.op = args.op;
    q.inputs = slots(args.inputs, args.dtypes, args.formats);
    q.outputs = slots(args.outputs, args.out_dtypes, args.out_formats);
    for (const std::string& c : args.context) {
      const std::size_t eq = c.find('=');
      if (eq == std::string::npos) throw UsageError("--context is NAME=VALUE: " + c);
      q.context[c.substr(0, eq)] = c.substr(eq + 1);
    }
    queries.push_back(q);
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  bool missed = false;
  for (const perfdb::Query& q : queries) {
    const perfdb::Answer a = db.query(q);
    missed = missed || (a.source == perfdb::Source::miss && !a.accepted);
    if (args.json) {
      all.push_back(to_json(a));
    } else {
      print(q, a);
    }
  }
  if (args.json) print_json(args.file.empty() ? all[0] : all);
  if (missed && args.strict) set_exit(kFailed);
}

}  // namespace

void add_db_query(CLI::App& db) {
  auto args = std::make_shared<Args>();
  CLI::App* c = db.add_subcommand("query", "The latency of an operator on given tensors, with its source and interval");
  c->add_option("directory", args->directory, "The directory of the database");
  c->add_option("op", args->op, "An operator of op_mapping.yaml, or a kernel type");
  args->target.add_to(*c);
  c->add_option("--inputs", args->inputs, "Shapes by slot: \"136,7168;7168,3584\"");
  c->add_option("--dtypes", args->dtypes, "Dtypes by slot: \"DT_BF16;DT_BF16\"");
  c->add_option("--formats", args->formats, "Formats by slot (left out: logical sizes)");
  c->add_option("--outputs", args->outputs, "Shapes of the outputs (left out: any)");
  c->add_option("--output-dtypes", args->out_dtypes, "Their dtypes");
  c->add_option("--output-formats", args->out_formats, "Their formats");
  c->add_option("--context", args->context,
                "NAME=VALUE: tp, ep, ranks, tier, message_bytes, dtype, or a Runtime column (repeatable)");
  c->add_option("--file", args->file,
                "Lookups as JSON lines instead: {\"op\", \"inputs\", \"dtypes\", \"outputs\", \"context\", ...}");
  c->add_flag("--strict", args->strict, "Exit 1 when a lookup misses and the mapping does not accept it");
  c->add_flag("--json", args->json, "Answers as JSON");
  c->footer(
      "Examples:\n"
      "  fuselab db query DIR aten.mm.default --inputs \"136,7168;3584,7168\" --dtypes \"DT_BF16;DT_BF16\"\n"
      "  fuselab db query DIR tensor_cast.all_reduce.default --context message_bytes=65536 --context ranks=8\n"
      "  fuselab db query DIR --file lookups.jsonl --json");
  c->callback([args] { query(*args); });
}

}  // namespace fuselab::cli
