#include "fuselab/kernel/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/graph/infer.h"
#include "fuselab/kernel/lower_recipe.h"
#include "fuselab/kernel/lower_views.h"

namespace fuselab::kernel {
namespace {

/// Axes come in slots, one per dimension that asked for an axis, in a fixed order; a slot whose axis had to be split has several
/// factors. Splits found in one attempt are kept for the next.
using Splits = std::map<int, std::vector<Expr>>;

class Lowerer {
 public:
  Lowerer(const Graph& g, const std::string& name, const Splits& splits) : g_(g), splits_(splits) { k_.name = name; }

  Kernel run() {
    add_buffers();
    const auto main = main_output();
    bind_main(g_.values[g_.outputs[main]].type.sizes);
    std::vector<std::size_t> order{main};
    for (std::size_t o = 0; o < g_.outputs.size(); ++o)
      if (o != main) order.push_back(o);
    // Every output is evaluated before the first is stored: evaluating decides which axes are inner.
    std::vector<std::pair<std::size_t, std::vector<Index>>> at;
    std::vector<int> value(g_.outputs.size());
    for (std::size_t o : order) {
      at.emplace_back(o, o == main ? main_index_ : output_index(g_.values[g_.outputs[o]]));
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
    finish_tree();
    spread_constant_rows();
    verify(k_);
    return std::move(k_);
  }

  /// A reduction of something that is the same all along the row (a broadcast value, a row of one element) still runs over the
  /// row: the value is chosen anew at every element by a condition on the index that always holds.
  void spread_constant_rows() {
    const auto inner = k_.inner_stmts();
    const auto axis = std::find_if(k_.axes.begin(), k_.axes.end(), [](const Axis& a) { return a.role == Role::inner; });
    if (axis == k_.axes.end()) return;
    std::vector<Stmt> old;
    old.swap(k_.stmts);
    std::vector<int> place(old.size());
    const auto push = [&](Stmt s) {
      k_.stmts.push_back(std::move(s));
      return static_cast<int>(k_.stmts.size()) - 1;
    };
    for (std::size_t i = 0; i < old.size(); ++i) {
      Stmt s = std::move(old[i]);
      for (int& a : s.args) {
        const bool constant_row = s.kind == StmtKind::reduce && !inner[static_cast<std::size_t>(a)];
        a = place[static_cast<std::size_t>(a)];
        if (!constant_row) continue;
        Stmt step, zero, inside, spread;
        step.kind = StmtKind::index;
        step.type = zero.type = DType::i64;
        step.index.add(static_cast<int>(axis - k_.axes.begin()), 1);
        zero.kind = StmtKind::constant;
        zero.value = std::int64_t{0};
        inside.op = "ge";
        inside.type = DType::boolean;
        inside.args = {push(step), push(zero)};
        spread.op = "select";
        spread.type = zero.type = k_.stmts[static_cast<std::size_t>(a)].type;
        const int condition = push(inside);
        spread.args = {condition, a, push(zero)};
        for (Stmt* x : {&step, &zero, &inside, &spread}) x->node_op = s.node_op, x->node = s.node;
        a = push(spread);
      }
      place[i] = push(std::move(s));
    }
  }

  /// Where a SplitAxis request goes: the slot of the axis and its place there.
  Splits with_split(const SplitAxis& split) const {
    Splits next = splits_;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot)
      for (std::size_t j = 0; j < slots_[slot].size(); ++j) {
        if (slots_[slot][j] != split.axis) continue;
        auto& factors = next[static_cast<int>(slot)];
        if (factors.empty()) factors.push_back(k_.axes[split.axis].extent);
        Expr outer;
        if (!exact_div(factors[j], split.inner, outer)) fail("kernel.unsupported", "{}: an axis cannot be split evenly", k_.name);
        factors[j] = split.inner;
        factors.insert(factors.begin() + static_cast<std::ptrdiff_t>(j), outer);
        return next;
      }
    fail("kernel.unsupported", "{}: an axis to split does not exist", k_.name);
  }

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

  Index new_axis(const Expr& extent, Role role) {
    const int slot = static_cast<int>(slots_.size());
    auto it = splits_.find(slot);
    const std::vector<Expr> factors = it == splits_.end() ? std::vector<Expr>{extent} : it->second;
    slots_.emplace_back();
    Index index;
    for (const Expr& f : factors) {
      const int axis = static_cast<int>(k_.axes.size());
      k_.axes.push_back({"i" + std::to_string(axis), f, role});
      slots_.back().push_back(axis);
      index = index.times(f);
      index.add(axis, 1);
    }
    return index;
  }

  void bind_main(const std::vector<Expr>& sizes) {
    for (const Expr& e : sizes) main_index_.push_back(e.is(1) ? Index{} : new_axis(e, Role::parallel));
    main_sizes_ = sizes;
  }

  /// The index of a second output: the main one's parallel axes in their order, matched by extent (several may make one dim);
  /// all of them must be used.
  std::vector<Index> output_index(const Value& v) const {
    if (v.type.sizes == main_sizes_) return main_index_;
    std::vector<int> axes;
    for (const Index& i : main_index_)
      for (const auto& t : i.terms)
        if (k_.axes[t.first].role == Role::parallel) axes.push_back(t.first);
    std::vector<Index> index(v.type.sizes.size());
    std::size_t next = 0;
    for (std::size_t d = 0; d < index.size(); ++d) {
      if (v.type.sizes[d].is(1)) continue;
      for (Expr covered = 1; covered != v.type.sizes[d]; ++next) {
        if (next == axes.size()) unsupported(v.name, "its sizes do not match the block's rows");
        covered = covered * k_.axes[axes[next]].extent;
        index[d] = index[d].times(k_.axes[axes[next]].extent);
        index[d].add(axes[next], 1);
      }
    }
    if (next != axes.size()) unsupported(v.name, "it covers only part of the block's rows");
    return index;
  }

  [[noreturn]] void unsupported(const std::string& what, const std::string& why) const {
    fail("kernel.unsupported", "kernel {}: {}: {}; it runs as several kernels instead", k_.name, what, why);
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
    if (n.op == nullptr) unsupported(value.name, "an extern call");
    switch (n.op->kind) {
      case ops::Kind::view:
        return eval(std::get<ValueId>(n.args[0]), through_view(g_, n, index, k_.axes));
      case ops::Kind::pointwise:
      case ops::Kind::create:
        return eval_pointwise(n, value, index);
      case ops::Kind::reduce:
        return eval_reduce(n, value, index);
      default:
        unsupported(value.name, "operator " + n.op->name + " has no kernel form yet");
    }
  }

  int load(ValueId v, const std::vector<Index>& index) {
    Stmt s;
    s.kind = StmtKind::load;
    s.type = g_.values[v].type.dtype;
    s.name = g_.values[v].name;
    s.buffer = static_cast<int>(std::find(g_.inputs.begin(), g_.inputs.end(), v) - g_.inputs.begin());
    if (s.buffer == k_.inputs) unsupported(s.name, "a value without a producer");
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
    RecipeEnv env = environment(n, [&](std::size_t i, ValueId a) { return eval(a, argument_index(n, i, a, index)); });
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
    const Type& operand = g_.values[std::get<ValueId>(n.args[0])].type;
    const bool element = result_shape(n, value.result) == ops::ShapeRule::same;
    std::vector<Index> at;
    if (n.op->reduce == ops::ReduceDims::group)
      at = group_index(n, operand, value, index, element);
    else
      at = reduce_index(n, operand, value, index, element);
    std::string key = "n" + std::to_string(n.id);
    for (const Index& i : at) key += "|" + i.str(k_.axes);
    auto it = node_memo_.find(key);
    if (it == node_memo_.end()) {
      const Index group = group_;
      const Expr count = count_;
      RecipeEnv env = environment(n, [&](std::size_t i, ValueId a) {
        group_ = group;  // an argument may hold a group_norm of its own
        return eval(a, argument_index(n, i, a, at));
      });
      env.count = count;
      it = node_memo_.emplace(key, expand_recipe(k_, g_, n, env)).first;
    }
    return finish(n, value, it->second.at(static_cast<std::size_t>(value.result)));
  }

  static ops::ShapeRule result_shape(const Node& n, int r) {
    return r == 0 ? n.op->shape : n.op->more.at(static_cast<std::size_t>(r) - 1).shape;
  }

  /// The index of argument `i`, value `a`, of a node whose first operand is read at `at`.
  std::vector<Index> argument_index(const Node& n, std::size_t i, ValueId a, const std::vector<Index>& at) const {
    const auto& sizes = g_.values[a].type.sizes;
    if (n.op->args[i].channel && sizes.size() == 1) return {sizes[0].is(1) ? Index{} : at.at(1)};
    if (n.op->reduce == ops::ReduceDims::group && n.op->args[i].row) return {at[0], group_};  // mean, rstd [N, G]
    return broadcast_index(sizes, at);
  }

  std::vector<Index> reduce_index(const Node& n, const Type& operand, const Value& value, const std::vector<Index>& index,
                                  bool element) {
    const auto dims = reduced_dims(g_, n);
    std::vector<bool> reduced(operand.sizes.size());
    for (int d : dims) reduced[static_cast<std::size_t>(d)] = true;
    std::vector<Index> at(operand.sizes.size());
    const bool keep = !element && value.type.sizes.size() == operand.sizes.size();
    for (std::size_t d = 0, k = 0; d < at.size(); ++d) {
      if (element)
        at[d] = index[d];
      else if (!reduced[d])
        at[d] = keep ? index[d] : index[k++];
    }
    std::vector<Expr> extents;
    bool kept_after = false, any = false;
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (reduced[d]) {
        extents.push_back(operand.sizes[d]);
        any = any || !operand.sizes[d].is(1);
        if (!operand.sizes[d].is(1)) kept_after = false;
      } else if (!operand.sizes[d].is(1) && any) {
        kept_after = true;
      }
    }
    count_ = product(extents);
    std::vector<Index> given;
    if (element)
      for (int d : dims) given.push_back(index[static_cast<std::size_t>(d)]);
    std::vector<Index> kept;
    for (std::size_t d = 0; d < at.size(); ++d)
      if (!reduced[d]) kept.push_back(at[d]);
    const auto inner = bind_inner(n, extents, given, kept, !kept_after);
    for (std::size_t j = 0; j < dims.size(); ++j) at[static_cast<std::size_t>(dims[j])] = inner[j];
    return at;
  }

  std::vector<Index> group_index(const Node& n, const Type& operand, const Value& value, const std::vector<Index>& index,
                                 bool element) {
    const auto& sizes = operand.sizes;
    Expr groups = 1, per_group;
    const Attr& attr = n.attrs.at("num_groups");
    if (const auto* i = std::get_if<std::int64_t>(&attr)) groups = *i;
    if (const auto* e = std::get_if<Expr>(&attr)) groups = *e;
    if (!exact_div(sizes.at(1), groups, per_group)) unsupported(value.name, "channels are no multiple of the groups");
    std::vector<Expr> extents{per_group};
    extents.insert(extents.end(), sizes.begin() + 2, sizes.end());
    count_ = product(extents);
    std::vector<Index> at(sizes.size()), given, kept{index[0]};
    at[0] = index[0];
    if (element) {
      Index channel_in_group;
      group_ = {};
      for (const auto& [a, c] : index[1].terms) {
        Expr q;
        if (exact_div(c, per_group, q) && !(per_group.is(1) && groups.is(1)))
          group_.add(a, q);
        else if (c.is(1) && k_.axes[a].extent != per_group && !groups.is(1))
          throw SplitAxis{a, per_group};
        else
          channel_in_group.add(a, c);
      }
      if (groups.is(1)) channel_in_group = index[1];
      given.push_back(channel_in_group);
      for (std::size_t d = 2; d < sizes.size(); ++d) given.push_back(index[d]);
    } else {
      group_ = index.at(1);
    }
    kept.push_back(group_);
    const auto inner = bind_inner(n, extents, given, kept, true);
    at[1] = group_.times(per_group).plus(inner[0]);
    for (std::size_t d = 2; d < sizes.size(); ++d) at[d] = inner[d - 1];
    return at;
  }

  /// Binds the reduced dims to the kernel's inner axes; see lower.h. `given`: where the result's own index lies (element
  /// results).
  std::vector<Index> bind_inner(const Node& n, const std::vector<Expr>& extents, const std::vector<Index>& given,
                                const std::vector<Index>& kept, bool lanes) {
    std::vector<Expr> real;
    for (const Expr& e : extents)
      if (!e.is(1)) real.push_back(e);
    if (!given.empty()) claim(n, extents, given);
    if (inner_.empty() && given.empty()) claim_unused(real, kept);
    if (inner_.empty()) {
      for (const Expr& e : real) add_inner(e, new_axis(e, Role::inner));
      if (real.empty()) add_inner(1, new_axis(1, Role::inner));
    }
    if (!bound_) lanes_ = lanes;
    bound_ = true;
    std::vector<Expr> have;
    for (const auto& [e, i] : inner_)
      if (!e.is(1)) have.push_back(e);
    if (have != real) unsupported(n.op->name, "two reductions over different extents");
    if (lanes != lanes_) unsupported(n.op->name, "two reductions along different directions");
    std::vector<Index> out;
    std::size_t j = 0;
    for (const Expr& e : extents) {
      if (e.is(1)) {
        out.emplace_back();
        continue;
      }
      while (inner_[j].first.is(1)) ++j;
      out.push_back(inner_[j++].second);
    }
    return out;
  }

  void add_inner(const Expr& extent, const Index& index) {
    inner_.emplace_back(extent, index);
    for (const auto& t : index.terms) k_.axes[t.first].role = Role::inner;
  }

  /// The axes at `given` become the inner ones (or must be them already).
  void claim(const Node& n, const std::vector<Expr>& extents, const std::vector<Index>& given) {
    std::vector<std::pair<Expr, Index>> want;
    for (std::size_t j = 0; j < extents.size(); ++j)
      if (!extents[j].is(1)) want.emplace_back(extents[j], given[j]);
    if (inner_.empty()) {
      for (const auto& [e, i] : want) {
        Expr covered = 1;
        bool plain = i.offset.is(0) && !i.terms.empty();
        for (auto t = i.terms.rbegin(); plain && t != i.terms.rend(); ++t) {
          plain = t->second == covered && (!bound_ || k_.axes[t->first].role == Role::inner);
          covered = covered * k_.axes[t->first].extent;
        }
        if (!plain || covered != e) unsupported(n.op->name, "only part of a reduced row is wanted");
      }
      for (const auto& [e, i] : want) add_inner(e, i);
      return;
    }
    std::size_t j = 0;
    for (const auto& [e, i] : inner_) {
      if (e.is(1)) continue;
      if (j == want.size() || want[j].first != e || !(want[j].second == i))
        unsupported(n.op->name, "a reduced row is wanted along other axes");
      ++j;
    }
    if (j != want.size()) unsupported(n.op->name, "two reductions over different extents");
  }

  /// Main-output axes of the right extents that the kept dims do not use become the inner ones: `x - sum(x, -1, keepdim)`.
  void claim_unused(const std::vector<Expr>& real, const std::vector<Index>& kept) {
    std::set<int> used;
    for (const Index& i : kept)
      for (const auto& t : i.terms) used.insert(t.first);
    std::vector<std::pair<Expr, Index>> found;
    std::size_t d = 0;
    for (const Expr& e : real) {
      for (; d < main_sizes_.size(); ++d) {
        const auto& terms = main_index_[d].terms;
        if (main_sizes_[d] == e && !terms.empty() &&
            std::none_of(terms.begin(), terms.end(), [&](const auto& t) { return used.count(t.first); }))
          break;
      }
      if (d == main_sizes_.size()) return;
      found.emplace_back(e, main_index_[d++]);
    }
    for (const auto& [e, i] : found) add_inner(e, i);
  }

  /// Groups the inner dims for the reduction tree: from the last one outwards, merged until a group has a block's elements.
  void finish_tree() {
    k_.tree.lanes = lanes_;
    std::vector<std::vector<int>> groups;
    std::int64_t elements = 0;
    for (std::size_t j = inner_.size(); j-- > 0;) {
      std::vector<int> axes;
      for (const auto& t : inner_[j].second.terms) axes.push_back(t.first);
      const bool small = !groups.empty() && elements > 0 && elements < 256 && inner_[j].first.is_const();
      if (small || (!groups.empty() && !lanes_)) {
        groups.front().insert(groups.front().begin(), axes.begin(), axes.end());
        if (small) elements *= inner_[j].first.value();
      } else {
        groups.insert(groups.begin(), axes);
        elements = inner_[j].first.is_const() ? inner_[j].first.value() : 0;
      }
    }
    k_.tree.groups = groups;
    int p = 0, r = 0;
    for (Axis& a : k_.axes) a.name = a.role == Role::inner ? "r" + std::to_string(r++) : "p" + std::to_string(p++);
  }

  const Graph& g_;
  const Splits& splits_;
  Kernel k_;
  std::vector<std::vector<int>> slots_;
  std::vector<Index> main_index_;
  std::vector<Expr> main_sizes_;
  std::vector<std::pair<Expr, Index>> inner_;  ///< reduced extents and where they lie
  Index group_;
  Expr count_;
  bool bound_ = false, lanes_ = true;
  std::map<std::string, int> memo_;
  std::map<std::string, std::vector<int>> node_memo_;
};

}  // namespace

Kernel lower(const Graph& fragment, const std::string& name) {
  if (fragment.outputs.empty()) fail("kernel.unsupported", "kernel {}: its fragment returns nothing", name);
  Splits splits;
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
