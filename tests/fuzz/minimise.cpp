#include "minimise.h"

#include <algorithm>
#include <optional>
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/graph/infer.h"
#include "fuselab/graph/rewrite.h"
#include "node_gen.h"

namespace fuselab::fuzz {
namespace {

/// What a rebuilt graph does otherwise than the original.
struct Edit {
  std::set<NodeId> cut;              ///< results become inputs
  std::map<NodeId, ValueId> bypass;  ///< the first result is replaced by this operand
  std::optional<std::vector<ValueId>> outputs;
  std::map<std::int64_t, Expr> resize;  ///< constant sizes of inputs
};

Type resized(Type t, const std::map<std::int64_t, Expr>& sizes) {
  if (sizes.empty()) return t;
  for (Expr& s : t.sizes) {
    if (const auto it = s.is_const() ? sizes.find(s.value()) : sizes.end(); it != sizes.end()) s = it->second;
  }
  t.strides = contiguous_strides(t.sizes);
  return t;
}

/// Throws Error when the edited graph is not valid.
Graph rebuild(const Graph& g, const Edit& edit) {
  Graph out;
  out.name = g.name;
  const std::vector<ValueId>& outputs = edit.outputs ? *edit.outputs : g.outputs;
  std::vector<bool> needed(g.values.size());
  const auto result_of = [&](NodeId n) { return g.nodes[static_cast<std::size_t>(n)].results[0]; };
  for (const ValueId v : outputs) needed[static_cast<std::size_t>(v)] = true;
  for (auto n = g.nodes.rbegin(); n != g.nodes.rend(); ++n) {
    const bool used =
        std::any_of(n->results.begin(), n->results.end(), [&](ValueId v) { return needed[static_cast<std::size_t>(v)]; });
    if (!used || edit.cut.count(n->id) != 0) continue;
    if (const auto it = edit.bypass.find(n->id); it != edit.bypass.end() && needed[static_cast<std::size_t>(result_of(n->id))]) {
      needed[static_cast<std::size_t>(it->second)] = true;
      continue;
    }
    for (const Operand& a : n->args) {
      if (const auto* v = std::get_if<ValueId>(&a)) needed[static_cast<std::size_t>(*v)] = true;
    }
  }
  std::vector<ValueId> map(g.values.size(), -1);
  const auto add_input = [&](ValueId v) {
    const Value& value = g.values[static_cast<std::size_t>(v)];
    map[static_cast<std::size_t>(v)] = out.add_input(value.name, resized(value.type, edit.resize));
  };
  for (const ValueId v : g.inputs) {
    if (needed[static_cast<std::size_t>(v)]) add_input(v);
  }
  for (const Node& n : g.nodes) {
    if (edit.cut.count(n.id) == 0) continue;
    for (const ValueId v : n.results) {
      if (needed[static_cast<std::size_t>(v)]) add_input(v);
    }
  }
  for (const Node& n : g.nodes) {
    if (edit.cut.count(n.id) != 0) continue;
    const bool used =
        std::any_of(n.results.begin(), n.results.end(), [&](ValueId v) { return needed[static_cast<std::size_t>(v)]; });
    if (!used) continue;
    if (const auto it = edit.bypass.find(n.id); it != edit.bypass.end()) {
      map[static_cast<std::size_t>(n.results[0])] = map[static_cast<std::size_t>(it->second)];
      continue;
    }
    Node copy = n;
    copy.id = -1;
    copy.results.clear();
    for (Operand& a : copy.args) {
      if (auto* v = std::get_if<ValueId>(&a)) *v = map[static_cast<std::size_t>(*v)];
    }
    for (auto& [name, attr] : copy.attrs) {
      if (auto* list = std::get_if<std::vector<Expr>>(&attr); list != nullptr && name != "dims") {
        for (Expr& e : *list) {
          if (const auto it = e.is_const() ? edit.resize.find(e.value()) : edit.resize.end(); it != edit.resize.end())
            e = it->second;
        }
      }
    }
    const std::vector<Type> types = infer(out, copy);
    std::vector<std::string> names;
    for (const ValueId v : n.results) names.push_back(g.values[static_cast<std::size_t>(v)].name);
    const Node& added = out.add_node(std::move(copy), types, names);
    for (std::size_t i = 0; i < n.results.size(); ++i) map[static_cast<std::size_t>(n.results[i])] = added.results[i];
  }
  for (const ValueId v : outputs) {
    const ValueId mapped = map[static_cast<std::size_t>(v)];
    if (mapped < 0) fail("fuzz.rejected", "an output was cut off");
    if (std::find(out.outputs.begin(), out.outputs.end(), mapped) == out.outputs.end()) out.outputs.push_back(mapped);
  }
  for (const std::string& s : g.size_params) out.size_params.push_back(s);
  return out;
}

class Minimiser {
 public:
  Minimiser(const Case& failing, const std::function<bool(const Case&)>& fails, int budget)
      : best_(failing), fails_(fails), budget_(budget) {}

  Case run() {
    for (bool progress = true; progress && budget_ > 0;) {
      progress = false;
      for (const auto step : {&Minimiser::one_output, &Minimiser::cut_nodes, &Minimiser::bypass_nodes, &Minimiser::shrink_symbols,
                              &Minimiser::shrink_sizes})
        progress = (this->*step)() || progress;
    }
    return best_;
  }

 private:
  /// Keeps the edited case when it is valid and fails.
  bool accept(const Edit& edit, const std::map<std::string, std::int64_t>& symbols) {
    if (budget_-- <= 0) return false;
    Case candidate = best_;
    candidate.symbols = symbols;
    try {
      candidate.graph = rebuild(best_.graph, edit);
    } catch (const Error&) {
      return false;
    }
    restore_size_parameters(candidate);
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }
  bool accept(const Edit& edit) { return accept(edit, best_.symbols); }

  /// A symbol that no input carries any more becomes a parameter.
  static void restore_size_parameters(Case& c) {
    for (const auto& [symbol, value] : c.symbols) {
      const Expr wanted = Expr::symbol(symbol);
      const auto carries = [&](ValueId v) {
        const auto& sizes = c.graph.values[static_cast<std::size_t>(v)].type.sizes;
        return std::find(sizes.begin(), sizes.end(), wanted) != sizes.end();
      };
      std::vector<std::string>& params = c.graph.size_params;
      if (std::none_of(c.graph.inputs.begin(), c.graph.inputs.end(), carries) &&
          std::find(params.begin(), params.end(), symbol) == params.end()) {
        params.push_back(symbol);
      }
    }
  }

  bool one_output() {
    for (const ValueId v : best_.graph.outputs) {
      if (best_.graph.outputs.size() == 1) return false;
      Edit edit;
      edit.outputs = {v};
      if (accept(edit)) return true;
    }
    return false;
  }
  bool cut_nodes() {
    bool any = false;
    for (bool again = true; again && budget_ > 0;) {
      again = false;
      for (const Node& n : best_.graph.nodes) {
        Edit edit;
        edit.cut = {n.id};
        if (accept(edit)) {
          any = again = true;
          break;
        }
      }
    }
    return any;
  }
  bool bypass_nodes() {
    for (const Node& n : best_.graph.nodes) {
      for (const Operand& a : n.args) {
        const auto* v = std::get_if<ValueId>(&a);
        if (v == nullptr || n.results.size() != 1) continue;
        const Type& from = best_.graph.values[static_cast<std::size_t>(*v)].type;
        const Type& to = best_.graph.values[static_cast<std::size_t>(n.results[0])].type;
        if (from.dtype != to.dtype || from.sizes != to.sizes) continue;
        Edit edit;
        edit.bypass = {{n.id, *v}};
        if (accept(edit)) return true;
      }
    }
    return false;
  }
  bool shrink_symbols() {
    for (const auto& [symbol, value] : best_.symbols) {
      for (const std::int64_t smaller : {0, 1, 2, 7, 16, 17}) {
        if (smaller >= value) break;
        auto symbols = best_.symbols;
        symbols[symbol] = smaller;
        if (accept({}, symbols)) return true;
      }
    }
    return false;
  }
  bool shrink_sizes() {
    std::set<std::int64_t> sizes;
    for (const ValueId v : best_.graph.inputs) {
      for (const Expr& e : best_.graph.values[static_cast<std::size_t>(v)].type.sizes) {
        if (e.is_const() && e.value() > 1) sizes.insert(e.value());
      }
    }
    for (const std::int64_t size : sizes) {
      for (const std::int64_t smaller : {1, 2, 7, 16, 17}) {
        if (smaller >= size) break;
        Edit edit;
        edit.resize = {{size, Expr(smaller)}};
        if (accept(edit)) return true;
      }
    }
    return false;
  }

  Case best_;
  const std::function<bool(const Case&)>& fails_;
  int budget_;
};

}  // namespace

Case minimise(const Case& failing, const std::function<bool(const Case&)>& fails, int budget) {
  return Minimiser(failing, fails, budget).run();
}

}  // namespace fuselab::fuzz
