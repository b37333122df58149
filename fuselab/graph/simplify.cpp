#include "fuselab/graph/simplify.h"

#include <algorithm>
#include <map>
#include <optional>

#include "fuselab/core/error.h"
#include "fuselab/graph/infer.h"
#include "fuselab/graph/rewrite.h"
#include "fuselab/graph/text.h"
#ifndef NDEBUG
#include "fuselab/graph/verify.h"
#endif

namespace fuselab {
namespace {

bool is(const Node& n, const char* op) { return n.op != nullptr && n.op->name == op; }

/// The node that computes argument i of n when it is this operator.
const Node* argument_node(const Graph& g, const Node& n, std::size_t i, const char* op) {
  const auto* v = std::get_if<ValueId>(&n.args[i]);
  if (v == nullptr || g.values[*v].producer < 0) return nullptr;
  const Node& from = g.nodes[g.values[*v].producer];
  return is(from, op) ? &from : nullptr;
}

bool same_type(const Type& a, const Type& b) { return a.dtype == b.dtype && a.sizes == b.sizes && a.strides == b.strides; }

/// Every value of integer type `narrow` (or bool) has its own place in `wide`.
bool holds_every_value(DType wide, DType narrow) {
  if (is_bool(narrow)) return true;
  if (is_bool(wide) || !is_int(narrow)) return false;
  const bool is_unsigned = narrow == DType::u8;
  if (is_int(wide)) {
    if (wide == DType::u8) return is_unsigned;
    return size_of(wide) > size_of(narrow) || (!is_unsigned && size_of(wide) == size_of(narrow));
  }
  const int digits = 8 * size_of(narrow) - (is_unsigned ? 0 : 1);  // the most negative value is a power of two
  const int significand = wide == DType::f16 ? 11 : wide == DType::bf16 ? 8 : wide == DType::f32 ? 24 : 53;
  return digits <= significand;
}

/// The argument that an operator's result equals, bit for bit.
using Equals = std::optional<ValueId> (*)(const Graph& g, const Node& n);

std::optional<ValueId> identity_cast(const Graph& g, const Node& n) {
  if (!is(n, "cast")) return std::nullopt;
  const ValueId x = std::get<ValueId>(n.args[0]);
  if (g.values[x].type.dtype != std::get<DType>(n.attrs.at("dtype"))) return std::nullopt;
  return x;
}

std::optional<ValueId> cast_pair(const Graph& g, const Node& n) {
  const Node* inner = is(n, "cast") ? argument_node(g, n, 0, "cast") : nullptr;
  if (inner == nullptr) return std::nullopt;
  const ValueId x = std::get<ValueId>(inner->args[0]);
  const DType own = g.values[x].type.dtype;
  if (std::get<DType>(n.attrs.at("dtype")) != own || !holds_every_value(std::get<DType>(inner->attrs.at("dtype")), own)) {
    return std::nullopt;
  }
  return x;
}

std::optional<ValueId> neutral(const Graph&, const Node& n) {
  struct Rule {
    const char* op;
    std::int64_t element;
    bool either_side;
  };
  static constexpr Rule kRules[] = {{"add", 0, true},          {"sub", 0, false},       {"mul", 1, true},
                                    {"bitwise_and", -1, true}, {"bitwise_or", 0, true}, {"bitwise_xor", 0, true}};
  for (const Rule& r : kRules) {
    if (!is(n, r.op) || n.args.size() != 2) continue;
    // add and sub multiply their second argument by alpha: only 1 leaves it alone.
    const auto one = [](const auto& a) {
      return std::holds_alternative<std::int64_t>(a.second) && std::get<std::int64_t>(a.second) == 1;
    };
    if (!std::all_of(n.attrs.begin(), n.attrs.end(), one)) continue;
    for (int side = 0; side < (r.either_side ? 2 : 1); ++side) {
      const auto* x = std::get_if<ValueId>(&n.args[side]);
      const auto* s = std::get_if<Scalar>(&n.args[1 - side]);
      const auto* number = s != nullptr ? std::get_if<std::int64_t>(s) : nullptr;
      if (x != nullptr && number != nullptr && *number == r.element) return *x;
    }
  }
  return std::nullopt;
}

std::optional<ValueId> integers_neutral(const Graph& g, const Node& n) {
  const auto x = neutral(g, n);
  return x && is_int(g.values[*x].type.dtype) ? x : std::nullopt;
}

std::optional<ValueId> double_not(const Graph& g, const Node& n) {
  for (const char* op : {"logical_not", "bitwise_not"}) {
    const Node* inner = is(n, op) ? argument_node(g, n, 0, op) : nullptr;
    if (inner == nullptr) continue;
    const ValueId x = std::get<ValueId>(inner->args[0]);
    const DType t = g.values[x].type.dtype;
    if (is_bool(t) || (op[0] == 'b' && is_int(t))) return x;
  }
  return std::nullopt;
}

std::optional<ValueId> empty_view(const Graph& g, const Node& n) {
  if (n.op == nullptr || n.op->kind != ops::Kind::view || is(n, "slice")) return std::nullopt;
  const ValueId x = std::get<ValueId>(n.args[0]);
  if (is(n, "alias") || is(n, "reshape") || is(n, "expand") || is(n, "squeeze")) return x;  // same type, so the same elements
  const Type& t = g.values[x].type;
  // A permutation may leave sizes and strides as they are only by moving equal dimensions; then elements move.
  if (!is(n, "permute")) return std::nullopt;
  const auto& dims = std::get<std::vector<Expr>>(n.attrs.at("dims"));
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t d = dims[i].value() < 0 ? dims[i].value() + static_cast<std::int64_t>(t.sizes.size()) : dims[i].value();
    if (d != static_cast<std::int64_t>(i)) return std::nullopt;
  }
  return x;
}

/// Replaces results that equal an argument; types must agree and the caller must not see the storage.
Graph replace_equal(const Graph& g, Equals equals, bool& changed) {
  const std::vector<bool> seen = reaches_caller(g);
  GraphCopy copy(g);
  for (const ValueId i : g.inputs) copy.input(i);
  for (const Node& n : g.nodes) {
    const auto x = n.op != nullptr && n.results.size() == 1 && !seen[n.results[0]] ? equals(g, n) : std::nullopt;
    if (x && same_type(g.values[*x].type, g.values[n.results[0]].type)) {
      copy.replace(n.results[0], copy.at(*x));
      changed = true;
    } else {
      copy.node(n);
    }
  }
  return copy.finish();
}

/// A view of a view that one view of the first's argument gives with the same type.
std::optional<Node> merged_view(const Graph& g, const Node& n) {
  Node merged = n;
  if (const Node* inner = is(n, "permute") ? argument_node(g, n, 0, "permute") : nullptr) {
    const auto& outer_dims = std::get<std::vector<Expr>>(n.attrs.at("dims"));
    const auto& inner_dims = std::get<std::vector<Expr>>(inner->attrs.at("dims"));
    const auto rank = static_cast<std::int64_t>(outer_dims.size());
    std::vector<Expr> dims;
    for (const Expr& d : outer_dims) dims.push_back(inner_dims[static_cast<std::size_t>((d.value() + rank) % rank)]);
    merged.attrs["dims"] = dims;
    merged.args[0] = inner->args[0];
    return merged;
  }
  if (is(n, "reshape")) {
    // Only sizes are renamed in between, so the order of the elements is the argument's.
    for (const char* op : {"reshape", "squeeze", "unsqueeze"}) {
      const Node* inner = argument_node(g, n, 0, op);
      if (inner == nullptr) continue;
      merged.args[0] = inner->args[0];
      merged.attrs["shape"] = g.values[n.results[0]].type.sizes;
      return merged;
    }
  }
  return std::nullopt;
}

Graph fold_views(const Graph& g, bool& changed) {
  GraphCopy copy(g);
  for (const ValueId i : g.inputs) copy.input(i);
  for (const Node& n : g.nodes) {
    if (auto merged = merged_view(g, n)) {
      try {
        if (same_type(infer(g, *merged).front(), g.values[n.results[0]].type)) {
          copy.node(*merged);
          changed = true;
          continue;
        }
      } catch (const Error&) {  // sizes that are equal only by an assumption: leave the two views
      }
    }
    copy.node(n);
  }
  return replace_equal(copy.finish(), empty_view, changed);
}

Graph common_subexpressions(const Graph& g, bool& changed) {
  const std::vector<bool> seen = reaches_caller(g);
  GraphCopy copy(g);
  for (const ValueId i : g.inputs) copy.input(i);
  std::map<std::string, const Node*> known;  // text of the call over the new graph's names -> the old node that was kept
  for (const Node& n : g.nodes) {
    const bool visible = std::any_of(n.results.begin(), n.results.end(), [&](ValueId r) { return seen[r]; });
    if (n.op == nullptr || visible) {
      copy.node(n);
      continue;
    }
    Node probe = n;
    std::string key;
    for (Operand& a : probe.args) {
      if (auto* v = std::get_if<ValueId>(&a)) a = copy.at(*v);
    }
    probe.results.clear();
    for (const ValueId r : n.results) key += g.values[r].type.str() + ";";
    key += print_node(copy.graph(), probe);
    const auto [it, fresh] = known.emplace(std::move(key), &n);
    if (fresh) {
      copy.node(n);
      continue;
    }
    for (std::size_t i = 0; i < n.results.size(); ++i) copy.replace(n.results[i], copy.at(it->second->results[i]));
    changed = true;
  }
  return copy.finish();
}

Graph run_pass(const std::string& pass, const Graph& g, bool& changed) {
  if (pass == "identity_cast") return replace_equal(g, identity_cast, changed);
  if (pass == "cast_pair") return replace_equal(g, cast_pair, changed);
  if (pass == "neutral") return replace_equal(g, integers_neutral, changed);
  if (pass == "double_not") return replace_equal(g, double_not, changed);
  if (pass == "fold_views") return fold_views(g, changed);
  if (pass == "cse") return common_subexpressions(g, changed);
  Graph r = remove_dead(g);
  changed = r.nodes.size() != g.nodes.size();
  return r;
}

}  // namespace

const std::vector<std::string>& simplify_pass_names() {
  static const std::vector<std::string> kNames = {"dead_nodes", "identity_cast", "cast_pair", "neutral",
                                                  "double_not", "fold_views",    "cse"};
  return kNames;
}

Graph simplify(const Graph& g, const SimplifyOptions& options, std::vector<PassDump>* dumps) {
  Graph now = g;
  const auto skipped = [&](const std::string& pass) {
    return std::find(options.skip_passes.begin(), options.skip_passes.end(), pass) != options.skip_passes.end() ||
           (options.opt_level == 0 && pass != "dead_nodes");
  };
  for (int round = 0; round < 8; ++round) {
    bool any = false;
    for (const std::string& pass : simplify_pass_names()) {
      if (skipped(pass)) continue;
      bool changed = false;
      Graph next = run_pass(pass, now, changed);
      if (!changed) continue;
      now = std::move(next);
#ifndef NDEBUG
      verify(now);
#endif
      if (dumps != nullptr) dumps->push_back({pass, now});
      any = true;
    }
    if (!any) break;
  }
  return now;
}

}  // namespace fuselab
