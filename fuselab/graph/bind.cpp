#include "fuselab/graph/bind.h"

#include <set>

#include "fuselab/core/error.h"
#include "fuselab/graph/infer.h"
#include "fuselab/graph/infer_rules.h"

namespace fuselab {
namespace {

std::set<std::string> symbols_of(const Expr& e) {
  std::set<std::string> names;
  e.collect_symbols(names);
  return names;
}

// Solves a size that is `scale * symbol + offset` for its only symbol: 2*B + 1 == 9 gives 4.
bool solve(const Expr& size, const std::string& symbol, std::int64_t value, std::int64_t& solution) {
  const std::int64_t at0 = size.eval({{symbol, 0}}), at1 = size.eval({{symbol, 1}}), at2 = size.eval({{symbol, 2}});
  const std::int64_t scale = at1 - at0;
  if (scale == 0 || at2 - at1 != scale || (value - at0) % scale != 0) return false;
  solution = (value - at0) / scale;
  return solution >= 0 && size.eval({{symbol, solution}}) == value;
}

std::string sizes_text(const std::vector<std::int64_t>& sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

std::map<std::string, Expr> constants(const SymbolValues& values) {
  std::map<std::string, Expr> out;
  for (const auto& [name, value] : values) out.emplace(name, Expr(value));
  return out;
}

std::vector<Expr> substitute_all(const std::vector<Expr>& xs, const std::map<std::string, Expr>& env) {
  std::vector<Expr> out;
  out.reserve(xs.size());
  for (const Expr& x : xs) out.push_back(x.substitute(env));
  return out;
}

}  // namespace

SymbolValues bind_symbols(const Graph& graph, const std::vector<Tensor>& inputs, const SymbolValues& sizes) {
  if (inputs.size() != graph.inputs.size()) {
    fail("call.arity", "graph {} takes {} tensors, {} given", graph.name, graph.inputs.size(), inputs.size());
  }
  SymbolValues bound = sizes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& parameter = graph.values[static_cast<std::size_t>(graph.inputs[i])];
    const Tensor& input = inputs[i];
    if (input.dtype() != parameter.type.dtype) {
      fail("call.dtype", "input {} is {}, but the graph takes {}; convert it", parameter.name, name(input.dtype()),
           parameter.type.str());
    }
    if (input.sizes().size() != parameter.type.sizes.size()) {
      fail("call.shape", "input {} has sizes {}, but the graph takes {}: {} dimensions", parameter.name,
           sizes_text(input.sizes()), parameter.type.str(), parameter.type.sizes.size());
    }
    for (std::size_t d = 0; d < input.sizes().size(); ++d) {
      const Expr& size = parameter.type.sizes[d];
      if (size.is_symbol()) bound.emplace(*symbols_of(size).begin(), input.sizes()[d]);
    }
  }
  // Sizes such as 2*B bind a symbol that stands nowhere alone.
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& parameter = graph.values[static_cast<std::size_t>(graph.inputs[i])];
    for (std::size_t d = 0; d < inputs[i].sizes().size(); ++d) {
      const std::set<std::string> names = symbols_of(parameter.type.sizes[d]);
      std::int64_t solution = 0;
      if (names.size() == 1 && !bound.count(*names.begin()) &&
          solve(parameter.type.sizes[d], *names.begin(), inputs[i].sizes()[d], solution)) {
        bound.emplace(*names.begin(), solution);
      }
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& parameter = graph.values[static_cast<std::size_t>(graph.inputs[i])];
    for (std::size_t d = 0; d < inputs[i].sizes().size(); ++d) {
      const Expr& size = parameter.type.sizes[d];
      for (const std::string& symbol : symbols_of(size)) {
        if (!bound.count(symbol)) {
          fail("call.unbound", "size {} of input {} does not determine symbol {}; give it as a size parameter", size.str(),
               parameter.name, symbol);
        }
      }
      const std::int64_t want = size.eval(bound), got = inputs[i].sizes()[d];
      if (want != got) {
        fail("call.shape", "input {} has sizes {}, but the graph takes {}: dimension {} must be {}, not {}", parameter.name,
             sizes_text(inputs[i].sizes()), parameter.type.str(), d, want, got);
      }
    }
  }
  for (const std::string& symbol : graph.size_params) {
    if (!bound.count(symbol)) fail("call.unbound", "size {} of graph {} is not given and no input shows it", symbol, graph.name);
  }
  return bound;
}

Graph concrete(const Graph& graph, const SymbolValues& values) {
  const std::map<std::string, Expr> env = constants(values);
  for (const auto& [a, b] : graph.assumptions) {
    if (a.eval(values) != b.eval(values)) {
      fail("call.shape", "graph {} holds only where {} equals {}; here they are {} and {}", graph.name, a.str(), b.str(),
           a.eval(values), b.eval(values));
    }
  }
  check_sizes(size_checks(graph), values);
  Graph out = graph;
  out.size_params.clear();
  out.assumptions.clear();
  for (Value& v : out.values) {
    v.type.sizes = substitute_all(v.type.sizes, env);
    v.type.strides = substitute_all(v.type.strides, env);
    for (const Expr& size : v.type.sizes) {
      if (!size.is_const()) fail("call.unbound", "size {} of value {} has no value", size.str(), v.name);
      if (size.value() < 0) fail("call.shape", "value {} gets the negative size {}", v.name, size.value());
    }
  }
  for (Node& node : out.nodes) {
    for (auto& [key, attr] : node.attrs) {
      if (auto* e = std::get_if<Expr>(&attr)) *e = e->substitute(env);
      if (auto* list = std::get_if<std::vector<Expr>>(&attr)) *list = substitute_all(*list, env);
    }
  }
  return out;
}

std::vector<SizeCheck> size_checks(const Graph& graph) {
  std::vector<SizeCheck> checks;
  for (const Node& node : graph.nodes) {
    if (node.op == nullptr || node.args.empty()) continue;
    const auto* first = std::get_if<ValueId>(&node.args[0]);
    if (first == nullptr) continue;
    const std::vector<Expr>& sizes = graph.values[static_cast<std::size_t>(*first)].type.sizes;
    const std::string& result = graph.values[static_cast<std::size_t>(node.results[0])].name;
    if (node.op->name == "select") {
      const auto d = static_cast<std::size_t>(
          infer_rules::wrap_dim(node, infer_rules::attr_int(node, "dim"), static_cast<int>(sizes.size())));
      const Expr index = infer_rules::attr_expr(node, "index");
      if (sizes[d].is_const() && index.is_const()) continue;
      // index < size, or -size <= index for one that counts from the end.
      const bool from_end = index.is_const() && index.value() < 0;
      checks.push_back({from_end ? sizes[d] + index : sizes[d] - index, from_end ? 0 : 1, "call.shape",
                        fmt::format("select: index {} of value {} is outside of dimension {} with size", index.str(), result, d),
                        sizes[d]});
      if (!index.is_const()) {
        checks.push_back({index, 0, "call.shape", fmt::format("select: the index of value {} is", result), index});
      }
    } else if (node.op->kind == ops::Kind::reduce && infer_rules::needs_elements(*node.op)) {
      for (const int d : reduced_dims(graph, node)) {
        const Expr& size = sizes[static_cast<std::size_t>(d)];
        if (size.is_const()) continue;
        checks.push_back({size, 1, "call.empty_reduction",
                          fmt::format("{}: value {} has no result for no elements, dimension {} of its argument has size",
                                      node.op->name, result, d),
                          size});
      }
    }
  }
  return checks;
}

void check_sizes(const std::vector<SizeCheck>& checks, const SymbolValues& values) {
  for (const SizeCheck& c : checks) {
    if (c.size.eval(values) < c.least)
      throw Error(c.code, fmt::format("{} {}; call it with other sizes", c.what, c.shown.eval(values)));
  }
}

std::vector<std::int64_t> constant_sizes(const std::vector<Expr>& sizes) {
  std::vector<std::int64_t> out;
  out.reserve(sizes.size());
  for (const Expr& s : sizes) out.push_back(s.value());
  return out;
}

}  // namespace fuselab
