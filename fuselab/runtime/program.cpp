#include "fuselab/runtime/program.h"

#include <algorithm>
#include <map>
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/graph/text.h"

namespace fuselab::runtime {
namespace {

using Kind = fuse::Step::Kind;

struct Builder {
  const Graph& g;
  Program p;
  std::vector<int> slot_of;  // per value; -1: not in memory
  std::map<std::string, int> kernel_by_text;

  explicit Builder(const Graph& graph) : g(graph), slot_of(graph.values.size(), -1) {}

  int add_slot(ValueId v, Home home, int first) {
    const int s = static_cast<int>(p.slots.size());
    Slot slot;
    slot.value = v;
    slot.type = g.values[v].type;
    slot.home = home;
    slot.root = s;
    slot.first = slot.last = first;
    p.slots.push_back(std::move(slot));
    slot_of[v] = s;
    return s;
  }

  int read(ValueId v, int step) {
    const int s = slot_of[v];
    if (s < 0)
      fail("runtime.bad_plan", "graph {}: step {} reads '{}' before any step makes it; this is a bug of the fusing plan", p.name,
           step, g.values[v].name);
    Slot& root = p.slots[p.slots[s].root];
    root.last = std::max(root.last, step);
    return s;
  }

  void kernel(const fuse::Step& from, int i, ProgramStep& to) {
    std::string text = print_graph(from.fragment);
    const auto [it, fresh] = kernel_by_text.emplace(text, static_cast<int>(p.kernels.size()));
    if (fresh) p.kernels.push_back({from.name, from.fragment, std::move(text), 0});
    to.kernel = it->second;
    to.label = p.kernels[to.kernel].name;
    ++p.kernels[to.kernel].uses;
    for (const ValueId v : from.inputs) to.slots.push_back(read(v, i));
    to.inputs = static_cast<int>(to.slots.size());
    for (const ValueId v : from.outputs) to.slots.push_back(add_slot(v, Home::arena, i));
  }

  void extern_call(const Node& n, int i, ProgramStep& to) {
    to.label = n.op ? n.op->name : n.target;
    for (const auto& [key, value] : n.attrs) {
      if (key == "call") {
        if (const auto* k = std::get_if<std::int64_t>(&value)) to.callee = static_cast<int>(*k);
        if (const auto* k = std::get_if<Expr>(&value); k && k->is_const()) to.callee = static_cast<int>(k->value());
      } else if (key == "sizes") {
        if (const auto* list = std::get_if<std::vector<Expr>>(&value)) to.sizes = *list;
      }
    }
    for (const Operand& a : n.args) {
      ExternArg arg;
      if (const auto* v = std::get_if<ValueId>(&a)) {
        arg.slot = read(*v, i);
        // The callee may keep or return what it is given, so the work space will not do.
        Slot& root = p.slots[p.slots[arg.slot].root];
        if (root.home == Home::arena) root.home = Home::block;
      } else if (const auto* number = std::get_if<Scalar>(&a)) {
        arg.number = *number;
      }
      to.args.push_back(arg);
    }
    for (const ValueId v : n.results) to.slots.push_back(add_slot(v, Home::result, i));
  }

  void view(const Node& n, int i, ProgramStep& to) {
    const auto* v = n.args.empty() ? nullptr : std::get_if<ValueId>(&n.args[0]);
    if (!v)
      fail("runtime.bad_plan", "graph {}: the view '{}' has no operand; this is a bug of the fusing plan", p.name,
           g.values[n.results[0]].name);
    const int base = read(*v, i);
    const int s = add_slot(n.results[0], Home::alias, i);
    p.slots[s].root = p.slots[base].root;
    p.slots[s].offset = (p.slots[base].home == Home::alias ? p.slots[base].offset : Expr(0)) + view_offset(g, n);
    to.slots.push_back(s);
    to.label = n.op ? n.op->name : n.target;
  }

  void finish() {
    const int end = static_cast<int>(p.steps.size());
    for (const ValueId v : g.outputs) {
      const int s = read(v, end);
      Slot& root = p.slots[p.slots[s].root];
      root.output = p.slots[s].output = true;
      if (root.home == Home::arena) root.home = Home::block;
      p.outputs.push_back(s);
    }
    for (int s = 0; s < static_cast<int>(p.slots.size()); ++s) {
      const Slot& slot = p.slots[s];
      if (slot.home == Home::block) p.steps[slot.first].make.push_back(s);
      const Slot& root = p.slots[slot.root];  // a view may hold an object of its own: it goes with its memory
      if (root.home != Home::arena && !root.output && root.last >= 0) p.steps[root.last].done.push_back(s);
    }
    std::set<std::string> symbols(g.size_params.begin(), g.size_params.end());
    for (const Value& v : g.values) {
      for (const Expr& e : v.type.sizes) e.collect_symbols(symbols);
      for (const Expr& e : v.type.strides) e.collect_symbols(symbols);
    }
    for (const ProgramStep& s : p.steps)
      for (const Expr& e : s.sizes) e.collect_symbols(symbols);
    for (const auto& [a, b] : g.assumptions) {
      a.collect_symbols(symbols);
      b.collect_symbols(symbols);
    }
    p.assumptions = g.assumptions;
    p.checks = size_checks(g);
    for (const SizeCheck& c : p.checks) c.size.collect_symbols(symbols);
    p.symbols.assign(symbols.begin(), symbols.end());
  }
};

const Expr* expr_attr(const Node& n, const char* key, Expr& number) {
  const auto it = n.attrs.find(key);
  if (it == n.attrs.end()) return nullptr;
  if (const auto* e = std::get_if<Expr>(&it->second)) return e;
  if (const auto* i = std::get_if<std::int64_t>(&it->second)) return number = Expr(*i), &number;
  return nullptr;
}

}  // namespace

Expr view_offset(const Graph& g, const Node& node) {
  // Only these move the first element; every other view keeps it. Negative starts count from the end.
  const std::string name = node.op ? node.op->name : node.target;
  const char* key = name == "slice" ? "start" : name == "select" ? "index" : nullptr;
  if (!key) return 0;
  const Type& t = g.values[std::get<ValueId>(node.args[0])].type;
  Expr dim_number = 0, at_number = 0;
  const Expr* dim = expr_attr(node, "dim", dim_number);
  const Expr* at = expr_attr(node, key, at_number);
  if (!at) return 0;
  std::int64_t d = dim ? dim->value() : 0;
  const auto rank = static_cast<std::int64_t>(t.sizes.size());
  if (d < 0) d += rank;
  if (d < 0 || d >= rank)
    fail("runtime.bad_plan", "the view '{}' names dimension {} of {}", g.values[node.results[0]].name, d, rank);
  Expr start = *at;
  if (start.is_const() && start.value() < 0) start = start + t.sizes[d];
  if (name == "slice") start = min(max(start, Expr(0)), t.sizes[d]);
  return start * t.strides[d];
}

Program flatten(const Graph& g, const fuse::Plan& plan) {
  Builder b(g);
  b.p.name = g.name;
  b.p.size_params = g.size_params;
  b.p.inputs = static_cast<int>(g.inputs.size());
  for (const ValueId v : g.inputs) b.add_slot(v, Home::input, -1);
  for (int i = 0; i < static_cast<int>(plan.steps.size()); ++i) {
    const fuse::Step& from = plan.steps[i];
    ProgramStep to;
    to.kind = from.kind;
    if (from.kind == Kind::kernel)
      b.kernel(from, i, to);
    else if (from.kind == Kind::extern_call)
      b.extern_call(g.nodes[from.nodes.at(0)], i, to);
    else
      b.view(g.nodes[from.nodes.at(0)], i, to);
    b.p.steps.push_back(std::move(to));
  }
  b.finish();
  return std::move(b.p);
}

}  // namespace fuselab::runtime
