#include "fuselab/kernel/lower_recipe.h"

#include <map>
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/kernel/primitives.h"
#include "fuselab/ops/recipe.h"

namespace fuselab::kernel {
namespace {

/// A recipe value: a statement, or something whose type the other operand decides.
struct Val {
  enum class Kind : std::uint8_t { stmt, number, size, index };
  Kind kind = Kind::stmt;
  int stmt = -1;
  Scalar number{};
  Expr size;
};

class Expander {
 public:
  Expander(Kernel& k, const Node& n, const RecipeEnv& env) : k_(k), n_(n), env_(env) {}

  std::vector<int> run() {
    std::vector<ops::ArgState> states;
    for (const Operand& a : n_.args) {
      ops::ArgState s;
      s.present = !std::holds_alternative<std::monostate>(a);
      if (const auto* number = std::get_if<Scalar>(&a)) s.literal = *number;
      states.push_back(s);
    }
    states.resize(n_.op->args.size(), ops::ArgState{false, std::nullopt});
    const ops::Recipe recipe = ops::instantiate(*n_.op, states, n_.attrs, env_.compute);
    for (std::size_t i = 0; i < n_.args.size(); ++i) bind(n_.op->args[i].name, n_.args[i], i);
    for (const auto& [name, attr] : n_.attrs) {
      if (const auto* e = std::get_if<Expr>(&attr)) names_[name] = size_value(*e);
      if (const auto* i = std::get_if<std::int64_t>(&attr)) names_.emplace(name, number(*i));
      if (const auto* d = std::get_if<double>(&attr)) names_.emplace(name, number(*d));
      if (const auto* b = std::get_if<bool>(&attr)) names_.emplace(name, number(*b));
    }
    names_["N"] = size_value(env_.count);
    Val index;
    index.kind = Val::Kind::index;
    names_["index"] = index;
    for (const auto& st : recipe.statements) {
      names_[st.name] = eval(st.value);
      Val& v = names_[st.name];
      if (v.kind == Val::Kind::stmt && k_.stmts[v.stmt].name.empty()) k_.stmts[v.stmt].name = st.name;
    }
    std::vector<int> out;
    for (const auto& r : recipe.results) {
      const Val v = eval(r);
      out.push_back(v.kind == Val::Kind::stmt ? v.stmt : coerce(v, env_.compute));
    }
    return out;
  }

 private:
  void bind(const std::string& name, const Operand& a, std::size_t i) {
    if (const auto* s = std::get_if<Scalar>(&a)) {
      Val v = number(*s);
      // A literal in an operator that decides is rounded like a tensor of its dtype (R3).
      if (decides(i) && is_low_precision(env_.compute)) v = stmt(coerce(v, env_.compute));
      names_[name] = v;
      return;
    }
    const std::optional<int> arg = i < env_.args.size() ? env_.args[i] : std::nullopt;
    if (!arg) return;
    int s = *arg;
    const DType own = k_.stmts[s].type;
    if (decides(i) && is_low_precision(own)) s = rounded(s);
    if (own != env_.compute && !is_bool(own)) s = cast(s, env_.compute);
    names_[name] = stmt(s);
  }

  bool decides(std::size_t i) const { return n_.op->decides && n_.op->args[i].decides; }

  /// Marks a place where a low-precision value takes its own dtype's rounding; improve_precision makes it two casts.
  int rounded(int s) {
    Stmt c;
    c.kind = StmtKind::cast;
    c.type = k_.stmts[s].type;
    c.args = {s};
    c.decides = true;
    c.node_op = n_.op->name;
    return push(c);
  }

  static Val stmt(int s) {
    Val v;
    v.stmt = s;
    return v;
  }
  static Val number(Scalar s) {
    Val v;
    v.kind = Val::Kind::number;
    v.number = s;
    return v;
  }
  static Val size_value(const Expr& e) {
    if (e.is_const()) return number(e.value());
    Val v;
    v.kind = Val::Kind::size;
    v.size = e;
    return v;
  }

  int push(Stmt s) {
    s.node_op = n_.op->name;
    s.node = n_.id;
    k_.stmts.push_back(std::move(s));
    return static_cast<int>(k_.stmts.size()) - 1;
  }

  int cast(int s, DType t, bool user = false) {
    if (k_.stmts[s].type == t && !user) return s;
    Stmt c;
    c.kind = StmtKind::cast;
    c.type = t;
    c.args = {s};
    c.user = user;
    return push(c);
  }

  int coerce(const Val& v, DType t) {
    Stmt s;
    switch (v.kind) {
      case Val::Kind::stmt:
        return cast(v.stmt, t);
      case Val::Kind::number: {
        s.kind = StmtKind::constant;
        s.type = t;
        s.value = v.number;
        const int c = push(s);
        return n_.op->decides && is_low_precision(t) ? rounded(c) : c;
      }
      case Val::Kind::size:
        s.kind = StmtKind::size;
        s.type = DType::i64;
        s.size = v.size;
        return cast(push(s), t);
      case Val::Kind::index:
        s.kind = StmtKind::index;
        s.type = DType::i64;
        s.index = env_.linear;
        return cast(push(s), t);
    }
    return -1;
  }

  /// The type in which values meet: their own when they agree, f64 when one is f64 (widened exactly), else the compute type.
  DType meet(const std::vector<Val>& vs) const {
    std::optional<DType> t;
    for (const Val& v : vs) {
      if (v.kind != Val::Kind::stmt) continue;
      const DType own = k_.stmts[v.stmt].type;
      if (is_bool(own) && !is_bool(env_.compute)) continue;
      t = t ? (*t == own ? own : promote(*t, own)) : own;
    }
    return t ? *t : env_.compute;
  }

  int compute(const std::string& op, const std::vector<Val>& args) {
    const Primitive* p = find_primitive(op);
    if (p == nullptr || p->args != static_cast<int>(args.size()))
      fail("kernel.unsupported", "operator {}: its recipe calls {} with {} arguments, which is no primitive", n_.op->name, op,
           args.size());
    Stmt s;
    s.kind = StmtKind::compute;
    s.op = op;
    const bool logic = op == "and" || op == "or" || op == "not" || (op == "xor");
    const std::size_t first = op == "select" ? 1 : 0;
    const DType t = logic ? DType::boolean : meet({args.begin() + static_cast<std::ptrdiff_t>(first), args.end()});
    if (first == 1) s.args.push_back(coerce(args[0], DType::boolean));
    for (std::size_t i = first; i < args.size(); ++i) s.args.push_back(coerce(args[i], t));
    s.type = p->result == ResultType::boolean ? DType::boolean : t;
    return push(s);
  }

  int reduce(const std::string& op, const Val& arg) {
    DType t = meet({arg});
    std::string kind = op.substr(1);
    if (kind == "sum64") {
      kind = "sum";
      t = DType::f64;
    }
    if (kind == "any" || kind == "all") t = DType::boolean;
    Stmt s;
    s.kind = StmtKind::reduce;
    s.op = kind;
    s.args = {coerce(arg, t)};
    s.type = kind == "argmax" || kind == "argmin" ? DType::i64 : t;
    return push(s);
  }

  Val eval(const ops::RecipeNode& e) {
    using Kind = ops::RecipeNode::Kind;
    switch (e.kind) {
      case Kind::number:
        if (e.boolean) return number(e.number != 0);
        if (e.integer) return number(*e.integer);
        return number(e.number);
      case Kind::name: {
        auto it = names_.find(e.word);
        if (it == names_.end())
          fail("kernel.unsupported", "operator {}: its recipe reads {}, which is not given", n_.op->name, e.word);
        return it->second;
      }
      case Kind::unary: {
        const Val a = eval(e.args[0]);
        if (e.word == "-" && a.kind == Val::Kind::number) {
          if (const auto* i = std::get_if<std::int64_t>(&a.number)) return number(-*i);
          if (const auto* d = std::get_if<double>(&a.number)) return number(-*d);
        }
        return stmt(compute(e.word == "-" ? "neg" : "not", {a}));
      }
      case Kind::binary: {
        static const std::map<std::string, std::string> kNames = {{"+", "add"}, {"-", "sub"}, {"*", "mul"}, {"/", "div"},
                                                                  {"<", "lt"},  {"<=", "le"}, {">", "gt"},  {">=", "ge"},
                                                                  {"==", "eq"}, {"!=", "ne"}, {"&", "and"}, {"|", "or"}};
        return stmt(compute(kNames.at(e.word), {eval(e.args[0]), eval(e.args[1])}));
      }
      case Kind::call:
        return call(e);
      case Kind::text:
        break;
    }
    fail("kernel.unsupported", "operator {}: a text in its recipe", n_.op->name);
  }

  Val call(const ops::RecipeNode& e) {
    std::vector<Val> args;
    for (const auto& a : e.args) args.push_back(eval(a));
    const std::string& w = e.word;
    if (w.rfind("cast_", 0) == 0) {
      const DType t = parse_dtype(w.substr(5));
      if (args[0].kind != Val::Kind::stmt) return stmt(coerce(args[0], t));
      return stmt(cast(
          args[0].stmt, t,
          n_.op->kind == ops::Kind::pointwise && n_.op->type == ops::TypeRule::attr_dtype && t != k_.stmts[args[0].stmt].type));
    }
    static const std::set<std::string> kReduce = {"rsum", "rsum64",  "rprod",   "rmax",      "rmin",     "rany",
                                                  "rall", "rargmax", "rargmin", "rfirstmax", "rfirstmin"};
    if (kReduce.count(w) != 0) return stmt(reduce(w, args.at(0)));
    return stmt(compute(w, args));
  }

  Kernel& k_;
  const Node& n_;
  const RecipeEnv& env_;
  std::map<std::string, Val> names_;
};

}  // namespace

std::vector<int> expand_recipe(Kernel& k, const Graph&, const Node& n, const RecipeEnv& env) { return Expander(k, n, env).run(); }

}  // namespace fuselab::kernel
