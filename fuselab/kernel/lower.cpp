#include "fuselab/kernel/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/graph/infer.h"
#include "fuselab/kernel/lower_axes.h"
#include "fuselab/kernel/lower_recipe.h"
#include "fuselab/kernel/lower_views.h"
#include "fuselab/kernel/spread_rows.h"

namespace fuselab::kernel {
namespace {

class Lowerer {
 public:
  Lowerer(const Graph& g, const std::string& name, const LoopAxes::Splits& splits) : g_(g), axes_(g, k_, splits) {
    k_.name = name;
  }

  Kernel run() {
    add_buffers();
    const auto main = main_output();
    axes_.bind_main(g_.values[g_.outputs[main]].type.sizes);
    std::vector<std::size_t> order{main};
    for (std::size_t o = 0; o < g_.outputs.size(); ++o)
      if (o != main) order.push_back(o);
    // Every output is evaluated before the first is stored: evaluating decides which axes are inner.
    std::vector<std::pair<std::size_t, std::vector<Index>>> at;
    std::vector<int> value(g_.outputs.size());
    for (std::size_t o : order) {
      at.emplace_back(o, o == main ? axes_.main_index() : axes_.output_index(g_.values[g_.outputs[o]]));
      value[o] = eval(g_.outputs[o], at.back().second);
    }
    std::sort(at.begin(), at.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [o, index] : at) store(static_cast<int>(o), value[o], index);
    std::set<std::string> symbols;
    for (const Value& v : g_.values)
      for (const auto* list : {&v.type.sizes, &v.type.strides})
        for (const Expr& e : *list) e.collect_symbols(symbols);
    for (const std::string& s : g_.size_params) symbols.insert(s);
    k_.symbols.assign(symbols.begin(), symbols.end());
    axes_.finish_tree();
    spread_constant_rows(k_);
    verify(k_);
    return std::move(k_);
  }

  LoopAxes::Splits with_split(const SplitAxis& split) const { return axes_.with_split(split); }

 private:
  void add_buffers() {
    for (ValueId v : g_.inputs)
      k_.buffers.push_back({g_.values[v].name, g_.values[v].type.dtype, false, g_.values[v].type.str()});
    k_.inputs = static_cast<int>(k_.buffers.size());
    for (ValueId v : g_.outputs)
      k_.buffers.push_back({g_.values[v].name, g_.values[v].type.dtype, true, g_.values[v].type.str()});
  }

  /// The output whose dims become the axes: one with the most dims of more than one element, elements before rows.
  std::size_t main_output() const {
    std::size_t best = 0;
    auto weight = [&](std::size_t o) {
      int dims = 0;
      std::int64_t elements = 1;
      for (const Expr& e : g_.values[g_.outputs[o]].type.sizes) {
        dims += !e.is(1);
        elements *= e.is_const() ? std::min<std::int64_t>(std::max<std::int64_t>(e.value(), 1), 1 << 20) : 1024;
        elements = std::min<std::int64_t>(elements, std::int64_t{1} << 40);
      }
      return std::pair(elements, dims);
    };
    for (std::size_t o = 1; o < g_.outputs.size(); ++o)
      if (weight(o) > weight(best)) best = o;
    return best;
  }

  int eval(ValueId v, const std::vector<Index>& index) {
    std::string key = std::to_string(v);
    for (const Index& i : index) key += "|" + i.str(k_.axes);
    auto it = memo_.find(key);
    if (it != memo_.end()) return it->second;
    const int s = eval_new(v, index);
    memo_[key] = s;
    return s;
  }

  int eval_new(ValueId v, const std::vector<Index>& index) {
    const Value& value = g_.values[v];
    if (value.producer < 0) return load(v, index);
    const Node& n = g_.nodes[value.producer];
    if (n.op == nullptr) axes_.unsupported(value.name, "an extern call");
    switch (n.op->kind) {
      case ops::Kind::view:
        return eval(std::get<ValueId>(n.args[0]), through_view(g_, n, index, k_.axes));
      case ops::Kind::pointwise:
      case ops::Kind::create:
        return eval_pointwise(n, value, index);
      case ops::Kind::reduce:
        return eval_reduce(n, value, index);
      default:
        axes_.unsupported(value.name, "operator " + n.op->name + " has no kernel form yet");
    }
  }

  int load(ValueId v, const std::vector<Index>& index) {
    Stmt s;
    s.kind = StmtKind::load;
    s.type = g_.values[v].type.dtype;
    s.name = g_.values[v].name;
    s.buffer = static_cast<int>(std::find(g_.inputs.begin(), g_.inputs.end(), v) - g_.inputs.begin());
    if (s.buffer == k_.inputs) axes_.unsupported(s.name, "a value without a producer");
    s.index = address(g_.values[v].type, index);
    return push(s);
  }

  static Index address(const Type& type, const std::vector<Index>& index) {
    Index a;
    for (std::size_t d = 0; d < index.size(); ++d) a = a.plus(index[d].times(type.strides[d]));
    return a;
  }

  void store(int output, int value, const std::vector<Index>& index) {
    const Value& v = g_.values[g_.outputs[static_cast<std::size_t>(output)]];
    Stmt s;
    s.kind = StmtKind::store;
    s.type = v.type.dtype;
    s.name = v.name;
    s.buffer = k_.inputs + output;
    s.args = {value};
    s.index = address(v.type, index);
    push(s);
  }

  int push(Stmt s) {
    k_.stmts.push_back(std::move(s));
    return static_cast<int>(k_.stmts.size()) - 1;
  }

  int eval_pointwise(const Node& n, const Value& value, const std::vector<Index>& index) {
    RecipeEnv env = environment(n, [&](std::size_t i, ValueId a) { return eval(a, argument_index(n, i, a, index, {})); });
    env.linear = Index{};
    for (std::size_t d = 0; d < index.size(); ++d) env.linear = env.linear.times(value.type.sizes[d]).plus(index[d]);
    const auto results = expand_recipe(k_, g_, n, env);
    return finish(n, value, results.at(static_cast<std::size_t>(value.result)));
  }

  RecipeEnv environment(const Node& n, const std::function<int(std::size_t, ValueId)>& read) {
    RecipeEnv env;
    env.compute = argument_type(g_, n);
    for (std::size_t i = 0; i < n.args.size(); ++i) {
      if (const auto* v = std::get_if<ValueId>(&n.args[i]))
        env.args.emplace_back(read(i, *v));
      else
        env.args.emplace_back(std::nullopt);
    }
    return env;
  }

  /// Casts the recipe's result to the value's dtype where they differ, and marks it as the node's result.
  int finish(const Node& n, const Value& value, int s) {
    if (k_.stmts[s].type != value.type.dtype) {
      Stmt c;
      c.kind = StmtKind::cast;
      c.type = value.type.dtype;
      c.args = {s};
      c.node_op = n.op->name;
      c.node = n.id;
      s = push(c);
    } else if (k_.stmts[s].kind == StmtKind::load || k_.stmts[s].result) {
      return s;  // a copy: the value itself, bit for bit (R5)
    }
    k_.stmts[s].result = true;
    k_.stmts[s].name = value.name;
    return s;
  }

  int eval_reduce(const Node& n, const Value& value, const std::vector<Index>& index) {
    const LoopAxes::Operand operand = axes_.reduced_operand(n, value, index);
    std::string key = "n" + std::to_string(n.id);
    for (const Index& i : operand.at) key += "|" + i.str(k_.axes);
    auto it = node_memo_.find(key);
    if (it == node_memo_.end()) {
      RecipeEnv env =
          environment(n, [&](std::size_t i, ValueId a) { return eval(a, argument_index(n, i, a, operand.at, operand.group)); });
      env.count = operand.count;
      it = node_memo_.emplace(key, expand_recipe(k_, g_, n, env)).first;
    }
    return finish(n, value, it->second.at(static_cast<std::size_t>(value.result)));
  }

  /// The index of argument `i`, value `a`, of a node whose first operand is read at `at`, in group number `group`.
  std::vector<Index> argument_index(const Node& n, std::size_t i, ValueId a, const std::vector<Index>& at,
                                    const Index& group) const {
    const auto& sizes = g_.values[a].type.sizes;
    if (n.op->args[i].channel && sizes.size() == 1) return {sizes[0].is(1) ? Index{} : at.at(1)};
    if (n.op->reduce == ops::ReduceDims::group && n.op->args[i].row) return {at[0], group};  // mean, rstd [N, G]
    return broadcast_index(sizes, at);
  }

  const Graph& g_;
  Kernel k_;
  LoopAxes axes_;
  std::map<std::string, int> memo_;
  std::map<std::string, std::vector<int>> node_memo_;
};

}  // namespace

Kernel lower(const Graph& fragment, const std::string& name) {
  if (fragment.outputs.empty()) fail("kernel.unsupported", "kernel {}: its fragment returns nothing", name);
  LoopAxes::Splits splits;
  for (int attempt = 0; attempt < 32; ++attempt) {
    Lowerer lowerer(fragment, name, splits);
    try {
      return lowerer.run();
    } catch (const SplitAxis& s) {
      splits = lowerer.with_split(s);
    }
  }
  fail("kernel.unsupported", "kernel {}: its reshapes split axes without end", name);
}

}  // namespace fuselab::kernel
