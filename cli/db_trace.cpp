// fuselab db trace-to-csv: a TensorCast trace as a table for reports. It is never a file of the database.
#include <fmt/format.h>

#include <array>
#include <iostream>
#include <memory>

#include "cli/common.h"
#include "cli/db.h"
#include "fuselab/core/csv.h"
#include "fuselab/core/error.h"
#include "fuselab/perfdb/table.h"

namespace fuselab::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 11> kColumns = {
    "op_name",   "kernel_type",          "simulation_shapes", "dur_us",           "source",           "confidence",
    "composite", "sub_kernel_durations", "kernel_shapes",     "shape_match_rule", "sub_kernel_shapes"};

std::string text_of(const Json& j) {
  if (j.is_null()) return {};
  return j.is_string() ? j.get<std::string>() : j.dump();
}

std::string line_of(const Json& from, const std::string& name, const std::string& duration) {
  std::string line;
  for (const char* column : kColumns) {
    const std::string_view c = column;
    if (column != kColumns.front()) line += ',';
    if (c == "op_name") {
      line += csv_field(name);
    } else if (c == "dur_us") {
      line += csv_field(duration);
    } else if (from.is_object() && from.contains(column)) {
      line += csv_field(text_of(from[column]));
    }
  }
  return line + "\n";
}

/// Complete events (ph X), a line each.
std::size_t events(const Json& list, std::string& out) {
  std::size_t lines = 0;
  for (const Json& e : list) {
    if (!e.is_object() || !e.contains("ph") || e["ph"] != "X") continue;
    out += line_of(e.contains("args") ? e["args"] : Json(), e.contains("name") ? text_of(e["name"]) : "",
                   e.contains("dur") ? text_of(e["dur"]) : "0");
    ++lines;
  }
  return lines;
}

/// A trace that TensorCast summed up by operator: a line each, the duration is that of all calls.
std::size_t summary(const Json& ops, const std::string& path, std::string& out) {
  for (const Json& op : ops) {
    if (!op.is_object() || !op.contains("op_name") || !op["op_name"].is_string())
      fail("db.no_trace", "{}: \"ops\" holds what has no \"op_name\".", path);
    Json args = Json::object();
    for (const char* key : {"kernel_type", "composite"}) {
      if (op.contains(key)) args[key] = op[key];
    }
    if (op.contains("shape_variants")) {
      Json shapes = Json::array();
      for (const Json& v : op["shape_variants"])
        shapes.push_back(v.is_object() && v.contains("input_shapes") ? v["input_shapes"] : Json());
      args["simulation_shapes"] = shapes;
    }
    out += line_of(args, op["op_name"].get<std::string>(),
                   op.contains("total_duration_us") ? text_of(op["total_duration_us"]) : "0");
  }
  return ops.size();
}

struct Args {
  std::string trace, output;
  bool json = false;
};

void convert(const Args& args) {
  const Json j = Json::parse(perfdb::read_text(args.trace), nullptr, false);
  std::string out;
  for (const char* column : kColumns) out += fmt::format("{}{}", out.empty() ? "" : ",", column);
  out += "\n";
  std::size_t lines = 0;
  if (j.is_array() && !j.empty() && j[0].is_object()) {
    lines = events(j, out);
  } else if (j.is_object() && j.contains("traceEvents") && j["traceEvents"].is_array()) {
    lines = events(j["traceEvents"], out);
  } else if (j.is_object() && j.contains("ops") && j["ops"].is_array()) {
    lines = summary(j["ops"], args.trace, out);
  } else {
    fail("db.no_trace", "{}: not a trace: {}.", args.trace,
         j.is_discarded() ? "it is no JSON" : "neither a list of events, nor `traceEvents`, nor a summary with `ops`");
  }
  if (args.output.empty() && !args.json) {
    std::cout << out;
    return;
  }
  if (!args.output.empty()) write_file(args.output, out);
  if (args.json) {
    print_json({{"trace", args.trace}, {"rows", lines}, {"output", args.output}});
  } else {
    std::cout << fmt::format("{}: {} rows\n", args.output, lines);
  }
}

}  // namespace

void add_db_trace(CLI::App& db) {
  auto args = std::make_shared<Args>();
  CLI::App* c = db.add_subcommand("trace-to-csv", "A TensorCast trace as a table for reports");
  c->add_option("trace", args->trace, "A Chrome trace, or TensorCast's summary of one (a row per operator)")->required();
  c->add_option("-o,--output", args->output, "Write here instead of to stdout");
  c->add_flag("--json", args->json, "How many rows, as JSON");
  c->footer(
      "Examples:\n"
      "  fuselab db trace-to-csv trace.json > trace.csv\n"
      "  fuselab db trace-to-csv trace.json --output trace.csv");
  c->callback([args] { convert(*args); });
}

}  // namespace fuselab::cli
