#include "cli/inner_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace fuselab::cli {
namespace {

using Json = nlohmann::ordered_json;

/// What a person wants to see of a value's numbers.
struct Numbers {
  double low = INFINITY, high = -INFINITY;
  std::int64_t nan = 0, inf = 0, finite = 0;
};

Numbers numbers_of(const Tensor& t) {
  Numbers n;
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    const double v = t.get(i);
    n.nan += std::isnan(v);
    n.inf += std::isinf(v);
    if (!std::isfinite(v)) continue;
    ++n.finite;
    n.low = std::min(n.low, v);
    n.high = std::max(n.high, v);
  }
  return n;
}

/// Has value `v` of the node such numbers although its arguments have none? Element by element, where sizes agree: more of them.
bool more_than_before(const Graph& g, const Node& node, ValueId v, std::int64_t count, const std::map<ValueId, Numbers>& known,
                      std::int64_t Numbers::* which) {
  std::int64_t before = 0;
  for (const Operand& a : node.args) {
    const auto* arg = std::get_if<ValueId>(&a);
    if (arg == nullptr || known.at(*arg).*which == 0) continue;
    const auto sizes = [&](ValueId id) { return g.values[static_cast<std::size_t>(id)].type.sizes; };
    if (node.op == nullptr || node.op->kind != ops::Kind::pointwise || sizes(*arg) != sizes(v)) return false;
    before += known.at(*arg).*which;
  }
  return count > before;
}

/// `log(x)`: the operator and the tensors it reads.
std::string call_text(const Graph& g, const Node& node) {
  std::vector<std::string> arguments;
  for (const Operand& a : node.args) {
    if (const auto* v = std::get_if<ValueId>(&a)) arguments.push_back(g.values[static_cast<std::size_t>(*v)].name);
  }
  return fmt::format("{}({})", node.op != nullptr ? node.op->name : "extern", fmt::join(arguments, ", "));
}

}  // namespace

Graph with_every_value(Graph g) {
  std::vector<ValueId> all;
  for (const Node& node : g.nodes) all.insert(all.end(), node.results.begin(), node.results.end());
  for (const ValueId v : g.outputs) {
    if (std::find(all.begin(), all.end(), v) == all.end()) all.push_back(v);  // an input handed back
  }
  g.outputs = std::move(all);
  return g;
}

std::vector<Json> value_rows(const Graph& g, const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  std::map<ValueId, Numbers> known;
  for (std::size_t i = 0; i < inputs.size(); ++i) known[g.inputs[i]] = numbers_of(inputs[i]);
  for (std::size_t i = 0; i < outputs.size(); ++i) known[g.outputs[i]] = numbers_of(outputs[i]);
  std::map<ValueId, const Node*> maker;
  for (const Node& node : g.nodes) {
    for (const ValueId v : node.results) maker[v] = &node;
  }
  std::vector<Json> rows;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ValueId v = g.outputs[i];
    const Numbers& n = known[v];
    const Node* node = maker.count(v) != 0 ? maker[v] : nullptr;
    Json row = {{"name", g.values[static_cast<std::size_t>(v)].name},
                {"op", node != nullptr ? call_text(g, *node) : "input"},
                {"dtype", std::string(name(outputs[i].dtype()))},
                {"sizes", outputs[i].sizes()}};
    if (n.finite > 0) row["min"] = n.low, row["max"] = n.high;
    row["nan"] = n.nan;
    row["inf"] = n.inf;
    row["arises"] = Json::array();
    if (node != nullptr && more_than_before(g, *node, v, n.nan, known, &Numbers::nan)) row["arises"].push_back("nan");
    if (node != nullptr && more_than_before(g, *node, v, n.inf, known, &Numbers::inf)) row["arises"].push_back("inf");
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string value_line(const Json& row) {
  std::string line = fmt::format("value {} = {}  {}[{}]", row["name"].get<std::string>(), row["op"].get<std::string>(),
                                 row["dtype"].get<std::string>(), fmt::join(row["sizes"].get<std::vector<std::int64_t>>(), ", "));
  if (row.contains("min")) line += fmt::format("  from {:.6g} to {:.6g}", row["min"].get<double>(), row["max"].get<double>());
  const std::vector<std::string> arises = row["arises"].get<std::vector<std::string>>();
  for (const char* what : {"nan", "inf"}) {
    if (row[what].get<std::int64_t>() == 0) continue;
    const bool here = std::find(arises.begin(), arises.end(), what) != arises.end();
    line += fmt::format("  {} {}{}", what, row[what].get<std::int64_t>(), here ? " (arises here)" : "");
  }
  return line;
}

}  // namespace fuselab::cli
