// Arithmetic on Expr: sums and products, and the simplifications of division, modulo, min and max.
#include <algorithm>
#include <numeric>

#include "fuselab/core/expr.h"
#include "fuselab/core/expr_rep.h"

namespace fuselab {
namespace {

using Kind = Expr::Atom::Kind;
using Terms = std::vector<Expr::Term>;

/// The atom that `e` consists of, nullptr when it is more than one atom.
const Expr::Atom* single_atom(const Expr& e) {
  const auto& r = ExprBuilder::rep(e);
  if (r.constant || r.terms.size() != 1 || r.terms[0].coefficient != 1 || r.terms[0].atoms.size() != 1) return nullptr;
  return r.terms[0].atoms[0].get();
}

std::int64_t common_factor(const Terms& terms, std::int64_t start, bool with_constant) {
  std::int64_t g = start;
  for (const auto& t : terms) {
    if (t.coefficient == INT64_MIN) return 1;  // its magnitude does not fit; leave such expressions alone
    if (with_constant || !t.atoms.empty()) g = std::gcd(g, t.coefficient);
  }
  return g;
}

/// Splits the terms of a into those b divides (as quotients) and the rest.
void split_divisible(const Expr& a, const Expr::Term& b, Terms& quotients, Terms& rest) {
  for (auto& t : ExprBuilder::terms(a)) {
    Expr::Term q;
    if (expr_detail::divide(t, b, q)) {
      quotients.push_back(std::move(q));
    } else {
      rest.push_back(std::move(t));
    }
  }
}

/// floordiv by a constant b > 1.
Expr floordiv_constant(const Expr& a, std::int64_t b) {
  Terms whole, rest;
  for (auto& t : ExprBuilder::terms(a)) {
    // floor((q*b + r) / b) = q + floor(r / b), also for the constant term with 0 <= r < b
    if (t.coefficient % b == 0) {
      t.coefficient /= b;
      whole.push_back(std::move(t));
    } else if (t.atoms.empty()) {
      whole.push_back({expr_detail::floor_div(t.coefficient, b), {}});
      rest.push_back({expr_detail::floor_mod(t.coefficient, b), {}});
    } else {
      rest.push_back(std::move(t));
    }
  }
  // floor(x / (g*h)) = floor(floor(x / g) / h): divide a common factor out, the constant rounds down with it
  const std::int64_t g = common_factor(rest, b, false);
  for (auto& t : rest) t.coefficient = expr_detail::floor_div(t.coefficient, g);
  b /= g;
  Expr outside = ExprBuilder::from_terms(std::move(whole));
  const Expr inside = ExprBuilder::from_terms(std::move(rest));
  if (b == 1) return outside + inside;
  if (inside.is_const()) return outside + Expr(expr_detail::floor_div(inside.value(), b));
  if (const auto* x = single_atom(inside); x && x->kind == Kind::floordiv) return outside + floordiv(x->a, x->b * Expr(b));
  if (const auto* x = single_atom(inside);
      x && x->kind == Kind::mod && x->b.is_const() && x->b.value() > 0 && x->b.value() <= b) {
    return outside;  // 0 <= mod < b
  }
  return outside + ExprBuilder::atom(Kind::floordiv, inside, Expr(b));
}

/// mod by a constant b > 1.
Expr mod_constant(const Expr& a, std::int64_t b) {
  Terms rest = ExprBuilder::terms(a);
  for (auto& t : rest) t.coefficient = expr_detail::floor_mod(t.coefficient, b);
  const std::int64_t g = common_factor(rest, b, true);
  for (auto& t : rest) t.coefficient /= g;
  b /= g;
  const Expr inside = ExprBuilder::from_terms(std::move(rest));
  if (b == 1) return 0;
  if (inside.is_const()) return Expr(expr_detail::mul(g, expr_detail::floor_mod(inside.value(), b)));
  if (const auto* x = single_atom(inside); x && x->kind == Kind::mod && x->b.is_const() && x->b.value() > 0) {
    if (x->b.value() <= b) return Expr(g) * inside;
    if (x->b.value() % b == 0) return Expr(g) * mod(x->a, Expr(b));
  }
  return Expr(g) * ExprBuilder::atom(Kind::mod, inside, Expr(b));
}

}  // namespace

namespace expr_detail {

bool divide(const Expr::Term& a, const Expr::Term& b, Expr::Term& quotient) {
  if (b.coefficient == 0 || (b.coefficient == -1 && a.coefficient == INT64_MIN) || a.coefficient % b.coefficient != 0)
    return false;
  quotient.coefficient = a.coefficient / b.coefficient;
  quotient.atoms.clear();
  std::size_t j = 0;
  for (const auto& x : a.atoms) {
    if (j < b.atoms.size() && x->key == b.atoms[j]->key) {
      ++j;
    } else {
      quotient.atoms.push_back(x);
    }
  }
  return j == b.atoms.size();
}

}  // namespace expr_detail

Expr operator+(const Expr& a, const Expr& b) {
  if (a.is_const() && b.is_const()) return expr_detail::add(a.value(), b.value());
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  Terms all = ExprBuilder::terms(a);
  for (auto& t : ExprBuilder::terms(b)) all.push_back(std::move(t));
  return ExprBuilder::from_terms(std::move(all));
}

Expr operator-(const Expr& a, const Expr& b) {
  if (a == b) return 0;
  if (a.is_const() && b.is_const()) {
    std::int64_t r;
    if (__builtin_sub_overflow(a.value(), b.value(), &r)) {
      fail("expr.overflow", "size {} - {} does not fit 63 bits; use smaller sizes", a.value(), b.value());
    }
    return r;
  }
  return a + b * Expr(-1);
}

Expr operator*(const Expr& a, const Expr& b) {
  if (a.is_const() && b.is_const()) return expr_detail::mul(a.value(), b.value());
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  if (a.is(0) || b.is(0)) return 0;
  const Terms left = ExprBuilder::terms(a), right = ExprBuilder::terms(b);
  if (left.size() * right.size() > 4096) {
    fail("expr.too_large", "the product of size expressions with {} and {} terms is too large", left.size(), right.size());
  }
  Terms all;
  for (const auto& x : left) {
    for (const auto& y : right) {
      Expr::Term t{expr_detail::mul(x.coefficient, y.coefficient), {}};
      std::merge(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(), std::back_inserter(t.atoms),
                 [](const auto& p, const auto& q) { return p->key < q->key; });
      all.push_back(std::move(t));
    }
  }
  return ExprBuilder::from_terms(std::move(all));
}

bool exact_div(const Expr& a, const Expr& b, Expr& quotient) {
  if (b.is(0)) return false;
  if (a.is(0)) {
    quotient = 0;
    return true;
  }
  const Expr::Term lead = ExprBuilder::terms(b).front();
  // Long division by leading terms; each round removes a's leading term, so the count of rounds is bounded by a limit only.
  Expr rest = a, q = 0;
  for (int round = 0; round < 256; ++round) {
    if (rest.is(0)) {
      quotient = q;
      return true;
    }
    Expr::Term t;
    if (!expr_detail::divide(ExprBuilder::terms(rest).front(), lead, t)) return false;
    const Expr step = ExprBuilder::from_terms({t});
    q = q + step;
    rest = rest - step * b;
  }
  return false;
}

Expr floordiv(const Expr& a, const Expr& b) {
  if (b.is(0)) fail("expr.div_zero", "size '{}' divided by zero", a.str());
  if (a.is_const() && b.is_const()) return expr_detail::floor_div(a.value(), b.value());
  if (b.is(1)) return a;
  if (a.is(0)) return 0;
  if (b.is_const()) {
    if (b.value() > 0) return floordiv_constant(a, b.value());
    if (b.value() == INT64_MIN) return ExprBuilder::atom(Kind::floordiv, a, b);
    return floordiv(a * Expr(-1), Expr(-b.value()));
  }
  Expr q;
  if (exact_div(a, b, q)) return q;
  const Terms divisor = ExprBuilder::terms(b);
  if (divisor.size() == 1) {
    Terms whole, rest;
    split_divisible(a, divisor[0], whole, rest);
    if (!whole.empty()) return ExprBuilder::from_terms(std::move(whole)) + floordiv(ExprBuilder::from_terms(std::move(rest)), b);
  }
  if (const auto* x = single_atom(a); x && x->kind == Kind::floordiv && b.non_negative()) return floordiv(x->a, x->b * b);
  if (const auto* x = single_atom(a); x && x->kind == Kind::mod && x->b == b && b.non_negative()) return 0;
  return ExprBuilder::atom(Kind::floordiv, a, b);
}

Expr mod(const Expr& a, const Expr& b) {
  if (b.is(0)) fail("expr.div_zero", "size '{}' modulo zero", a.str());
  if (a.is_const() && b.is_const()) return expr_detail::floor_mod(a.value(), b.value());
  if (a.is(0) || b.is(1)) return 0;
  if (b.is_const()) return b.value() > 0 ? mod_constant(a, b.value()) : ExprBuilder::atom(Kind::mod, a, b);
  Expr q;
  if (exact_div(a, b, q)) return 0;
  const Terms divisor = ExprBuilder::terms(b);
  if (divisor.size() == 1) {
    Terms whole, rest;
    split_divisible(a, divisor[0], whole, rest);
    if (!whole.empty()) return mod(ExprBuilder::from_terms(std::move(rest)), b);
  }
  if (const auto* x = single_atom(a); x && x->kind == Kind::mod && x->b == b) return a;
  return ExprBuilder::atom(Kind::mod, a, b);
}

Expr min(const Expr& a, const Expr& b) {
  if (a.is_const() && b.is_const()) return std::min(a.value(), b.value());
  if ((a - b).non_negative()) return b;
  if ((b - a).non_negative()) return a;
  return a.str() < b.str() ? ExprBuilder::atom(Kind::min, a, b) : ExprBuilder::atom(Kind::min, b, a);
}

Expr max(const Expr& a, const Expr& b) {
  if (a.is_const() && b.is_const()) return std::max(a.value(), b.value());
  if ((a - b).non_negative()) return a;
  if ((b - a).non_negative()) return b;
  return a.str() < b.str() ? ExprBuilder::atom(Kind::max, a, b) : ExprBuilder::atom(Kind::max, b, a);
}

}  // namespace fuselab
