#include "fuselab/kernel/spread_rows.h"

#include <algorithm>

namespace fuselab::kernel {

void spread_constant_rows(Kernel& k) {
  const auto inner = k.inner_stmts();
  const auto axis = std::find_if(k.axes.begin(), k.axes.end(), [](const Axis& a) { return a.role == Role::inner; });
  if (axis == k.axes.end()) return;
  std::vector<Stmt> old;
  old.swap(k.stmts);
  std::vector<int> place(old.size());
  const auto push = [&](Stmt s) {
    k.stmts.push_back(std::move(s));
    return static_cast<int>(k.stmts.size()) - 1;
  };
  for (std::size_t i = 0; i < old.size(); ++i) {
    Stmt s = std::move(old[i]);
    for (int& a : s.args) {
      const bool constant_row = s.kind == StmtKind::reduce && !inner[static_cast<std::size_t>(a)];
      a = place[static_cast<std::size_t>(a)];
      if (!constant_row) continue;
      Stmt step, zero, inside, spread;
      step.kind = StmtKind::index;
      step.type = zero.type = DType::i64;
      step.index.add(static_cast<int>(axis - k.axes.begin()), 1);
      zero.kind = StmtKind::constant;
      zero.value = std::int64_t{0};
      inside.op = "ge";
      inside.type = DType::boolean;
      inside.args = {push(step), push(zero)};
      spread.op = "select";
      spread.type = zero.type = k.stmts[static_cast<std::size_t>(a)].type;
      const int condition = push(inside);
      spread.args = {condition, a, push(zero)};
      for (Stmt* x : {&step, &zero, &inside, &spread}) x->node_op = s.node_op, x->node = s.node;
      a = push(spread);
    }
    place[i] = push(std::move(s));
  }
}

}  // namespace fuselab::kernel
