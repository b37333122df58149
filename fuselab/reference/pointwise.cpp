// Pointwise operators: the table's fp64 formula at the corners of the arguments' intervals.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "fuselab/core/error.h"
#include "fuselab/core/tensor.h"
#include "fuselab/graph/bind.h"
#include "fuselab/graph/infer.h"
#include "fuselab/ops/recipe.h"
#include "fuselab/reference/box.h"
#include "fuselab/reference/operators.h"
#include "fuselab/reference/recipe_error.h"

namespace fuselab::reference {
namespace {

/// Where an argument's elements are: one for all, in step with the result, or through a table of places.
struct Source {
  const Array* array = nullptr;
  double number = 0;
  std::int64_t integer = 0;
  bool single = true;
  std::vector<std::int64_t> places;
  bool ends_only = false;  ///< integers and bool: nothing lies between the ends
  bool round_first = false;

  std::int64_t place(std::int64_t i) const { return single ? 0 : places.empty() ? i : places[static_cast<std::size_t>(i)]; }
};

std::int64_t integer_of(const Scalar& s, DType t) {
  if (const auto* d = std::get_if<double>(&s)) return wrap(t, truncate_to_int(*d));
  if (const auto* b = std::get_if<bool>(&s)) return *b ? 1 : 0;
  return wrap(t, std::get<std::int64_t>(s));
}

/// An optional channel argument lies along dimension 1 of the first one.
std::vector<std::int64_t> channel_strides(std::size_t rank) {
  std::vector<std::int64_t> strides(rank, 0);
  if (rank > 1) strides[1] = 1;
  return strides;
}

std::vector<Source> sources(const Node& node, const std::vector<Argument>& args, const std::vector<std::int64_t>& sizes,
                            DType compute, DType arguments) {
  std::vector<Source> out(args.size());
  for (std::size_t k = 0; k < args.size(); ++k) {
    Source& s = out[k];
    const ops::ArgSpec& spec = node.op->args[k];
    if (args[k].number) {
      // A number in a decision is rounded like a tensor of the arguments' dtype (R3).
      const DType own = node.op->decides && spec.decides && is_float(arguments) ? arguments : compute;
      s.number = number_as(*args[k].number, is_float(compute) ? own : DType::f64);
      s.integer = integer_of(*args[k].number, arguments);
    } else if (!args[k].array) {
      s.number = spec.absent;
      s.integer = static_cast<std::int64_t>(spec.absent);
    } else {
      s.array = args[k].array;
      s.single = s.array->count == 1;
      s.ends_only = !is_float(s.array->dtype);
      s.round_first = node.op->decides && spec.decides && is_low_precision(s.array->dtype);
      if (!s.single && s.array->sizes != sizes) {
        s.places = offsets(sizes, spec.channel ? channel_strides(sizes.size()) : broadcast_strides(s.array->sizes, sizes));
      }
    }
  }
  return out;
}

Ball element(const Source& s, std::int64_t i, DType compute, bool& flagged) {
  if (!s.array) return {s.number, s.number, s.number};
  const std::int64_t at = s.place(i);
  Ball b = ball_of(*s.array, at, compute);
  if (s.round_first) round_for_decision(s.array->dtype, b);
  flagged = s.array->flagged(at);
  return b;
}

void collect_branches(const ops::Op& op, const ops::RecipeNode& node, Branches& out) {
  using Kind = ops::RecipeNode::Kind;
  const bool compares =
      node.kind == Kind::binary && (node.word[0] == '<' || node.word[0] == '>' || node.word == "==" || node.word == "!=");
  if (node.kind == Kind::call && node.word == "fmod") {
    for (std::size_t k = 0; k < op.args.size(); ++k) {
      if (op.args[k].name == node.args[0].word) out.dividend = static_cast<int>(k);
      if (op.args[k].name == node.args[1].word) out.divisor = static_cast<int>(k);
    }
    if (out.dividend < 0) out.divisor = -1;
  }
  for (const ops::RecipeNode& a : node.args) {
    const bool minus = a.kind == Kind::unary && a.word == "-" && a.args[0].kind == Kind::number;
    const ops::RecipeNode& number = minus ? a.args[0] : a;
    if (compares && number.kind == Kind::number) out.thresholds.push_back(minus ? -number.number : number.number);
    collect_branches(op, a, out);
  }
}

/// What `ops::instantiate` wants to know of the arguments.
std::vector<ops::ArgState> states_of(const std::vector<Argument>& args) {
  std::vector<ops::ArgState> states;
  for (const Argument& a : args) {
    ops::ArgState state;
    state.present = a.present();
    if (a.number) state.literal = *a.number;
    states.push_back(state);
  }
  return states;
}

/// The branches of the operator's recipe; 0 is one of everything.
Branches branches_of(const ops::Op& op, const std::vector<Argument>& args, const Attrs& attrs, DType compute) {
  Branches out;
  if (op.monotone) return out;
  out.thresholds.push_back(0);  // poles and signs
  if (op.lower.empty()) return out;
  const ops::Recipe recipe = ops::instantiate(op, states_of(args), attrs, compute);
  for (const ops::RecipeStatement& s : recipe.statements) collect_branches(op, s.value, out);
  for (const ops::RecipeNode& r : recipe.results) collect_branches(op, r, out);
  return out;
}

/// The rounding a composite's recipe makes of itself, beyond its ULP budget where it cancels (batch_norm near 0, gelu's tail).
class OwnRounding {
 public:
  OwnRounding(const Node& node, const std::vector<Argument>& args, const std::vector<Source>& in, const Attrs& attrs,
              DType compute)
      : op_(*node.op), in_(in), compute_(compute) {
    if (op_.ulp <= 0.5 || op_.lower.empty()) return;
    for (const Argument& a : args) given_.push_back(a.present());
    recipe_ = ops::instantiate(op_, states_of(args), attrs, compute);
    bool nested = !recipe_.statements.empty();
    for (const ops::RecipeNode& r : recipe_.results) {
      for (const ops::RecipeNode& a : r.args) nested = nested || !a.args.empty();
    }
    active_ = nested;  // a single primitive is what the budget is about
  }
  /// For element i of `count`; works in chunks, so call in order.
  double operator()(std::int64_t i, std::int64_t count) {
    if (!active_) return 0;
    if (i % kChunk == 0) fill(i, std::min(count, i + kChunk));
    return active_ ? slack_[static_cast<std::size_t>(i % kChunk)] : 0;
  }

 private:
  static constexpr std::int64_t kChunk = 4096;
  void fill(std::int64_t begin, std::int64_t end) {
    std::map<std::string, RowBalls> names;
    for (std::size_t k = 0; k < in_.size(); ++k) {
      if (!given_[k]) continue;
      RowBalls r{true, in_[k].array && is_bool(in_[k].array->dtype) ? DType::boolean : compute_, {}};
      bool flagged = false;
      for (std::int64_t i = begin; i < end; ++i) {
        Ball b = element(in_[k], i, compute_, flagged);
        if (!b.point() && std::isfinite(b.lo) && std::isfinite(b.hi))
          b.v = in_[k].ends_only ? b.v : b.lo + 0.5 * (b.hi - b.lo);
        else
          b.v = b.lo == b.hi ? b.lo : b.v;
        r.at.push_back({b.v, b.v, b.v});
      }
      names.emplace(op_.args[k].name, std::move(r));
    }
    try {
      const std::vector<RowBalls> out = follow_recipe(recipe_, std::move(names), compute_, end - begin, 1);
      slack_.clear();
      for (const Ball& b : out[0].at) {
        // Infinity times what may vanish in the compute dtype: perhaps NaN.
        if (std::isinf(b.v) && b.lo == -kInfinity && b.hi == kInfinity) {
          slack_.push_back(kInfinity);
          continue;
        }
        const double s = std::max(b.hi - b.v, b.v - b.lo);
        // In f64 the formula that gives the value is no better than the kernel: its own rounding counts too.
        slack_.push_back(std::isfinite(s) ? (compute_ == DType::f64 ? 2 * s : s) : 0);
      }
    } catch (const Error& e) {
      if (e.code() != "reference.primitive") throw;
      active_ = false;  // a primitive without an error rule: the budget alone
    }
  }
  const ops::Op& op_;
  const std::vector<Source>& in_;
  DType compute_;
  ops::Recipe recipe_;
  std::vector<bool> given_;
  std::vector<double> slack_;
  bool active_ = false;
};

// Operators with integer division fail on a zero divisor instead of computing.
bool divides_integers(const ops::Op& op) {
  return op.args.size() == 2 &&
         (op.lower_int.find("idiv_") != std::string::npos || op.lower_int.find("irem") != std::string::npos ||
          op.lower_int.find("imod_") != std::string::npos);
}

Array run_integers(const Node& node, const Type& type, const std::vector<Source>& in, const Attrs& attrs, DType arguments,
                   const Policy& policy) {
  const ops::Op& op = *node.op;
  if (!op.exact) fail("reference.op", "{} has no integer meaning in the table", op.name);
  const std::vector<std::int64_t> sizes = constant_sizes(type.sizes);
  const std::int64_t count = element_count(sizes);
  Builder out(type.dtype, sizes, count);
  const bool divides = divides_integers(op), checks = op.lower_int.find("check_index") != std::string::npos;
  std::array<std::int64_t, kMaxArgs> x;
  const auto call = [&] {
    if (divides && x[1] == 0) fail("call.division_by_zero", "{}: integer division by zero", op.name);
    if (checks && (x[0] < 0 || x[0] >= x[1])) fail("call.index_range", "{}: index {} is not in [0, {})", op.name, x[0], x[1]);
    return op.exact(std::span<const std::int64_t>(x.data(), in.size()), attrs, arguments);
  };
  for (std::int64_t i = 0; i < count; ++i) {
    std::array<std::int64_t, kMaxArgs> lo, hi;
    bool open = false, narrow = true;
    for (std::size_t k = 0; k < in.size(); ++k) {
      const Source& s = in[k];
      const IntBall b = s.array ? int_ball_of(*s.array, s.place(i), arguments) : IntBall{s.integer, s.integer, s.integer};
      x[k] = b.v;
      lo[k] = b.lo;
      hi[k] = b.hi;
      open = open || lo[k] != hi[k];
      narrow = narrow && hi[k] >= lo[k] && static_cast<std::uint64_t>(hi[k]) - static_cast<std::uint64_t>(lo[k]) <= 1;
    }
    const std::int64_t v = call();
    std::int64_t low = v, high = v;
    if (open && narrow) {
      const std::array<std::int64_t, kMaxArgs> keep = x;
      for (std::size_t corner = 0; corner < (std::size_t{1} << in.size()); ++corner) {
        for (std::size_t k = 0; k < in.size(); ++k) x[k] = corner >> k & 1 ? hi[k] : lo[k];
        if (divides && x[1] == 0) continue;
        const std::int64_t r = call();
        low = std::min(low, r);
        high = std::max(high, r);
      }
      x = keep;
    } else if (open) {
      low = int_min(is_float(type.dtype) ? arguments : type.dtype);
      high = int_max(is_float(type.dtype) ? arguments : type.dtype);
    }
    if (!is_float(type.dtype)) {
      const std::int64_t wv = wrap(type.dtype, v), wl = wrap(type.dtype, low), wh = wrap(type.dtype, high);
      const bool wrapped = wl > wv || wh < wv;
      out.set_int(i, wv, wrapped ? int_min(type.dtype) : wl, wrapped ? int_max(type.dtype) : wh);
    } else {
      Ball b{static_cast<double>(v), static_cast<double>(low), static_cast<double>(high)};
      // Integers beyond the mantissa: to f32 in one rounding, and on from there as eager does.
      if (type.dtype != DType::f64) b = {static_cast<float>(v), static_cast<float>(low), static_cast<float>(high)};
      round_ends(type.dtype, b);
      b.v = b.point() ? b.lo : b.v;
      store(out, type.dtype, i, b, open, policy);
    }
  }
  return out.finish();
}

}  // namespace

std::vector<Array> run_pointwise(const Graph& g, const Node& node, const std::vector<Argument>& args, const Policy& policy) {
  const ops::Op& op = *node.op;
  const Type& type = g.values[static_cast<std::size_t>(node.results[0])].type;
  const DType arguments = argument_type(g, node), compute = compute_type(arguments);
  if (args.size() > kMaxArgs) fail("reference.op", "{} has more than {} arguments", op.name, kMaxArgs);
  const std::vector<std::int64_t> sizes = constant_sizes(type.sizes);
  const std::vector<Source> in = sources(node, args, sizes, compute, arguments);
  const Attrs attrs = attributes_in(node, op.decides ? arguments : compute);
  if (!is_float(arguments)) return {run_integers(node, type, in, attrs, arguments, policy)};
  if (!op.fp64) fail("reference.op", "{} has no fp64 meaning in the table", op.name);

  const std::int64_t count = element_count(sizes);
  const bool is_cast = op.type == ops::TypeRule::attr_dtype;
  const bool to_number = is_float(type.dtype);
  const DType rounding = is_cast && to_number ? type.dtype : compute;
  // trunc(a / b) truncates a rounded quotient: just below an integer it may be that integer.
  const bool inner_decision = op.lower.starts_with("trunc(") && op.lower.find('/') != std::string::npos;
  Builder out(type.dtype, sizes, count);
  Evaluation eval(op, attrs, in.size(), branches_of(op, args, attrs, compute), !args.empty() && args.back().number != nullptr);
  for (std::size_t k = 0; k < in.size(); ++k) eval.ends_only[k] = in[k].ends_only;
  OwnRounding own_rounding(node, args, in, attrs, compute);
  std::array<bool, kMaxArgs> flags{};
  for (std::int64_t i = 0; i < count; ++i) {
    bool any_flag = false;
    double spread = 0;
    for (std::size_t k = 0; k < in.size(); ++k) {
      flags[k] = false;
      eval.args[k] = element(in[k], i, compute, flags[k]);
      any_flag = any_flag || flags[k];
      if (!eval.args[k].point()) spread = std::max(spread, eval.args[k].hi - eval.args[k].lo);
    }
    Ball r;
    r.v = eval.at_values();
    if (policy.model) {
      r.v = round_to(type.dtype, round_to(rounding, r.v));
      r.lo = r.hi = r.v;
      store(out, type.dtype, i, r, false, policy);
      continue;
    }
    if (!to_number && type.dtype == DType::boolean) {
      double certain = 0;
      const bool decided = eval.agrees(certain);
      r = decided ? Ball{certain, certain, certain} : Ball{r.v, 0, 1};
      store(out, type.dtype, i, r, any_flag && !decided, policy);
      continue;
    }
    eval.range(r.lo, r.hi);
    bool undecided = false;
    if (any_flag) {
      // Does the result depend on the flagged arguments at all (the branch not taken does not)?
      Ball pinned = r;
      const std::array<Ball, kMaxArgs> keep = eval.args;
      for (std::size_t k = 0; k < in.size(); ++k) {
        if (flags[k]) eval.args[k].lo = eval.args[k].hi = eval.args[k].v;
      }
      eval.range(pinned.lo, pinned.hi);
      eval.args = keep;
      const double own = std::max(pinned.hi - pinned.lo, 4 * ulp_of(compute, pinned.hi));
      const bool any_float_flag = [&] {
        for (std::size_t k = 0; k < in.size(); ++k) {
          if (flags[k] && !in[k].ends_only) return true;
        }
        return false;
      }();
      const bool depends = !(r.lo == pinned.lo && r.hi == pinned.hi);
      undecided = depends && (any_float_flag || !(r.hi - r.lo <= 4 * own));
    }
    if (inner_decision) {
      const std::array<Ball, kMaxArgs> keep = eval.args;
      const double away = 1 + (compute == DType::f64 ? 0x1p-53 : 0x1p-24);
      eval.args[0].lo *= away;
      eval.args[0].hi *= away;
      spread = std::max(spread, 4 * ulp_of(compute, eval.args[0].v));
      double lo = 0, hi = 0;
      eval.range(lo, hi);
      eval.args = keep;
      if (!std::isnan(lo) && !std::isnan(hi) && !std::isnan(r.lo)) {
        r.lo = std::min(r.lo, lo);
        r.hi = std::max(r.hi, hi);
      }
    }
    if (op.decides && to_number && !is_cast && r.hi - r.lo > 16 * spread + 4 * ulp_of(compute, r.v)) undecided = true;
    const double slack = policy.model ? 0 : own_rounding(i, count);
    if (std::isinf(slack)) {
      r.lo = -kInfinity;
      r.hi = kInfinity;
      undecided = true;
    } else if (slack > 0) {
      r.lo -= slack;
      r.hi += slack;
    }
    // The C library's function behind an fp64 value is off by as much as the kernel's.
    const double budget = op.ulp_in(compute), own = compute == DType::f64 && budget > 0.5 ? 1 : 0;
    settle(rounding, is_cast ? 0.5 : budget + own, r, undecided);
    if (is_cast && to_number && r.point())
      r.v = r.lo;  // the user's cast rounds (R2)
    else if (is_cast && to_number)
      r.v = std::clamp(round_to(rounding, r.v), r.lo, r.hi);
    store(out, type.dtype, i, r, undecided, policy);
  }
  return {out.finish()};
}

}  // namespace fuselab::reference
