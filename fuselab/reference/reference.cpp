#include "fuselab/reference/reference.h"

#include <algorithm>
#include <cmath>

#include "fuselab/core/error.h"
#include "fuselab/graph/bind.h"
#include "fuselab/reference/operators.h"

namespace fuselab::reference {
namespace {

Array array_of(const Tensor& t) {
  Array a;
  a.dtype = t.dtype();
  a.sizes = t.sizes();
  a.count = t.numel();
  if (is_float(t.dtype())) {
    a.v = a.lo = a.hi = std::make_shared<const std::vector<double>>(t.doubles());
  } else {
    a.iv = a.ilo = a.ihi = std::make_shared<const std::vector<std::int64_t>>(t.ints());
  }
  return a;
}

Tensor tensor_of(const Array& a) {
  Tensor t(a.dtype, a.sizes);
  for (std::int64_t i = 0; i < a.count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (is_float(a.dtype)) {
      t.set(i, (*a.v)[at]);
    } else {
      t.set_int(i, (*a.iv)[at]);
    }
  }
  return t;
}

/// A low-precision value that leaves its block: both ends rounded to its dtype (R4).
Array stored(const Array& a) {
  Builder out(a.dtype, a.sizes, a.count);
  for (std::int64_t i = 0; i < a.count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    Ball b{(*a.v)[at], (*a.lo)[at], (*a.hi)[at]};
    round_ends(a.dtype, b);
    if (b.lo == b.hi && std::isinf(b.lo)) b.v = b.lo;
    out.set(i, b, a.flagged(i));
  }
  return out.finish();
}

Output output_of(const Value& value, const Array& a) {
  Output o;
  o.name = value.name;
  o.dtype = a.dtype;
  o.sizes = a.sizes;
  const auto n = static_cast<std::size_t>(a.count);
  o.value.resize(n);
  o.bound.assign(n, 0);
  o.undecided.assign(n, 0);
  if (!is_float(a.dtype)) {
    o.ints = *a.iv;
    for (std::size_t i = 0; i < n; ++i) {
      o.value[i] = static_cast<double>(o.ints[i]);
      o.undecided[i] = a.flagged(static_cast<std::int64_t>(i));
    }
    return o;
  }
  o.value = *a.v;
  for (std::size_t i = 0; i < n; ++i) {
    const double v = o.value[i], lo = (*a.lo)[i], hi = (*a.hi)[i];
    o.undecided[i] = a.flagged(static_cast<std::int64_t>(i));
    if (std::isnan(v) || (std::isinf(v) && lo == v && hi == v)) continue;
    o.bound[i] = std::max({hi - v, v - lo, 0.0});
    // Infinite where overflow is possible but not certain: nothing can be held against the element.
    if (std::isnan(o.bound[i]) || std::isinf(v)) o.bound[i] = kInfinity;
    if (std::isinf(o.bound[i])) o.undecided[i] = 1;
  }
  return o;
}

class Interpreter {
 public:
  Interpreter(const Graph& graph, const std::vector<Tensor>& inputs, const Options& options, bool model)
      : g_(concrete(graph, bind_symbols(graph, inputs, options.sizes))), options_(options) {
    policy_.model = model;
    policy_.eager = options.rounding == Rounding::eager;
    policy_.any_borders = options.any_borders;
    arrays_.resize(g_.values.size());
    leaves_.assign(g_.values.size(), 0);
    for (const ValueId v : g_.outputs) leaves_[static_cast<std::size_t>(v)] = 1;
    for (const ValueId v : options.stored) leaves_.at(static_cast<std::size_t>(v)) = 1;
    for (std::size_t i = 0; i < inputs.size(); ++i) arrays_[static_cast<std::size_t>(g_.inputs[i])] = array_of(inputs[i]);
    last_use_.assign(g_.values.size(), -1);
    for (const Node& node : g_.nodes) {
      for (const Operand& a : node.args) {
        if (const auto* v = std::get_if<ValueId>(&a)) last_use_[static_cast<std::size_t>(*v)] = node.id;
      }
    }
    for (const ValueId v : g_.outputs) last_use_[static_cast<std::size_t>(v)] = static_cast<NodeId>(g_.nodes.size());
  }

  void run() {
    for (const Node& node : g_.nodes) {
      std::vector<Array> results = evaluate(node);
      for (std::size_t k = 0; k < results.size(); ++k) {
        const auto id = static_cast<std::size_t>(node.results[k]);
        if (leaves_[id] && is_low_precision(results[k].dtype) && !policy_.model) results[k] = stored(results[k]);
        arrays_[id] = std::move(results[k]);
        if (last_use_[id] < 0) arrays_[id] = {};
      }
      for (const Operand& a : node.args) {
        const auto* v = std::get_if<ValueId>(&a);
        if (v && last_use_[static_cast<std::size_t>(*v)] == node.id) arrays_[static_cast<std::size_t>(*v)] = {};
      }
    }
  }
  const Graph& graph() const { return g_; }
  const Array& array(ValueId v) const { return arrays_[static_cast<std::size_t>(v)]; }

 private:
  std::vector<Array> evaluate(const Node& node) {
    std::vector<Argument> args;
    for (const Operand& a : node.args) {
      Argument arg;
      if (const auto* v = std::get_if<ValueId>(&a)) arg.array = &arrays_[static_cast<std::size_t>(*v)];
      if (const auto* s = std::get_if<Scalar>(&a)) arg.number = s;
      args.push_back(arg);
    }
    if (!node.op) return call_extern(node, args);
    switch (node.op->kind) {
      case ops::Kind::pointwise:
        return run_pointwise(g_, node, args, policy_);
      case ops::Kind::reduce:
        return run_reduce(g_, node, args, policy_);
      case ops::Kind::create:
        return run_create(g_, node, args, policy_);
      case ops::Kind::view:
        return run_view(g_, node, args);
      default:
        fail("reference.op", "{} has no meaning in the reference interpreter", node.op->name);
    }
  }
  std::vector<Array> call_extern(const Node& node, const std::vector<Argument>& args) {
    if (!options_.externs)
      fail("reference.extern", "extern call {} has no meaning here; check the graph without it", node.target);
    std::vector<Tensor> in;
    for (const Argument& a : args) {
      if (a.array) in.push_back(tensor_of(*a.array));
    }
    const std::vector<Tensor> out = options_.externs(node, in);
    if (out.size() != node.results.size()) {
      fail("reference.extern", "extern call {} gave {} results, not {}", node.target, out.size(), node.results.size());
    }
    std::vector<Array> arrays;
    for (std::size_t k = 0; k < out.size(); ++k) {
      const Type& type = g_.values[static_cast<std::size_t>(node.results[k])].type;
      if (out[k].dtype() != type.dtype || out[k].sizes() != constant_sizes(type.sizes)) {
        fail("reference.extern", "result {} of extern call {} is not {}", k, node.target, type.str());
      }
      arrays.push_back(array_of(out[k]));
    }
    return arrays;
  }

  Graph g_;
  const Options& options_;
  Policy policy_;
  std::vector<Array> arrays_;
  std::vector<std::uint8_t> leaves_;
  std::vector<NodeId> last_use_;
};

}  // namespace

std::vector<Output> fp64_reference(const Graph& graph, const std::vector<Tensor>& inputs, const Options& options) {
  Interpreter interpreter(graph, inputs, options, false);
  interpreter.run();
  std::vector<Output> out;
  for (const ValueId v : interpreter.graph().outputs) {
    out.push_back(output_of(interpreter.graph().values[static_cast<std::size_t>(v)], interpreter.array(v)));
  }
  return out;
}

std::vector<Tensor> rounded(const Graph& graph, const std::vector<Tensor>& inputs) {
  const Options options;
  Interpreter interpreter(graph, inputs, options, true);
  interpreter.run();
  std::vector<Tensor> out;
  for (const ValueId v : interpreter.graph().outputs) out.push_back(tensor_of(interpreter.array(v)));
  return out;
}

}  // namespace fuselab::reference
