#include "fuselab/graph/rewrite.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_set>

#include "fuselab/core/error.h"
#include "fuselab/graph/text.h"

namespace fuselab {
namespace {

void collect(const std::vector<Expr>& xs, std::set<std::string>& into) {
  for (const Expr& x : xs) x.collect_symbols(into);
}

/// Symbols used by the values and nodes that no input's sizes or strides carry.
std::vector<std::string> unbound_symbols(const Graph& g) {
  std::set<std::string> bound, used;
  for (const ValueId i : g.inputs) {
    collect(g.values[i].type.sizes, bound);
    collect(g.values[i].type.strides, bound);
  }
  for (const Value& v : g.values) {
    collect(v.type.sizes, used);
    collect(v.type.strides, used);
  }
  for (const Node& n : g.nodes) {
    for (const auto& [key, a] : n.attrs) {
      if (const auto* e = std::get_if<Expr>(&a)) e->collect_symbols(used);
      if (const auto* list = std::get_if<std::vector<Expr>>(&a)) collect(*list, used);
    }
  }
  std::vector<std::string> result;
  std::set_difference(used.begin(), used.end(), bound.begin(), bound.end(), std::back_inserter(result));
  return result;
}

/// Hands out each base name, then base_1, base_2, ...
class Names {
 public:
  std::string take(const std::string& base) {
    std::string name = base;
    for (int k = 1; !taken_.insert(name).second; ++k) name = base + "_" + std::to_string(k);
    return name;
  }

 private:
  std::unordered_set<std::string> taken_;
};

}  // namespace

GraphCopy::GraphCopy(const Graph& source) : source_(source), map_(source.values.size(), -1) {}

ValueId GraphCopy::at(ValueId v) const {
  if (map_.at(v) < 0)
    fail("graph.invalid", "value '{}' is read, but is neither an input of the new graph nor computed in it",
         source_.values[v].name);
  return map_[v];
}

void GraphCopy::replace(ValueId source_value, ValueId new_value) { map_.at(source_value) = new_value; }

ValueId GraphCopy::input(ValueId v, const std::string& new_name) {
  const Value& from = source_.values.at(v);
  const ValueId id = static_cast<ValueId>(out_.values.size());
  out_.values.push_back(Value{id, new_name.empty() ? from.name : new_name, from.type, -1, 0});
  out_.inputs.push_back(id);
  map_[v] = id;
  return id;
}

const Node& GraphCopy::node(const Node& from, const std::vector<std::string>& new_names) {
  Node n = from;
  for (Operand& a : n.args) {
    if (auto* v = std::get_if<ValueId>(&a)) a = at(*v);
  }
  std::vector<Type> types;
  std::vector<std::string> names = new_names;
  for (const ValueId r : from.results) {
    types.push_back(source_.values.at(r).type);
    if (new_names.empty()) names.push_back(source_.values[r].name);
  }
  const Node& copy = out_.add_node(std::move(n), types, names);
  for (std::size_t i = 0; i < from.results.size(); ++i) map_[from.results[i]] = copy.results[i];
  return copy;
}

Graph GraphCopy::finish() {
  out_.name = source_.name;
  out_.size_params = source_.size_params;
  out_.assumptions = source_.assumptions;
  out_.outputs.clear();
  for (const ValueId o : source_.outputs) out_.outputs.push_back(at(o));
  return std::move(out_);
}

std::string base_name(const std::string& name) {
  std::size_t end = name.size();
  while (true) {
    std::size_t digits = end;
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
    if (digits == end || digits < 2 || name[digits - 1] != '_') break;
    end = digits - 1;
  }
  return name.substr(0, end);
}

Graph extract(const Graph& g, std::vector<NodeId> nodes, const std::vector<ValueId>& inputs, const std::vector<ValueId>& outputs,
              bool canonical_names) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  GraphCopy copy(g);
  Names names;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (copy.has(inputs[i]))
      fail("graph.invalid", "value '{}' is given twice as an input of a fragment", g.values.at(inputs[i]).name);
    copy.input(inputs[i], canonical_names ? names.take("x" + std::to_string(i)) : "");
  }
  for (const NodeId id : nodes) {
    const Node& from = g.nodes.at(id);
    std::vector<std::string> new_names;
    if (canonical_names) {
      for (const ValueId r : from.results) new_names.push_back(names.take(base_name(g.values[r].name)));
    }
    copy.node(from, new_names);
    Node& made = copy.graph().nodes.back();
    if (made.origin.empty()) made.origin = g.values[from.results.front()].name;
  }
  Graph out = std::move(copy.graph());
  if (!canonical_names) out.name = g.name;
  for (const ValueId o : outputs) out.outputs.push_back(copy.at(o));
  out.size_params = unbound_symbols(out);
  std::set<std::string> known(out.size_params.begin(), out.size_params.end());
  for (const Value& v : out.values) {
    collect(v.type.sizes, known);
    collect(v.type.strides, known);
  }
  for (const auto& a : g.assumptions) {
    std::set<std::string> used;
    a.first.collect_symbols(used);
    a.second.collect_symbols(used);
    if (std::includes(known.begin(), known.end(), used.begin(), used.end())) out.assumptions.push_back(a);
  }
  return out;
}

Graph remove_dead(const Graph& g) {
  std::vector<bool> needed(g.values.size(), false);
  std::vector<bool> keep(g.nodes.size(), false);
  for (const ValueId o : g.outputs) needed[o] = true;
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    const Node& n = g.nodes[i];
    keep[i] = n.op == nullptr || std::any_of(n.results.begin(), n.results.end(), [&](ValueId r) { return needed[r]; });
    if (!keep[i]) continue;
    for (const Operand& a : n.args) {
      if (const auto* v = std::get_if<ValueId>(&a)) needed[*v] = true;
    }
  }
  GraphCopy copy(g);
  for (const ValueId i : g.inputs) copy.input(i);
  for (const Node& n : g.nodes) {
    if (keep[n.id]) copy.node(n);
  }
  return copy.finish();
}

std::string canonical_text(const Graph& g) {
  std::vector<NodeId> all(g.nodes.size());
  std::iota(all.begin(), all.end(), 0);
  Graph plain = extract(g, all, g.inputs, g.outputs, /*canonical_names=*/false);
  // Here even the base names would tell graphs apart that compute the same: number everything.
  for (Value& v : plain.values) v.name = (v.producer < 0 ? "x" : "v") + std::to_string(v.id);
  plain.name = "graph";
  return print_graph(plain);
}

std::vector<bool> reaches_caller(const Graph& g) {
  std::vector<bool> reaches(g.values.size(), false);
  for (const ValueId o : g.outputs) reaches[o] = true;
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    const Node& n = g.nodes[i];
    const bool may_alias = n.op == nullptr || n.op->kind == ops::Kind::view;
    if (!may_alias || std::none_of(n.results.begin(), n.results.end(), [&](ValueId r) { return reaches[r]; })) continue;
    for (const Operand& a : n.args) {
      if (const auto* v = std::get_if<ValueId>(&a)) reaches[*v] = true;
    }
  }
  return reaches;
}

}  // namespace fuselab
