// fuselab ops: the operator table.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "cli/common.h"
#include "fuselab/ops/op.h"
#include "fuselab/ops/table_json.h"

namespace fuselab::cli {
namespace {

const char* kind_name(ops::Kind kind) {
  switch (kind) {
    case ops::Kind::pointwise:
      return "pointwise";
    case ops::Kind::reduce:
      return "reduce";
    case ops::Kind::create:
      return "create";
    case ops::Kind::view:
      return "view";
    case ops::Kind::move:
      return "move";
    case ops::Kind::extern_:
      return "extern";
  }
  return "";
}

std::string call_of(const ops::Op& op) {
  std::string text;
  for (const ops::ArgSpec& arg : op.args) text += (text.empty() ? "" : ", ") + arg.name + (arg.optional ? "?" : "");
  for (const ops::AttrSpec& attr : op.attrs) text += (text.empty() ? "" : ", ") + attr.name + "=";
  return op.name + "(" + text + ")";
}

/// The table's rows as the front ends get them, in its order.
nlohmann::ordered_json rows() { return nlohmann::ordered_json::parse(ops::table_json()); }

nlohmann::ordered_json row_of(const ops::Op& op) {
  for (nlohmann::ordered_json& row : rows())
    if (row["name"] == op.name) return row;
  return {};
}

}  // namespace

void add_ops(CLI::App& app) {
  struct Args {
    bool json = false;
    std::string name;
  };
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("ops", "list the operators");
  command->add_option("name", args->name, "show one operator in full: its name here or its Ascend spelling");
  command->add_flag("--json", args->json, "as JSON");
  command->footer("Examples:\n  fuselab ops\n  fuselab ops softmax\n  fuselab ops --json");
  command->callback([args] {
    if (!args->name.empty()) {
      const ops::Op* op = ops::find_any_case(args->name);
      if (!op) throw UsageError("there is no operator \"" + args->name + "\"; `fuselab ops` lists all.");
      if (args->json) {
        print_json(row_of(*op));
        return;
      }
      std::cout << fmt::format("{}  [{}]\n  {}\n", call_of(*op), kind_name(op->kind), op->doc);
      for (const std::string& aten : op->aten) std::cout << "  aten: " << aten << "\n";
      if (!op->onnx.empty()) std::cout << "  ONNX: " << op->onnx << "\n";
      if (!op->ascend_ir.empty()) std::cout << "  Ascend IR: " << op->ascend_ir << "\n";
      if (!op->lower.empty()) std::cout << "  kernel: " << op->lower << "\n";
      return;
    }
    if (args->json) {
      print_json({{"operators", rows()}});
      return;
    }
    for (const ops::Op& op : ops::table())
      std::cout << fmt::format("{:<10} {:<44} {}\n", kind_name(op.kind), call_of(op), op.doc);
  });
}

}  // namespace fuselab::cli
