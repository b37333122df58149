#include "fuselab/reference/recipe_error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "fuselab/core/error.h"

namespace fuselab::reference {
namespace {

using K = ops::RecipeNode::Kind;

double nan_max(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b); }
double nan_min(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b); }

/// A primitive of one argument: meaning and ULP budget.
struct Unary {
  double (*f)(double);
  double ulp;
};
const std::map<std::string, Unary>& unaries() {
  static const std::map<std::string, Unary> table = {
      {"exp", {[](double x) { return std::exp(x); }, 1}},
      {"exp_sum", {[](double x) { return std::exp(x); }, 1.5}},
      {"exp2", {[](double x) { return std::exp2(x); }, 1}},
      {"expm1", {[](double x) { return std::expm1(x); }, 1}},
      {"log", {[](double x) { return std::log(x); }, 1}},
      {"log2", {[](double x) { return std::log2(x); }, 1}},
      {"log10", {[](double x) { return std::log10(x); }, 1}},
      {"log1p", {[](double x) { return std::log1p(x); }, 1}},
      {"sqrt", {[](double x) { return std::sqrt(x); }, 0.5}},
      {"rsqrt", {[](double x) { return 1 / std::sqrt(x); }, 1.5}},
      {"recip", {[](double x) { return 1 / x; }, 0.5}},
      {"sin", {[](double x) { return std::sin(x); }, 1}},
      {"cos", {[](double x) { return std::cos(x); }, 1}},
      {"tan", {[](double x) { return std::tan(x); }, 1}},
      {"tanh", {[](double x) { return std::tanh(x); }, 1}},
      {"sigmoid", {[](double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }, 2}},
      {"erf", {[](double x) { return std::erf(x); }, 1}},
      {"erfc", {[](double x) { return std::erfc(x); }, 1.5}},
      {"sinh", {[](double x) { return std::sinh(x); }, 1.5}},
      {"cosh", {[](double x) { return std::cosh(x); }, 1.5}},
      {"asin", {[](double x) { return std::asin(x); }, 1.5}},
      {"acos", {[](double x) { return std::acos(x); }, 1.5}},
      {"atan", {[](double x) { return std::atan(x); }, 1.5}},
      {"asinh", {[](double x) { return std::asinh(x); }, 1.5}},
      {"acosh", {[](double x) { return std::acosh(x); }, 1.5}},
      {"atanh", {[](double x) { return std::atanh(x); }, 1.5}},
      {"abs", {[](double x) { return std::fabs(x); }, 0}},
      {"floor", {[](double x) { return std::floor(x); }, 0}},
      {"ceil", {[](double x) { return std::ceil(x); }, 0}},
      {"trunc", {[](double x) { return std::trunc(x); }, 0}},
      {"round", {[](double x) { return std::nearbyint(x); }, 0}},
      {"neg", {[](double x) { return -x; }, 0}},
  };
  return table;
}
struct Binary {
  double (*f)(double, double);
  double ulp;
};
const std::map<std::string, Binary>& binaries() {
  static const std::map<std::string, Binary> table = {
      {"quotient", {[](double a, double b) { return a / b; }, 1}},
      {"+", {[](double a, double b) { return a + b; }, 0.5}},
      {"-", {[](double a, double b) { return a - b; }, 0.5}},
      {"*", {[](double a, double b) { return a * b; }, 0.5}},
      {"/", {[](double a, double b) { return a / b; }, 0.5}},
      {"min", {nan_min, 0}},
      {"max", {nan_max, 0}},
      {"pow", {[](double a, double b) { return std::pow(a, b); }, 1.5}},
      {"fmod", {[](double a, double b) { return std::fmod(a, b); }, 0}},
      {"atan2", {[](double a, double b) { return std::atan2(a, b); }, 1.5}},
      {"copysign", {[](double a, double b) { return std::copysign(a, b); }, 0}},
  };
  return table;
}

/// Ends of f over corner values: NaN anywhere opens the interval unless all are NaN.
struct Hull {
  double lo = kInfinity, hi = -kInfinity;
  int nans = 0, numbers = 0;
  void take(double y) {
    if (std::isnan(y)) {
      ++nans;
      return;
    }
    ++numbers;
    lo = std::min(lo, y);
    hi = std::max(hi, y);
  }
  /// `proof`: NaN at all corners means NaN everywhere (all arguments are points, or one is NaN itself).
  Ball ball(double v, bool proof = true) const {
    if (numbers == 0 && proof) return {v, std::nan(""), std::nan("")};
    if (nans > 0) return {v, -kInfinity, kInfinity};
    return {v, lo, hi};
  }
};

/// An interval without ends stands for a number or NaN (settle), and NaN passes through every primitive that computes: also
/// through those that map all numbers into a smaller range (a square is no less than 0, a tanh no more than 1).
bool perhaps_nan(const Ball& b) { return b.lo == -kInfinity && b.hi == kInfinity; }

void widen(DType t, double ulp, Ball& b) {
  if (ulp == 0 || t == DType::boolean || std::isnan(b.lo)) return;
  const double slack = (t == DType::f64 ? ulp + 0.5 : ulp) * ulp_of(t, std::max(std::fabs(b.lo), std::fabs(b.hi)));
  if (!std::isfinite(slack)) return;
  if (b.lo != 0 || b.hi != 0) {
    b.lo = b.lo >= 0 ? std::max(0.0, b.lo - slack) : b.lo - slack;
    b.hi = b.hi <= 0 ? std::min(0.0, b.hi + slack) : b.hi + slack;
  }
  if (t == DType::f32) {  // what overflows in f32 is infinite there
    if (b.lo > float_format(t).max_finite) b.lo = kInfinity;
    if (b.hi < -float_format(t).max_finite) b.hi = -kInfinity;
    if (b.hi > float_format(t).max_finite) b.hi = kInfinity;
    if (b.lo < -float_format(t).max_finite) b.lo = -kInfinity;
  }
}

class Follower {
 public:
  Follower(std::map<std::string, RowBalls> names, DType compute, std::int64_t rows, std::int64_t n)
      : names_(std::move(names)), compute_(compute), rows_(rows), n_(n) {}

  std::vector<RowBalls> run(const ops::Recipe& recipe) {
    for (const ops::RecipeStatement& s : recipe.statements) {
      names_[s.name] = eval(s.value);
      meanings_[s.name] = &s.value;
    }
    std::vector<RowBalls> out;
    for (const ops::RecipeNode& r : recipe.results) out.push_back(eval(r));
    return out;
  }

 private:
  RowBalls number(double value, bool boolean) const {
    RowBalls r{true, boolean ? DType::boolean : compute_, {}};
    const double x = boolean ? value : round_to(compute_, value);
    r.at.assign(static_cast<std::size_t>(rows_), {x, x, x});
    return r;
  }
  static DType wider(DType a, DType b) {
    if (a == DType::boolean) return b;
    if (b == DType::boolean) return a;
    return a == DType::f64 || b == DType::f64 ? DType::f64 : a;
  }
  const Ball& pick(const RowBalls& r, std::size_t i) const {
    return r.at[r.per_row ? i / static_cast<std::size_t>(n_ ? n_ : 1) : i];
  }
  /// Calls f(i) for every element of the result; inputs are picked by i, so a result per row looks at the first of each.
  template <typename F>
  RowBalls map(bool per_row, DType type, F f) const {
    RowBalls out{per_row, type, {}};
    const std::int64_t count = per_row ? rows_ : rows_ * n_;
    out.at.resize(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) out.at[static_cast<std::size_t>(i)] = f(static_cast<std::size_t>(i));
    return out;
  }
  const Ball& get(const RowBalls& r, std::size_t i, bool result_per_row) const { return result_per_row ? r.at[i] : pick(r, i); }

  RowBalls apply(const Unary& u, const RowBalls& x) const {
    return map(x.per_row, x.type, [&](std::size_t i) {
      const Ball& b = x.at[i];
      if (perhaps_nan(b)) return Ball{u.f(b.v), -kInfinity, kInfinity};
      Hull hull;
      const double v = u.f(b.v), lo = u.f(b.lo), hi = b.point() ? lo : u.f(b.hi);
      hull.take(lo);
      hull.take(hi);
      if (!b.point()) hull.take(v);
      Ball r = hull.ball(v, b.point());
      if (!b.point() && std::isfinite(r.lo) && std::isfinite(r.hi)) {
        const double bend = 0.5 * std::fabs(lo - 2 * u.f(0.5 * (b.lo + b.hi)) + hi);
        if (std::isfinite(bend) && bend > 1e-15 * std::fabs(v)) {
          r.lo -= bend;
          r.hi += bend;
        }
      }
      widen(x.type, u.ulp, r);
      return r;
    });
  }
  RowBalls apply(const Binary& f, const RowBalls& x, const RowBalls& y, DType type) const {
    const bool per_row = x.per_row && y.per_row;
    return map(per_row, type, [&](std::size_t i) {
      const Ball &a = get(x, i, per_row), &b = get(y, i, per_row);
      if (!std::isnan(a.lo) && !std::isnan(b.lo) && (perhaps_nan(a) || perhaps_nan(b))) {
        return Ball{f.f(a.v, b.v), -kInfinity, kInfinity};
      }
      Hull hull;
      hull.take(f.f(a.lo, b.lo));
      if (!a.point()) hull.take(f.f(a.hi, b.lo));
      if (!b.point()) hull.take(f.f(a.lo, b.hi));
      if (!a.point() && !b.point()) hull.take(f.f(a.hi, b.hi));
      Ball r = hull.ball(f.f(a.v, b.v), (a.point() && b.point()) || std::isnan(a.lo) || std::isnan(b.lo));
      widen(type, f.ulp, r);
      return r;
    });
  }
  RowBalls quotient(const RowBalls& x, const RowBalls& y, DType type) const {
    RowBalls r = apply(binaries().at("/"), x, y, type);
    for (std::size_t i = 0; i < r.at.size(); ++i) {
      const Ball& d = get(y, i, r.per_row);
      if (!d.point() && d.lo <= 0 && d.hi >= 0) r.at[i].lo = -kInfinity, r.at[i].hi = kInfinity;
    }
    return r;
  }
  RowBalls compare(const std::string& op, const RowBalls& x, const RowBalls& y) const {
    const auto test = [&](double a, double b) {
      if (op == "<") return a < b;
      if (op == "<=") return a <= b;
      if (op == ">") return a > b;
      if (op == ">=") return a >= b;
      return op == "==" ? a == b : a != b;
    };
    const bool per_row = x.per_row && y.per_row;
    return map(per_row, DType::boolean, [&](std::size_t i) {
      const Ball &a = get(x, i, per_row), &b = get(y, i, per_row);
      const double v = test(a.v, b.v);
      Hull hull;
      for (const double p : {a.lo, a.hi}) {
        for (const double q : {b.lo, b.hi}) hull.take(test(p, q));
      }
      const double low = std::max(a.lo, b.lo), high = std::min(a.hi, b.hi);
      if (low <= high) hull.take(test(low, low));
      return hull.ball(v);
    });
  }
  RowBalls logic(const std::string& op, const RowBalls& x, const RowBalls& y) const {
    const bool per_row = x.per_row && y.per_row;
    return map(per_row, DType::boolean, [&](std::size_t i) {
      const Ball &a = get(x, i, per_row), &b = get(y, i, per_row);
      if (op == "&") return Ball{a.v * b.v, a.lo * b.lo, a.hi * b.hi};
      return Ball{std::max(a.v, b.v), std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    });
  }
  RowBalls select(const RowBalls& c, const RowBalls& x, const RowBalls& y) const {
    const bool per_row = c.per_row && x.per_row && y.per_row;
    return map(per_row, wider(x.type, y.type), [&](std::size_t i) {
      const Ball &cond = get(c, i, per_row), &a = get(x, i, per_row), &b = get(y, i, per_row);
      if (cond.lo == cond.hi) return cond.lo != 0 ? a : b;
      Hull hull;
      for (const double e : {a.lo, a.hi, b.lo, b.hi}) hull.take(e);
      return hull.ball(cond.v != 0 ? a.v : b.v);
    });
  }
  RowBalls fused(const RowBalls& x, const RowBalls& y, const RowBalls& z) const {
    const DType type = wider(wider(x.type, y.type), z.type);
    RowBalls product = apply(Binary{binaries().at("*").f, 0}, x, y, type);
    RowBalls sum = apply(binaries().at("+"), product, z, type);
    for (std::size_t i = 0; i < sum.at.size(); ++i) {  // 0 added to a number rounds nothing
      const Ball &p = get(product, i, sum.per_row), &b = get(z, i, sum.per_row);
      if (p.lo == 0 && p.hi == 0) sum.at[i] = {sum.at[i].v, b.lo, b.hi};
    }
    return sum;
  }
  RowBalls cast(const std::string& to, const RowBalls& x) const {
    const DType t = parse_dtype(to);
    if (t == DType::f64 || t == x.type || (t == DType::f32 && x.type == DType::boolean)) {
      RowBalls out = x;
      out.type = t;
      return out;
    }
    if (t == DType::f32) return apply(Unary{[](double v) { return v; }, 0.5}, retyped(x, t));
    if (is_low_precision(t)) {
      RowBalls out = x;
      for (Ball& b : out.at) round_ends(t, b);
      return out;
    }
    fail("reference.primitive", "cast_{} has no error rule in a reduction", to);
  }
  static RowBalls retyped(RowBalls x, DType t) {
    x.type = t;
    return x;
  }
  RowBalls reduce(const std::string& word, const RowBalls& given) const {
    RowBalls spread;
    const RowBalls* x = &given;
    if (given.per_row) {
      spread = map(false, given.type, [&](std::size_t i) { return pick(given, i); });
      x = &spread;
    }
    const bool wide = word == "rsum64";
    RowBalls out{true, wide ? DType::f64 : x->type, std::vector<Ball>(static_cast<std::size_t>(rows_))};
    for (std::int64_t row = 0; row < rows_; ++row) {
      out.at[static_cast<std::size_t>(row)] = reduce_row(wide ? "rsum" : word, out.type, x->at.data() + row * n_);
    }
    if (word == "rany" || word == "rall") out.type = DType::boolean;
    return out;
  }
  Ball reduce_row(const std::string& word, DType type, const Ball* x) const {
    if (word == "rsum") return sum(type, x);
    if (word == "rprod") {
      // |computed - exact| <= prod(|x| + r)(1 + u)^n - prod(|x|).
      long double v = 1, far = 1, near = 1;
      bool points = true;
      for (std::int64_t j = 0; j < n_; ++j) {
        v *= x[j].v;
        far *= std::max(std::fabs(x[j].lo), std::fabs(x[j].hi));
        near *= std::fabs(x[j].v);
        points = points && x[j].point();
      }
      const double unit = type == DType::f64 ? 0x1p-53 : 0x1p-24, value = static_cast<double>(v);
      if (!std::isfinite(value) || !std::isfinite(static_cast<double>(far))) {
        return points ? Ball{value, value, value} : Ball{value, -kInfinity, kInfinity};
      }
      const double error = static_cast<double>(far * std::expm1(static_cast<long double>(n_) * unit) + (far - near)) +
                           static_cast<double>(n_) * ulp_of(type, 0);
      if (!partials_fit(type, x)) return {value, -kInfinity, kInfinity};
      return {value, value - error, value + error};
    }
    if (word == "rmax" || word == "rmin" || word == "rfirstmax" || word == "rfirstmin" || word == "rany" || word == "rall") {
      const bool most = word == "rmax" || word == "rfirstmax" || word == "rany";
      const double start = word == "rany" ? 0 : word == "rall" ? 1 : most ? -kInfinity : kInfinity;
      Ball r{start, start, start};
      const auto f = most ? nan_max : nan_min;
      bool open = false;
      for (std::int64_t j = 0; j < n_; ++j) {
        r = {f(r.v, x[j].v), f(r.lo, x[j].lo), f(r.hi, x[j].hi)};
        open = open || perhaps_nan(x[j]);
      }
      return open && !std::isnan(r.lo) ? Ball{r.v, -kInfinity, kInfinity} : r;
    }
    if (word == "rargmax" || word == "rargmin") return position(word == "rargmax" ? 1 : -1, x);
    fail("reference.primitive", "reduction {} has no error rule", word);
  }
  /// A product's partial results may overflow or vanish on the way although the result does not. A factor of 0 makes vanishing
  /// harmless, but infinity times 0 is NaN.
  bool partials_fit(DType type, const Ball* x) const {
    long double low = 0, high = 0;
    bool zero = false;
    for (std::int64_t j = 0; j < n_; ++j) {
      const double far = std::max(std::fabs(x[j].lo), std::fabs(x[j].hi));
      if (far > 1) high += std::log2(static_cast<long double>(far));
      zero = zero || x[j].v == 0;
      if (x[j].v != 0 && std::fabs(x[j].v) < 1) low += std::log2(std::fabs(static_cast<long double>(x[j].v)));
    }
    const FloatFormat format = float_format(type);
    return high < -format.min_exponent && (zero || low > format.min_exponent);
  }
  Ball sum(DType type, const Ball* x) const {
    long double lo = 0, hi = 0;
    bool positive = true, negative = true;
    for (std::int64_t j = 0; j < n_; ++j) {
      lo += x[j].lo;
      hi += x[j].hi;
      positive = positive && x[j].lo >= 0;
      negative = negative && x[j].hi <= 0;
    }
    const TreeSum tree = tree_sum(type, x, n_);
    Ball r{tree.value, static_cast<double>(lo) - tree.error, static_cast<double>(hi) + tree.error};
    if (type == DType::f64 && std::isfinite(tree.value)) {
      const double own = tree.error > 0 ? ulp_of(type, tree.value) : 0;
      r.lo -= own;
      r.hi += own;
    }
    if (std::isnan(r.lo) != std::isnan(r.hi)) return {r.v, -kInfinity, kInfinity};
    if (positive) r.lo = std::max(r.lo, 0.0);  // roundings of sums of one sign keep it
    if (negative) r.hi = std::min(r.hi, 0.0);
    return r;
  }
  /// First of ties, a NaN wins: certain when the winner beats every other at the worse end.
  Ball position(int sign, const Ball* x) const {
    std::int64_t best = 0;
    const auto above = [&](double a, double b) { return std::isnan(a) ? !std::isnan(b) : sign > 0 ? a > b : a < b; };
    for (std::int64_t j = 1; j < n_; ++j) {
      if (above(x[j].v, x[best].v)) best = j;
    }
    const double worst = sign > 0 ? x[best].lo : x[best].hi;
    bool certain = std::isnan(x[best].v) == std::isnan(worst);
    for (std::int64_t j = 0; j < n_ && certain && !std::isnan(worst); ++j) {
      if (j == best) continue;
      const double rival = sign > 0 ? x[j].hi : x[j].lo;
      if (std::isnan(rival) || perhaps_nan(x[j]) || above(rival, worst) || (rival == worst && j < best)) certain = false;
    }
    const auto v = static_cast<double>(best);
    return certain ? Ball{v, v, v} : Ball{v, 0, static_cast<double>(n_ - 1)};
  }

  RowBalls eval(const ops::RecipeNode& node) const {
    switch (node.kind) {
      case K::number:
        return number(node.number, node.boolean);
      case K::name: {
        if (node.word == "N") return number(static_cast<double>(n_), false);
        if (node.word == "inf") return number(kInfinity, false);
        if (node.word == "nan") return number(std::nan(""), false);
        const auto it = names_.find(node.word);
        if (it == names_.end()) fail("reference.primitive", "{} is no argument or statement of the recipe", node.word);
        return it->second;
      }
      case K::unary:
        if (node.word == "-") return apply(unaries().at("neg"), eval(node.args[0]));
        return complement(eval(node.args[0]));
      case K::binary: {
        if (const RowBalls* high = high_part(node)) return lost(*high);
        if (puts_back(node)) return number(0, false);
        RowBalls r = binary(node.word, eval(node.args[0]), eval(node.args[1]));
        const bool same = node.args[0].kind == K::name && node.args[1].kind == K::name && node.args[0].word == node.args[1].word;
        if (node.word == "*" && same) square(r);
        return r;
      }
      case K::call:
        return call(node);
      case K::text:
        break;
    }
    fail("reference.primitive", "the text \"{}\" has no value", node.word);
  }
  /// `x - h` where the statement h is cast_f32(x): h. The two intervals know nothing of each other, the numbers do.
  const RowBalls* high_part(const ops::RecipeNode& node) const {
    const ops::RecipeNode &x = node.args[0], &h = node.args[1];
    if (node.word != "-" || x.kind != K::name || h.kind != K::name) return nullptr;
    const auto meaning = meanings_.find(h.word);
    if (meaning == meanings_.end()) return nullptr;
    const ops::RecipeNode& cast = *meaning->second;
    if (cast.kind != K::call || cast.word != "cast_f32" || cast.args[0].kind != K::name || cast.args[0].word != x.word)
      return nullptr;
    return &names_.at(h.word);
  }
  /// `x - (d + m)` where the statement d is `x - m`: what d's rounding lost. It brings a result nearer to where it would be
  /// without that rounding, so the interval that d's rounding widened holds it as well: nothing is taken off or added.
  bool puts_back(const ops::RecipeNode& node) const {
    const ops::RecipeNode &x = node.args[0], &sum = node.args[1];
    if (node.word != "-" || x.kind != K::name || sum.kind != K::binary || sum.word != "+") return false;
    const ops::RecipeNode &d = sum.args[0], &m = sum.args[1];
    const auto meaning = meanings_.find(d.word);
    if (d.kind != K::name || m.kind != K::name || meaning == meanings_.end()) return false;
    const ops::RecipeNode& difference = *meaning->second;
    return difference.kind == K::binary && difference.word == "-" && difference.args[0].kind == K::name &&
           difference.args[0].word == x.word && difference.args[1].kind == K::name && difference.args[1].word == m.word;
  }
  /// What rounding to `high` left over: half an ulp at most, exact in f64.
  RowBalls lost(const RowBalls& high) const {
    return map(high.per_row, DType::f64, [&](std::size_t i) {
      const Ball& b = high.at[i];
      const double most = 0.5 * ulp_of(DType::f32, std::max(std::fabs(b.lo), std::fabs(b.hi)));
      if (std::isnan(b.lo) || (b.lo == b.hi && std::isinf(b.lo))) return Ball{std::nan(""), std::nan(""), std::nan("")};
      if (!std::isfinite(most)) return Ball{std::isfinite(b.v) ? 0 : std::nan(""), -kInfinity, kInfinity};
      return Ball{0, -most, most};
    });
  }
  RowBalls complement(RowBalls x) const {
    for (Ball& b : x.at) b = {1 - b.v, 1 - b.hi, 1 - b.lo};
    return x;
  }
  RowBalls binary(const std::string& op, const RowBalls& x, const RowBalls& y) const {
    if (op == "&" || op == "|") return logic(op, x, y);
    if (op == "<" || op == "<=" || op == ">" || op == ">=" || op == "==" || op == "!=") return compare(op, x, y);
    const DType type = wider(x.type, y.type);
    if (op == "/") return quotient(x, y, type);
    return apply(binaries().at(op), x, y, type);
  }
  /// x * x is not negative, which the corners of two independent intervals would allow.
  static void square(RowBalls& product) {
    for (Ball& b : product.at) {
      if (b.lo < 0 && !perhaps_nan(b)) b.lo = 0;
    }
  }
  RowBalls call(const ops::RecipeNode& node) const {
    std::vector<RowBalls> args;
    for (const ops::RecipeNode& a : node.args) args.push_back(eval(a));
    const std::string& word = node.word;
    if (word.size() > 2 && word[0] == 'r' && args.size() == 1 && !unaries().count(word)) return reduce(word, args[0]);
    if (word == "select") return select(args[0], args[1], args[2]);
    if (word == "fma") return fused(args[0], args[1], args[2]);
    if (word.starts_with("cast_")) return cast(word.substr(5), args[0]);
    if (word == "isnan" || word == "isinf" || word == "isfinite") {
      return map(args[0].per_row, DType::boolean, [&](std::size_t i) {
        const Ball& b = args[0].at[i];
        const auto test = [&](double v) -> double {
          return word == "isnan" ? std::isnan(v) : word == "isinf" ? std::isinf(v) : std::isfinite(v);
        };
        Hull hull;
        hull.take(test(b.lo));
        hull.take(test(b.hi));
        if (!b.point()) hull.take(test(0));  // between infinite ends lie numbers, and without limit perhaps a NaN
        if (b.lo == -kInfinity && b.hi == kInfinity) hull.take(test(std::nan("")));
        return hull.ball(test(b.v));
      });
    }
    if (const auto it = unaries().find(word); it != unaries().end() && args.size() == 1) return apply(it->second, args[0]);
    if (const auto it = binaries().find(word); it != binaries().end() && args.size() == 2) {
      return apply(it->second, args[0], args[1], wider(args[0].type, args[1].type));
    }
    fail("reference.primitive", "primitive {} has no error rule; add it to reference/recipe_error.cpp", word);
  }

  std::map<std::string, RowBalls> names_;
  std::map<std::string, const ops::RecipeNode*> meanings_;  ///< of the statements that names_ has
  DType compute_;
  std::int64_t rows_, n_;
};

}  // namespace

std::vector<RowBalls> follow_recipe(const ops::Recipe& recipe, std::map<std::string, RowBalls> arguments, DType compute,
                                    std::int64_t rows, std::int64_t n) {
  return Follower(std::move(arguments), compute, rows, n).run(recipe);
}

}  // namespace fuselab::reference
