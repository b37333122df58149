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
#include "fuselab/reference/operators.h"
#include "fuselab/reference/recipe_error.h"

namespace fuselab::reference {
namespace {

constexpr std::size_t kMaxArgs = 8;

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

/// Evaluates a formula over the box of its arguments' intervals.
class Evaluation {
 public:
  /// `thresholds`: numbers that decide about the formula's branch.
  Evaluation(const ops::Op& op, const Attrs& attrs, std::size_t count, std::vector<double> thresholds)
      : op_(op), attrs_(attrs), count_(count), thresholds_(std::move(thresholds)) {}

  std::array<Ball, kMaxArgs> args;
  std::array<bool, kMaxArgs> ends_only{};

  double at_values() {
    std::array<double, kMaxArgs> x;
    for (std::size_t k = 0; k < count_; ++k) x[k] = args[k].v;
    return call(x);
  }
  /// Smallest and largest value over the box, with a second-order margin between the sample points. NaN ends: NaN everywhere.
  void range(double& lo, double& hi) {
    std::array<double, kMaxArgs> x;
    std::array<std::size_t, kMaxArgs> open;
    std::size_t n = 0;
    for (std::size_t k = 0; k < count_; ++k) {
      x[k] = args[k].lo;
      if (!args[k].point() || zero_of_either_sign(args[k])) open[n++] = k;
    }
    if (n == 0) {
      lo = hi = call(x);
      return;
    }
    if (op_.period > 0 && !within_a_period(lo, hi)) return;
    low_ = kInfinity;
    high_ = -kInfinity;
    margin_ = 0;
    nans_ = numbers_ = 0;
    minus_zero_ = plus_zero_ = false;
    sample(x, open, n);
    if (numbers_ == 0) {
      // NaN at every sample is proof only where no argument is open without limit.
      bool limited = true;
      for (std::size_t j = 0; j < n; ++j) {
        const Ball& b = args[open[j]];
        // A whole number between the ends is a point of its own to pow.
        limited = limited && std::isfinite(b.lo) && std::isfinite(b.hi) && !(std::ceil(b.lo) <= std::floor(b.hi));
      }
      for (std::size_t k = 0; k < count_; ++k) limited = limited || std::isnan(args[k].lo);
      lo = std::nan("");
      hi = limited ? lo : kInfinity;
      return;
    }
    lo = nans_ > 0 ? std::nan("") : low_ - margin_;
    hi = high_ + margin_;
    // Both signs of zero stay visible: dividing by one of them gives the other infinity.
    if (lo == 0) lo = minus_zero_ ? -0.0 : 0.0;
    if (hi == 0) hi = plus_zero_ ? 0.0 : -0.0;
  }
  /// All results at the ends, at 0 and NaN inside an interval and where two intervals overlap: what a comparison can hang on.
  bool agrees(double& result) {
    std::array<double, kMaxArgs> x;
    std::array<std::vector<double>, kMaxArgs> choices;
    bool open = false;
    for (std::size_t k = 0; k < count_; ++k) {
      choices[k] = {args[k].lo};
      if (args[k].point() && !zero_of_either_sign(args[k])) continue;
      open = true;
      choices[k].push_back(args[k].hi);
      if (args[k].lo < 0 && args[k].hi > 0) choices[k].push_back(0);
      if (args[k].lo == -kInfinity && args[k].hi == kInfinity) choices[k].push_back(std::nan(""));  // settle(): a number or NaN
    }
    if (open && count_ >= 2) {
      for (std::size_t k = 0; k + 1 < count_; ++k) {
        const double low = std::max(args[k].lo, args[k + 1].lo), high = std::min(args[k].hi, args[k + 1].hi);
        if (low > high) continue;
        choices[k].push_back(low);
        choices[k + 1].push_back(low);
      }
    }
    std::size_t combinations = 1;
    for (std::size_t k = 0; k < count_; ++k) combinations *= choices[k].size();
    for (std::size_t c = 0; c < combinations; ++c) {
      std::size_t rest = c;
      for (std::size_t k = 0; k < count_; ++k) {
        x[k] = choices[k][rest % choices[k].size()];
        rest /= choices[k].size();
      }
      const double r = call(x);
      if (c == 0) result = r;
      if (r != result && !(std::isnan(r) && std::isnan(result))) return false;
    }
    return true;
  }

 private:
  double call(const std::array<double, kMaxArgs>& x) { return op_.fp64(std::span<const double>(x.data(), count_), attrs_); }
  void take(double y) {
    if (std::isnan(y)) {
      ++nans_;
    } else {
      ++numbers_;
      low_ = std::min(low_, y);
      high_ = std::max(high_, y);
      if (y == 0) (std::signbit(y) ? minus_zero_ : plus_zero_) = true;
    }
  }
  static bool zero_of_either_sign(const Ball& b) { return b.lo == 0 && b.hi == 0 && std::signbit(b.lo) != std::signbit(b.hi); }
  void sample(std::array<double, kMaxArgs>& x, const std::array<std::size_t, kMaxArgs>& open, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) {  // an interval without ends stands for a number or NaN (settle)
      const Ball& b = args[open[j]];
      if (b.lo != -kInfinity || b.hi != kInfinity) continue;
      x[open[j]] = std::nan("");
      take(call(x));
      x[open[j]] = b.lo;
    }
    if (!op_.monotone) sample_branches(x, open, n);
    if (op_.monotone || n > 3) {
      sample_corners(x, open, n);
      return;
    }
    // A grid over the open arguments: wide intervals of a single one are sampled more finely (a period of sin).
    const Ball& first = args[open[0]];
    const double scale = op_.period > 0 ? op_.period : std::max(1.0, std::fabs(first.lo));
    const bool wide = n == 1 && first.hi - first.lo > 1e-3 * scale;
    std::array<std::size_t, kMaxArgs> points{};
    std::size_t total = 1;
    for (std::size_t j = 0; j < n; ++j) total *= points[j] = ends_only[open[j]] ? 2 : wide ? 33 : 3;
    std::array<double, 33> y;
    for (std::size_t c = 0; c < total; ++c) {
      std::size_t rest = c;
      for (std::size_t j = 0; j < n; ++j) {
        const Ball& b = args[open[j]];
        const std::size_t p = rest % points[j], last = points[j] - 1;
        rest /= points[j];
        x[open[j]] = p == 0      ? b.lo
                     : p == last ? b.hi
                                 : b.lo + (b.hi - b.lo) * (static_cast<double>(p) / static_cast<double>(last));
      }
      y[c] = call(x);
      take(y[c]);
    }
    // Between three equidistant points a parabola passes its largest sample by at most an eighth of the second difference.
    std::size_t step = 1;
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t c = 0; points[j] > 2 && c < total; ++c) {
        const std::size_t p = c / step % points[j];
        if (p == 0 || p + 1 == points[j]) continue;
        const double bend = std::fabs(y[c - step] - 2 * y[c] + y[c + step]);
        if (bend > margin_ && !ends_only[open[j]]) margin_ = bend;
      }
      step *= points[j];
    }
    margin_ *= 0.5;
    // Bends of the size of double's own rounding are noise.
    if (margin_ < 8 * ulp_of(DType::f64, std::max(std::fabs(low_), std::fabs(high_)))) margin_ = 0;
  }

  /// A periodic function takes all its values in one period: samples further apart than that would say nothing. Returns false
  /// when a pole lies in the interval, so that any value is possible.
  bool within_a_period(double& lo, double& hi) {
    Ball& b = args[0];
    if (!std::isfinite(b.lo) || !std::isfinite(b.hi)) return true;
    if (!op_.monotone) {
      b.hi = std::min(b.hi, b.lo + op_.period);
      return true;
    }
    std::array<double, kMaxArgs> x;
    x[0] = b.lo;
    const double first = call(x);
    x[0] = b.hi;
    if (b.hi - b.lo < op_.period && first <= call(x)) return true;
    lo = -kInfinity;
    hi = kInfinity;
    return false;
  }
  void sample_corners(std::array<double, kMaxArgs>& x, const std::array<std::size_t, kMaxArgs>& open, std::size_t n,
                      std::size_t held = kMaxArgs) {
    for (std::size_t corner = 0; corner < (std::size_t{1} << n); ++corner) {
      for (std::size_t j = 0; j < n; ++j) {
        if (j != held) x[open[j]] = corner >> j & 1 ? args[open[j]].hi : args[open[j]].lo;
      }
      take(call(x));
    }
  }
  /// A branch between two thresholds may lie between all points of a grid (the gradient of hardsigmoid is 0 but for [-3, 3]): at
  /// each threshold, just before and just behind it. And at the values themselves, where they lie in the box.
  void sample_branches(std::array<double, kMaxArgs>& x, const std::array<std::size_t, kMaxArgs>& open, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) {
      const Ball& b = args[open[j]];
      for (const double threshold : thresholds_) {
        if (ends_only[open[j]] || threshold < b.lo || threshold > b.hi) continue;
        for (const double p : {std::nextafter(threshold, b.lo), threshold, std::nextafter(threshold, b.hi)}) {
          x[open[j]] = p;
          sample_corners(x, open, n, j);
        }
      }
    }
    bool inside = true;
    for (std::size_t j = 0; j < n; ++j) {
      const Ball& b = args[open[j]];
      inside = inside && b.lo <= b.v && b.v <= b.hi;
      x[open[j]] = b.v;
    }
    if (inside) take(call(x));
  }

  const ops::Op& op_;
  const Attrs& attrs_;
  std::size_t count_;
  std::vector<double> thresholds_;
  double low_ = 0, high_ = 0, margin_ = 0;
  int nans_ = 0, numbers_ = 0;
  bool minus_zero_ = false, plus_zero_ = false;
};

Ball element(const Source& s, std::int64_t i, DType compute, bool& flagged) {
  if (!s.array) return {s.number, s.number, s.number};
  const std::int64_t at = s.place(i);
  Ball b = ball_of(*s.array, at, compute);
  if (s.round_first) round_for_decision(s.array->dtype, b);
  flagged = s.array->flagged(at);
  return b;
}

void collect_thresholds(const ops::RecipeNode& node, std::vector<double>& out) {
  using Kind = ops::RecipeNode::Kind;
  const bool compares =
      node.kind == Kind::binary && (node.word[0] == '<' || node.word[0] == '>' || node.word == "==" || node.word == "!=");
  for (const ops::RecipeNode& a : node.args) {
    const bool minus = a.kind == Kind::unary && a.word == "-" && a.args[0].kind == Kind::number;
    const ops::RecipeNode& number = minus ? a.args[0] : a;
    if (compares && number.kind == Kind::number) out.push_back(minus ? -number.number : number.number);
    collect_thresholds(a, out);
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

/// 0 and the numbers with which the operator's recipe compares.
std::vector<double> thresholds_of(const ops::Op& op, const std::vector<Argument>& args, const Attrs& attrs, DType compute) {
  std::vector<double> out;
  if (op.monotone) return out;
  out.push_back(0);  // poles and signs
  if (op.lower.empty()) return out;
  const ops::Recipe recipe = ops::instantiate(op, states_of(args), attrs, compute);
  for (const ops::RecipeStatement& s : recipe.statements) collect_thresholds(s.value, out);
  for (const ops::RecipeNode& r : recipe.results) collect_thresholds(r, out);
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
  Evaluation eval(op, attrs, in.size(), thresholds_of(op, args, attrs, compute));
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
    if (slack > 0) {
      r.lo -= slack;
      r.hi += slack;
    }
    // The C library's function behind an fp64 value is off by as much as the kernel's.
    const double own = compute == DType::f64 && op.ulp > 0.5 ? 1 : 0;
    settle(rounding, is_cast ? 0.5 : op.ulp + own, r, undecided);
    if (is_cast && to_number && r.point())
      r.v = r.lo;  // the user's cast rounds (R2)
    else if (is_cast && to_number)
      r.v = std::clamp(round_to(rounding, r.v), r.lo, r.hi);
    store(out, type.dtype, i, r, undecided, policy);
  }
  return {out.finish()};
}

}  // namespace fuselab::reference
