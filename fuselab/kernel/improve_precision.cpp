#include "fuselab/kernel/improve_precision.h"

#include <variant>

#include "fuselab/core/float16.h"
#include "fuselab/ops/op.h"

namespace fuselab::kernel {
namespace {

class Pass {
 public:
  Pass(const Kernel& k, const PrecisionOptions& o)
      : old_(k), options_(o), out_(k), low_(k.stmts.size(), -1), wide_(k.stmts.size(), -1), inner_(k.stmts.size(), -1) {
    out_.stmts.clear();
  }

  Kernel run() {
    for (std::size_t i = 0; i < old_.stmts.size(); ++i) {
      const Stmt& s = old_.stmts[i];
      if (s.kind == StmtKind::cast)
        visit_cast(i, s);
      else if (s.kind == StmtKind::store)
        visit_store(s);
      else
        visit_value(i, s);
      const bool rounded_constant = s.kind == StmtKind::constant && created(s);
      if (s.result && is_low_precision(s.type) && low_[i] < 0 && !rounded_constant && rounds(s)) {
        inner_[i] = wide_[i];
        low_[i] = emit_cast(wide_[i], s.type, s), wide_[i] = -1;
      }
    }
    return std::move(out_);
  }

 private:
  /// A tensor made from nothing is stored data: it holds values of its dtype, whether it ever reaches memory or not.
  static bool created(const Stmt& s) {
    const ops::Op* op = s.result ? ops::find(s.node_op) : nullptr;
    return op != nullptr && op->kind == ops::Kind::create;
  }

  bool rounds(const Stmt& s) const {
    if (options_.eager || created(s)) return true;
    if (s.node_op == "sum" || s.node_op == "mean" || s.node_op == "prod") return false;
    return options_.keep_all || options_.keep.count(s.node_op) != 0;
  }

  int emit(Stmt s) {
    out_.stmts.push_back(std::move(s));
    return static_cast<int>(out_.stmts.size()) - 1;
  }

  int emit_cast(int from, DType to, const Stmt& why, bool user = false) {
    Stmt c;
    c.kind = StmtKind::cast;
    c.type = to;
    c.args = {from};
    c.user = user;
    c.name = why.name;
    c.node_op = why.node_op;
    c.node = why.node;
    return emit(c);
  }

  /// The value of old statement `i` in its compute type, as `user` sees it; the cast after a load appears at its first use.
  /// Inside a composite a result that others read too (the rstd of a norm) is not rounded yet.
  int wide(int i, const Stmt& user) {
    if (inner_[i] >= 0 && user.node == old_.stmts[i].node && user.kind != StmtKind::store) return inner_[i];
    if (wide_[i] < 0) wide_[i] = emit_cast(low_[i], DType::f32, old_.stmts[i]);
    return wide_[i];
  }

  void visit_cast(std::size_t i, const Stmt& s) {
    const int a = s.args[0];
    const DType from = old_.stmts[a].type;
    if (is_low_precision(s.type)) {
      if (s.type == from) {  // rounding asked for by a decision
        low_[i] = low_[a] >= 0 ? low_[a] : emit_cast(wide(a, s), s.type, s);
        return;
      }
      if (s.user || s.result) {
        low_[i] = emit_cast(wide(a, s), s.type, s, s.user);
        return;
      }
      wide_[i] = compute_type(from) == DType::f32 ? wide(a, s) : emit_cast(wide(a, s), DType::f32, s);
      return;
    }
    if (s.type == DType::f32 && is_low_precision(from)) {
      wide_[i] = wide(a, s);
      return;
    }
    wide_[i] = emit_cast(wide(a, s), s.type, s, s.user);
  }

  void visit_store(const Stmt& s) {
    Stmt t = s;
    const int a = s.args[0];
    if (is_low_precision(s.type))
      t.args = {low_[a] >= 0 ? low_[a] : emit_cast(wide(a, s), s.type, s)};
    else
      t.args = {wide(a, s)};
    emit(t);
  }

  void visit_value(std::size_t i, const Stmt& s) {
    Stmt t = s;
    if (s.kind == StmtKind::load) {
      (is_low_precision(s.type) ? low_ : wide_)[i] = emit(t);
      return;
    }
    for (int& a : t.args) a = wide(a, s);
    t.type = compute_type(s.type);
    if (s.kind == StmtKind::constant && is_low_precision(s.type) && created(s))
      t.value = round_to(s.type, std::visit([](auto x) { return static_cast<double>(x); }, s.value));
    wide_[i] = emit(t);
  }

  const Kernel& old_;
  const PrecisionOptions& options_;
  Kernel out_;
  std::vector<int> low_, wide_;  ///< per old statement: its value in its own low-precision dtype, and in the compute type
  std::vector<int> inner_;       ///< of a result that was rounded: its value before
};

}  // namespace

Kernel improve_precision(const Kernel& k, const PrecisionOptions& options) { return Pass(k, options).run(); }

}  // namespace fuselab::kernel
