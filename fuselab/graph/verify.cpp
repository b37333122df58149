#include "fuselab/graph/verify.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "fuselab/core/error.h"
#include "fuselab/graph/annotation.h"
#include "fuselab/graph/infer.h"
#include "fuselab/graph/text.h"

namespace fuselab {
namespace {

template <typename... Args>
[[noreturn]] void invalid(const Graph& g, fmt::format_string<Args...> text, Args&&... args) {
  fail("graph.invalid", "graph '{}': {}", g.name, fmt::format(text, std::forward<Args>(args)...));
}

bool known_value(const Graph& g, ValueId v) { return v >= 0 && v < static_cast<ValueId>(g.values.size()); }

void check_values(const Graph& g) {
  std::unordered_set<std::string> names;
  for (std::size_t i = 0; i < g.values.size(); ++i) {
    const Value& v = g.values[i];
    if (v.id != static_cast<ValueId>(i)) invalid(g, "value '{}' at place {} has id {}", v.name, i, v.id);
    if (v.name.empty() || !names.insert(v.name).second) invalid(g, "the name '{}' of value {} is empty or taken", v.name, i);
    if (v.producer < -1 || v.producer >= static_cast<NodeId>(g.nodes.size()))
      invalid(g, "value '{}' comes from node {}, which does not exist", v.name, v.producer);
    try {
      check_type(v.type, v.name);
    } catch (const Error& e) {
      invalid(g, "{}", e.what());
    }
  }
}

void check_inputs(const Graph& g) {
  std::set<ValueId> seen;
  for (const ValueId i : g.inputs) {
    if (!known_value(g, i)) invalid(g, "input {} does not exist", i);
    if (g.values[i].producer != -1) invalid(g, "input '{}' is the result of a node", g.values[i].name);
    if (!seen.insert(i).second) invalid(g, "input '{}' stands twice in the list of inputs", g.values[i].name);
  }
  for (const Value& v : g.values) {
    if (v.producer == -1 && seen.count(v.id) == 0)
      invalid(g, "value '{}' has neither a node nor a place among the inputs", v.name);
  }
}

void check_symbols(const Graph& g) {
  std::set<std::string> known(g.size_params.begin(), g.size_params.end());
  const auto each = [&](const std::vector<Expr>& xs, auto&& f) {
    for (const Expr& x : xs) f(x);
  };
  for (const ValueId i : g.inputs) {
    each(g.values[i].type.sizes, [&](const Expr& e) { e.collect_symbols(known); });
    each(g.values[i].type.strides, [&](const Expr& e) { e.collect_symbols(known); });
  }
  const auto check = [&](const Expr& e, const std::string& where) {
    std::set<std::string> used;
    e.collect_symbols(used);
    for (const auto& s : used) {
      if (known.count(s) == 0) invalid(g, "{}: the size '{}' appears in no input and is no size parameter", where, s);
    }
  };
  for (const Value& v : g.values) {
    each(v.type.sizes, [&](const Expr& e) { check(e, "value '" + v.name + "'"); });
    each(v.type.strides, [&](const Expr& e) { check(e, "value '" + v.name + "'"); });
  }
  for (const Node& n : g.nodes) {
    for (const auto& [key, a] : n.attrs) {
      if (const auto* e = std::get_if<Expr>(&a)) check(*e, "attribute '" + key + "'");
      if (const auto* list = std::get_if<std::vector<Expr>>(&a))
        each(*list, [&](const Expr& e) { check(e, "attribute '" + key + "'"); });
    }
  }
}

/// The types of a table operator's results must be what infer() gives, but for strides and sizes a written type may set.
void check_node_types(const Graph& g, const Node& n) {
  Node copy = n;
  std::vector<Type> types;
  try {
    types = infer(g, copy);
    if (types.size() != n.results.size())
      invalid(g, "{} has {} results instead of {}", n.op->name, n.results.size(), types.size());
    for (std::size_t i = 0; i < types.size(); ++i) {
      const Type& have = g.values[n.results[i]].type;
      Graph scratch;  // takes the assumptions the types need; each must be one of the graph's
      const Type expected = apply_annotation(scratch, n, types[i], Annotation{have, true});
      if (expected.strides != have.strides && n.op->kind == ops::Kind::view) {
        invalid(g, "'{}' is a view with type {}, not {}", g.values[n.results[i]].name, types[i].str(), have.str());
      }
      for (const auto& a : scratch.assumptions) {
        if (std::find(g.assumptions.begin(), g.assumptions.end(), a) == g.assumptions.end()) {
          invalid(g, "'{}' has size {} where {} follows, and the graph does not assume that they are equal",
                  g.values[n.results[i]].name, a.second.str(), a.first.str());
        }
      }
    }
  } catch (const Error& e) {
    if (e.code() == "graph.invalid") throw;
    invalid(g, "node {}: {}", n.id, e.what());
  }
}

void check_nodes(const Graph& g) {
  std::size_t produced = 0;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    if (n.id != static_cast<NodeId>(i)) invalid(g, "node at place {} has id {}", i, n.id);
    if (n.op == nullptr && n.target.empty()) invalid(g, "node {} has neither an operator nor an extern target", i);
    if (n.op != nullptr && ops::find(n.op->name) != n.op)
      invalid(g, "node {} has an operator '{}' that is not in the table", i, n.op->name);
    if (n.results.empty()) invalid(g, "node {} has no result", i);
    for (const Operand& a : n.args) {
      const auto* v = std::get_if<ValueId>(&a);
      if (v == nullptr) continue;
      if (!known_value(g, *v)) invalid(g, "node {} reads value {}, which does not exist", i, *v);
      if (g.values[*v].producer >= n.id)
        invalid(g, "node {} reads '{}', which a later node or itself computes", i, g.values[*v].name);
    }
    for (std::size_t r = 0; r < n.results.size(); ++r) {
      if (!known_value(g, n.results[r])) invalid(g, "node {} has result {}, which does not exist", i, n.results[r]);
      const Value& v = g.values[n.results[r]];
      if (v.producer != n.id || v.result != static_cast<int>(r))
        invalid(g, "value '{}' does not name node {} as its producer", v.name, i);
      ++produced;
    }
    if (n.op != nullptr) check_node_types(g, n);
  }
  if (produced + g.inputs.size() != g.values.size())
    invalid(g, "{} values, but {} inputs and {} results", g.values.size(), g.inputs.size(), produced);
}

}  // namespace

void verify(const Graph& g) {
  check_values(g);
  check_inputs(g);
  check_nodes(g);
  check_symbols(g);
  for (const ValueId o : g.outputs) {
    if (!known_value(g, o)) invalid(g, "output {} does not exist", o);
  }
}

}  // namespace fuselab
