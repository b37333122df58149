// The inside of Expr, shared by expr.cpp, expr_div.cpp and expr_parse.cpp only.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "fuselab/core/expr.h"

namespace fuselab {

/// What the sum of products treats as one variable: a symbol, or an operation that does not distribute over sums.
struct Expr::Atom {
  enum class Kind { symbol, floordiv, mod, min, max };
  Kind kind = Kind::symbol;
  std::string key;  ///< the text form; equal keys mean equal atoms
  Expr a, b;        ///< operands; unused for a symbol
};

/// coefficient * product of atoms, atoms sorted by key, repeated for powers. No atoms: the constant term.
struct Expr::Term {
  std::int64_t coefficient = 0;
  std::vector<std::shared_ptr<const Atom>> atoms;
};

/// Terms in graded order (highest degree first, constant last), no zero coefficients. A constant has `terms` empty.
struct Expr::Rep {
  bool constant = true;
  std::int64_t value = 0;
  std::vector<Term> terms;
  std::string key;
};

/// Access to the representation for the files that implement Expr.
struct ExprBuilder {
  static const Expr::Rep& rep(const Expr& e) { return *e.rep_; }
  static std::vector<Expr::Term> terms(const Expr& e);
  static Expr from_terms(std::vector<Expr::Term> terms);  ///< sorts, merges, drops zeros
  static Expr atom(Expr::Atom::Kind kind, const Expr& a, const Expr& b);
  static Expr wrap(std::shared_ptr<const Expr::Rep> rep) { return Expr(std::move(rep)); }
};

namespace expr_detail {
std::int64_t add(std::int64_t a, std::int64_t b);  ///< Error("expr.overflow"), as the next one
std::int64_t mul(std::int64_t a, std::int64_t b);
std::int64_t floor_div(std::int64_t a, std::int64_t b);  ///< Error("expr.div_zero")
std::int64_t floor_mod(std::int64_t a, std::int64_t b);
/// Negative when `a` comes first: higher degree, then lexicographic (a graded order, compatible with multiplication).
int compare(const Expr::Term& a, const Expr::Term& b);
/// a / b as one monomial; false when b does not divide a.
bool divide(const Expr::Term& a, const Expr::Term& b, Expr::Term& quotient);
}  // namespace expr_detail

}  // namespace fuselab
