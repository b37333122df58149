// Deciding what is known of one use of an operator: `if`, attributes, `narrow`, `cast` (ops/recipe.h).
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/ops/recipe.h"

namespace fuselab::ops {
namespace {

using K = RecipeNode::Kind;

/// The column that holds for a compute type.
const std::string& recipe_text(const Op& op, DType compute) {
  if (is_bool(compute) && !op.lower_bool.empty()) return op.lower_bool;
  if (!is_float(compute) && !op.lower_int.empty()) return op.lower_int;
  return op.lower;
}

/// Decides what is known of one use of an operator.
class Instantiation {
 public:
  Instantiation(const Op& op, const std::vector<ArgState>& args, const Attrs& attrs, DType compute)
      : op_(op), args_(args), attrs_(attrs), compute_(compute) {}

  Recipe run() {
    const Recipe raw = parse_recipe(text());
    Recipe out;
    for (const RecipeStatement& s : raw.statements) out.statements.push_back({s.name, resolve(s.value)});
    for (const RecipeNode& n : raw.results) out.results.push_back(resolve(n));
    std::set<std::string> read;
    for (const RecipeNode& n : out.results) collect(n, read);
    std::vector<RecipeStatement> kept;
    for (auto it = out.statements.rbegin(); it != out.statements.rend(); ++it) {
      if (read.count(it->name) == 0) continue;
      collect(it->value, read);
      kept.push_back(std::move(*it));
    }
    out.statements.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
    return out;
  }

 private:
  std::string text() const {
    if (!has_meaning(op_, compute_)) {
      fail("ops.no_meaning", "{} has no meaning for {}: cast its arguments first", op_.name, std::string(name(compute_)));
    }
    return recipe_text(op_, compute_);
  }
  static void collect(const RecipeNode& n, std::set<std::string>& into) {
    if (n.kind == K::name) into.insert(n.word);
    for (const RecipeNode& a : n.args) collect(a, into);
  }
  std::size_t arg_index(const RecipeNode& n) const {
    for (std::size_t i = 0; i < op_.args.size(); ++i) {
      if (n.kind == K::name && op_.args[i].name == n.word) return i;
    }
    fail("ops.recipe", "{} is no argument of {}", print(n), op_.name);
  }
  static double literal_value(const Scalar& s) {
    return std::visit([](auto v) { return static_cast<double>(v); }, s);
  }

  bool decide(const RecipeNode& n) const {
    if (n.kind == K::unary && n.word == "!") return !decide(n.args[0]);
    if (n.kind == K::binary && n.word == "&") return decide(n.args[0]) && decide(n.args[1]);
    if (n.kind == K::binary && n.word == "|") return decide(n.args[0]) || decide(n.args[1]);
    if (n.kind == K::name && n.word == "wide") return compute_ == DType::f64;
    if (n.kind == K::name && n.word == "low") return is_low_precision(compute_);
    if (n.kind == K::call && n.word == "has") {
      const std::size_t i = arg_index(n.args.at(0));
      return i < args_.size() && args_[i].present;
    }
    if (n.kind == K::call && n.word == "is") {
      const std::size_t i = arg_index(n.args.at(0));
      const RecipeNode value = resolve(n.args.at(1));
      const double sign = value.kind == K::unary ? -1 : 1;
      const double wanted = value.kind == K::unary ? value.args[0].number : value.number;
      return i < args_.size() && args_[i].literal && literal_value(*args_[i].literal) == sign * wanted;
    }
    if (n.kind == K::name) {
      const auto it = attrs_.find(n.word);
      if (it != attrs_.end() && std::holds_alternative<bool>(it->second)) return std::get<bool>(it->second);
    }
    if (n.kind == K::binary && (n.word == "==" || n.word == "!=")) {
      const RecipeNode left = resolve(n.args[0]), right = resolve(n.args[1]);
      bool equal = false;
      if (left.kind == K::text && right.kind == K::text)
        equal = left.word == right.word;
      else if (left.kind == K::number && right.kind == K::number)
        equal = left.number == right.number;
      else
        fail("ops.recipe", "{} is not known when {} is lowered", print(n), op_.name);
      return equal == (n.word == "==");
    }
    fail("ops.recipe", "{} is not known when {} is lowered", print(n), op_.name);
  }

  RecipeNode resolve(const RecipeNode& n) const {
    if (n.kind == K::name) return resolve_name(n);
    if (n.kind == K::call && n.word == "if") return resolve(n.args.at(decide(n.args.at(0)) ? 1 : 2));
    RecipeNode out = n;
    if (n.kind == K::call && (n.word == "narrow" || n.word == "cast")) {
      const DType to = n.word == "narrow" ? compute_ : std::get<DType>(attrs_.at("dtype"));
      out.word = "cast_" + std::string(name(to));
      out.args.resize(1);
    }
    for (RecipeNode& a : out.args) a = resolve(a);
    return out;
  }
  RecipeNode resolve_name(const RecipeNode& n) const {
    for (const ArgSpec& a : op_.args) {
      if (a.name == n.word) return n;
    }
    const auto it = attrs_.find(n.word);
    if (it == attrs_.end()) return n;
    RecipeNode out;
    out.kind = K::number;
    if (const bool* b = std::get_if<bool>(&it->second))
      out.boolean = true, out.number = *b ? 1 : 0;
    else if (const auto* i = std::get_if<std::int64_t>(&it->second))
      out.integer = *i, out.number = static_cast<double>(*i);
    else if (const double* d = std::get_if<double>(&it->second))
      out.number = *d;
    else if (const auto* s = std::get_if<std::string>(&it->second))
      out.kind = K::text, out.word = *s;
    else if (const auto* e = std::get_if<Expr>(&it->second); e != nullptr && e->is_const()) {
      out.integer = e->value();
      out.number = static_cast<double>(e->value());
    } else
      return n;
    return out;
  }

  const Op& op_;
  const std::vector<ArgState>& args_;
  const Attrs& attrs_;
  DType compute_;
};

}  // namespace

bool has_meaning(const Op& op, DType compute) {
  const std::string& text = recipe_text(op, compute);
  return !text.empty() && text != "-";
}

Recipe instantiate(const Op& op, const std::vector<ArgState>& args, const Attrs& attrs, DType compute) {
  return Instantiation(op, args, attrs, compute).run();
}

}  // namespace fuselab::ops
