#include "fuselab/core/expr.h"

#include <algorithm>
#include <array>

#include "fuselab/core/expr_rep.h"

namespace fuselab {
namespace {

constexpr std::size_t kMaxText = 4096;
constexpr std::size_t kMaxTerms = 512;
constexpr std::size_t kMaxDegree = 64;

using AtomPtr = std::shared_ptr<const Expr::Atom>;
using Kind = Expr::Atom::Kind;

const char* function_name(Kind k) {
  switch (k) {
    case Kind::floordiv:
      return "floordiv";
    case Kind::mod:
      return "mod";
    case Kind::min:
      return "min";
    case Kind::max:
      return "max";
    case Kind::symbol:
      break;
  }
  return "";
}

std::shared_ptr<const Expr::Rep> make_constant(std::int64_t v) {
  auto r = std::make_shared<Expr::Rep>();
  r->value = v;
  return r;
}

// Sizes and strides are mostly small numbers: share those instead of allocating one each.
std::shared_ptr<const Expr::Rep> constant_rep(std::int64_t v) {
  constexpr std::int64_t kLow = -1, kHigh = 1024;
  static const auto kShared = [] {
    std::array<std::shared_ptr<const Expr::Rep>, kHigh - kLow + 1> all;
    for (std::int64_t i = kLow; i <= kHigh; ++i) all[i - kLow] = make_constant(i);
    return all;
  }();
  return v >= kLow && v <= kHigh ? kShared[v - kLow] : make_constant(v);
}

std::string term_text(const Expr::Term& t, bool first) {
  std::string s;
  const bool negative = t.coefficient < 0;
  if (!first) s = negative ? " - " : " + ";
  std::string number = fmt::format("{}", t.coefficient);
  if (negative && !first) number.erase(0, 1);
  if (t.atoms.empty()) return s + number;
  if (number == "-1") {
    s += '-';
  } else if (number != "1") {
    s += number + "*";
  }
  for (std::size_t i = 0; i < t.atoms.size(); ++i) s += (i ? "*" : "") + t.atoms[i]->key;
  return s;
}

bool atom_non_negative(const Expr::Atom& x) {
  switch (x.kind) {
    case Kind::symbol:
      return true;
    case Kind::floordiv:
      return x.a.non_negative() && x.b.non_negative();
    case Kind::mod:
      return x.b.non_negative();
    case Kind::min:
      return x.a.non_negative() && x.b.non_negative();
    case Kind::max:
      return x.a.non_negative() || x.b.non_negative();
  }
  return false;
}

std::int64_t atom_eval(const Expr::Atom& x, const std::map<std::string, std::int64_t>& env) {
  if (x.kind == Kind::symbol) {
    auto it = env.find(x.key);
    if (it == env.end()) fail("expr.unbound", "size symbol '{}' has no value; it must appear in an input's sizes", x.key);
    return it->second;
  }
  const std::int64_t a = x.a.eval(env), b = x.b.eval(env);
  switch (x.kind) {
    case Kind::floordiv:
      return expr_detail::floor_div(a, b);
    case Kind::mod:
      return expr_detail::floor_mod(a, b);
    case Kind::min:
      return std::min(a, b);
    default:
      return std::max(a, b);
  }
}

std::string atom_cpp(const Expr::Atom& x, const std::function<std::string(const std::string&)>& rename) {
  if (x.kind == Kind::symbol) return rename(x.key);
  const std::string a = "(" + x.a.cpp(rename) + ")", b = "(" + x.b.cpp(rename) + ")";
  const bool plain = x.a.non_negative() && x.b.non_negative();  // C++ truncates; only then is it the same
  const std::string crosses = fmt::format("({0} % {1} != 0 && ({0} < 0) != ({1} < 0))", a, b);
  switch (x.kind) {
    case Kind::floordiv:
      return plain ? fmt::format("({} / {})", a, b) : fmt::format("({0} / {1} - {2})", a, b, crosses);
    case Kind::mod:
      return plain ? fmt::format("({} % {})", a, b) : fmt::format("({0} % {1} + ({2} ? {1} : 0))", a, b, crosses);
    case Kind::min:
      return fmt::format("({0} < {1} ? {0} : {1})", a, b);
    default:
      return fmt::format("({0} > {1} ? {0} : {1})", a, b);
  }
}

}  // namespace

namespace expr_detail {

std::int64_t add(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_add_overflow(a, b, &r)) fail("expr.overflow", "size {} + {} does not fit 63 bits; use smaller sizes", a, b);
  return r;
}

std::int64_t mul(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) fail("expr.overflow", "size {} * {} does not fit 63 bits; use smaller sizes", a, b);
  return r;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) fail("expr.div_zero", "size {} divided by zero; a dimension that divides another must not be 0", a);
  if (b == -1) return mul(a, -1);
  const std::int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == 0) fail("expr.div_zero", "size {} modulo zero; a dimension that divides another must not be 0", a);
  if (b == -1) return 0;
  const std::int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int compare(const Expr::Term& a, const Expr::Term& b) {
  if (a.atoms.size() != b.atoms.size()) return a.atoms.size() > b.atoms.size() ? -1 : 1;
  for (std::size_t i = 0; i < a.atoms.size(); ++i) {
    if (a.atoms[i] == b.atoms[i]) continue;
    if (int c = a.atoms[i]->key.compare(b.atoms[i]->key); c != 0) return c;
  }
  return 0;
}

}  // namespace expr_detail

std::vector<Expr::Term> ExprBuilder::terms(const Expr& e) {
  const Expr::Rep& r = rep(e);
  if (!r.constant) return r.terms;
  if (r.value == 0) return {};
  return {Expr::Term{r.value, {}}};
}

Expr ExprBuilder::from_terms(std::vector<Expr::Term> all) {
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return expr_detail::compare(a, b) < 0; });
  std::vector<Expr::Term> merged;
  for (auto& t : all) {
    if (!merged.empty() && expr_detail::compare(merged.back(), t) == 0) {
      merged.back().coefficient = expr_detail::add(merged.back().coefficient, t.coefficient);
    } else {
      if (!merged.empty() && merged.back().coefficient == 0) merged.pop_back();
      merged.push_back(std::move(t));
    }
  }
  if (!merged.empty() && merged.back().coefficient == 0) merged.pop_back();
  if (merged.empty()) return Expr(0);
  if (merged.size() == 1 && merged[0].atoms.empty()) return Expr(merged[0].coefficient);
  auto r = std::make_shared<Expr::Rep>();
  r->constant = false;
  for (std::size_t i = 0; i < merged.size(); ++i) r->key += term_text(merged[i], i == 0);
  if (merged.size() > kMaxTerms || r->key.size() > kMaxText || merged[0].atoms.size() > kMaxDegree) {
    fail("expr.too_large", "size expression '{}...' grows past {} characters; simplify the sizes", r->key.substr(0, 60),
         kMaxText);
  }
  r->terms = std::move(merged);
  return wrap(std::move(r));
}

Expr ExprBuilder::atom(Expr::Atom::Kind kind, const Expr& a, const Expr& b) {
  auto x = std::make_shared<Expr::Atom>();
  x->kind = kind;
  x->a = a;
  x->b = b;
  x->key = fmt::format("{}({}, {})", function_name(kind), a.str(), b.str());
  std::vector<Expr::Term> one(1);
  one[0].coefficient = 1;
  one[0].atoms.push_back(std::move(x));
  return from_terms(std::move(one));
}

Expr::Expr(std::int64_t value) : rep_(constant_rep(value)) {}

Expr Expr::symbol(std::string name) {
  const auto word = [](char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool good = !name.empty() && name.size() <= 256 && !(name[0] >= '0' && name[0] <= '9') &&
                    std::all_of(name.begin(), name.end(), word) && name != "floordiv" && name != "mod" && name != "min" &&
                    name != "max";
  if (!good) fail("expr.symbol", "'{}' cannot name a size; use letters, digits and '_', not starting with a digit", name);
  auto x = std::make_shared<Atom>();
  x->key = std::move(name);
  std::vector<Term> one(1);
  one[0].coefficient = 1;
  one[0].atoms.push_back(std::move(x));
  return ExprBuilder::from_terms(std::move(one));
}

bool Expr::is_const() const { return rep_->constant; }

std::int64_t Expr::value() const {
  if (!rep_->constant) fail("expr.not_constant", "size '{}' is symbolic where a number is needed", rep_->key);
  return rep_->value;
}

bool Expr::is_symbol() const {
  return !rep_->constant && rep_->terms.size() == 1 && rep_->terms[0].coefficient == 1 && rep_->terms[0].atoms.size() == 1 &&
         rep_->terms[0].atoms[0]->kind == Kind::symbol;
}

bool Expr::non_negative() const {
  if (rep_->constant) return rep_->value >= 0;
  return std::all_of(rep_->terms.begin(), rep_->terms.end(), [](const Term& t) {
    return t.coefficient > 0 &&
           std::all_of(t.atoms.begin(), t.atoms.end(), [](const AtomPtr& x) { return atom_non_negative(*x); });
  });
}

bool Expr::positive() const {
  if (rep_->constant) return rep_->value > 0;
  return non_negative() && rep_->terms.back().atoms.empty();  // a sum of sizes and a positive constant
}

std::string Expr::str() const { return rep_->constant ? fmt::format("{}", rep_->value) : rep_->key; }

std::string Expr::cpp(const std::function<std::string(const std::string&)>& rename) const {
  if (rep_->constant) {
    // The most negative number has no literal of its own in C++.
    return rep_->value == INT64_MIN ? "(-9223372036854775807 - 1)" : fmt::format("{}", rep_->value);
  }
  std::string s;
  for (const Term& t : rep_->terms) {
    if (!s.empty()) s += " + ";
    std::string factors;
    if (t.coefficient != 1 || t.atoms.empty()) factors = "(" + Expr(t.coefficient).cpp(rename) + ")";
    if (t.coefficient > 1 || (t.coefficient == 1 && t.atoms.empty())) factors = fmt::format("{}", t.coefficient);
    for (const auto& x : t.atoms) factors += (factors.empty() ? "" : " * ") + atom_cpp(*x, rename);
    s += factors;
  }
  return s;
}

void Expr::collect_symbols(std::set<std::string>& into) const {
  for (const Term& t : rep_->terms) {
    for (const auto& x : t.atoms) {
      if (x->kind == Kind::symbol) {
        into.insert(x->key);
      } else {
        x->a.collect_symbols(into);
        x->b.collect_symbols(into);
      }
    }
  }
}

std::int64_t Expr::eval(const std::map<std::string, std::int64_t>& env) const {
  if (rep_->constant) return rep_->value;
  std::int64_t sum = 0;
  for (const Term& t : rep_->terms) {
    std::int64_t p = t.coefficient;
    for (const auto& x : t.atoms) p = expr_detail::mul(p, atom_eval(*x, env));
    sum = expr_detail::add(sum, p);
  }
  return sum;
}

Expr Expr::substitute(const std::map<std::string, Expr>& env) const {
  if (rep_->constant) return *this;
  Expr sum = 0;
  for (const Term& t : rep_->terms) {
    Expr p = t.coefficient;
    for (const auto& x : t.atoms) {
      switch (x->kind) {
        case Kind::symbol: {
          auto it = env.find(x->key);
          p = p * (it == env.end() ? symbol(x->key) : it->second);
          break;
        }
        case Kind::floordiv:
          p = p * floordiv(x->a.substitute(env), x->b.substitute(env));
          break;
        case Kind::mod:
          p = p * mod(x->a.substitute(env), x->b.substitute(env));
          break;
        case Kind::min:
          p = p * min(x->a.substitute(env), x->b.substitute(env));
          break;
        case Kind::max:
          p = p * max(x->a.substitute(env), x->b.substitute(env));
          break;
      }
    }
    sum = sum + p;
  }
  return sum;
}

bool operator==(const Expr& a, const Expr& b) {
  if (a.rep_ == b.rep_) return true;
  if (a.rep_->constant != b.rep_->constant) return false;
  return a.rep_->constant ? a.rep_->value == b.rep_->value : a.rep_->key == b.rep_->key;
}

Expr product(const std::vector<Expr>& xs) {
  Expr p = 1;
  for (const Expr& x : xs) p = p * x;
  return p;
}

}  // namespace fuselab
