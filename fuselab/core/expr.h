// Symbolic sizes: integer expressions over named symbols, kept in a canonical form so that equal sizes compare equal.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fuselab/core/error.h"

namespace fuselab {

/// What Expr::parse throws: code "expr.syntax", and where in the text (0-based).
class ExprSyntaxError : public Error {
 public:
  ExprSyntaxError(const std::string& message, std::size_t position) : Error("expr.syntax", message), position_(position) {}
  std::size_t position() const noexcept { return position_; }

 private:
  std::size_t position_;
};

/// An immutable integer expression: constants, symbols, + - *, floor division, modulo, min, max. A value type; copies share.
/// Canonical: a sum of products with sorted terms, so `B*4 + B*4 == 8*B`. Symbols are sizes: they are >= 0 and unknown otherwise.
/// floordiv rounds towards minus infinity and mod has the divisor's sign, as in Python. A divisor is taken to be non-zero.
/// Building one throws Error("expr.overflow") when a constant passes 63 bits, Error("expr.too_large") when the text form passes
/// 4096 characters, Error("expr.div_zero") for a division by the constant zero.
class Expr {
 public:
  Expr(std::int64_t value = 0);  // NOLINT(google-explicit-constructor): sizes are mostly plain numbers
  /// An identifier that is not floordiv, mod, min or max; Error("expr.symbol") otherwise.
  static Expr symbol(std::string name);
  /// Text as `str()` writes it: `4`, `B`, `2*B + 1`, `floordiv(B + 3, 4)`, `mod(B, 2)`, `min(a, b)`, `max(a, b)`;
  /// also `//` and `%`. Throws Error("expr.syntax") with the column.
  static Expr parse(std::string_view text);
  /// Parses the longest expression that starts at `position` and moves `position` behind it.
  static Expr parse_prefix(std::string_view text, std::size_t& position);

  bool is_const() const;
  bool is(std::int64_t v) const { return is_const() && value() == v; }
  std::int64_t value() const;  ///< throws Error("expr.not_constant") when symbolic
  bool is_symbol() const;      ///< exactly one symbol, nothing else
  bool non_negative() const;   ///< provably >= 0 for all sizes; false means unknown
  bool positive() const;       ///< provably > 0 for all sizes; false means unknown
  std::string str() const;     ///< the text form; also the key for hashing
  /// C++ text over int64_t variables; `rename` maps a symbol to the variable that holds it.
  std::string cpp(const std::function<std::string(const std::string&)>& rename) const;
  void collect_symbols(std::set<std::string>& into) const;
  /// Throws Error("expr.unbound") for a symbol without a value, Error("expr.overflow") past 63 bits, Error("expr.div_zero").
  std::int64_t eval(const std::map<std::string, std::int64_t>& env) const;
  Expr substitute(const std::map<std::string, Expr>& env) const;

  friend Expr operator+(const Expr& a, const Expr& b);
  friend Expr operator-(const Expr& a, const Expr& b);
  friend Expr operator*(const Expr& a, const Expr& b);
  friend Expr floordiv(const Expr& a, const Expr& b);
  friend Expr mod(const Expr& a, const Expr& b);
  friend Expr min(const Expr& a, const Expr& b);
  friend Expr max(const Expr& a, const Expr& b);
  friend bool operator==(const Expr& a, const Expr& b);
  friend bool operator!=(const Expr& a, const Expr& b) { return !(a == b); }
  /// True and the quotient when b divides every term of a exactly (4*B*C / (2*C) = 2*B); false otherwise.
  friend bool exact_div(const Expr& a, const Expr& b, Expr& quotient);

  struct Rep;
  struct Atom;
  struct Term;

 private:
  friend struct ExprBuilder;
  explicit Expr(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}
  std::shared_ptr<const Rep> rep_;
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr floordiv(const Expr& a, const Expr& b);
Expr mod(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
bool operator==(const Expr& a, const Expr& b);
bool exact_div(const Expr& a, const Expr& b, Expr& quotient);

/// Product of all, 1 for none.
Expr product(const std::vector<Expr>& xs);

}  // namespace fuselab
