#include "fuselab/kernel/one_value.h"

#include <map>

namespace fuselab::kernel {

Kernel one_value(const Kernel& k) {
  // value -> the dtype it is stored in
  std::map<int, DType> stored;
  for (const Stmt& s : k.stmts) {
    if (s.kind != StmtKind::store || !is_low_precision(s.type)) continue;
    const Stmt& c = k.stmts[s.args[0]];
    if (c.kind == StmtKind::cast && !c.user) stored[c.args[0]] = s.type;
  }
  auto outside_use = [&](const Stmt& s, int v) {
    return s.kind != StmtKind::store && !(s.kind == StmtKind::cast && is_low_precision(s.type)) && s.node != k.stmts[v].node;
  };
  std::map<int, bool> used;
  for (const Stmt& s : k.stmts)
    for (int a : s.args)
      if (stored.count(a) != 0 && outside_use(s, a)) used[a] = true;
  if (used.empty()) return k;

  Kernel out = k;
  out.stmts.clear();
  std::vector<int> to(k.stmts.size());
  std::map<int, int> rounded;  // old value -> new statement: its rounded form in the compute type
  std::map<int, int> low;      // old value -> new statement: its stored form
  auto emit = [&](Stmt s) {
    out.stmts.push_back(std::move(s));
    return static_cast<int>(out.stmts.size()) - 1;
  };
  for (std::size_t i = 0; i < k.stmts.size(); ++i) {
    Stmt s = k.stmts[i];
    const bool is_rounding =
        s.kind == StmtKind::cast && s.args.size() == 1 && low.count(s.args[0]) != 0 && stored[s.args[0]] == s.type;
    if (is_rounding) {
      to[i] = low[s.args[0]];
      continue;
    }
    for (int& a : s.args) a = rounded.count(a) != 0 && outside_use(k.stmts[i], a) ? rounded[a] : to[a];
    to[i] = emit(s);
    if (used.count(static_cast<int>(i)) == 0) continue;
    Stmt c;
    c.kind = StmtKind::cast;
    c.type = stored[static_cast<int>(i)];
    c.args = {to[i]};
    c.name = s.name;
    c.node = s.node;
    c.node_op = s.node_op;
    low[static_cast<int>(i)] = emit(c);
    c.args = {low[static_cast<int>(i)]};
    c.type = s.type;
    rounded[static_cast<int>(i)] = emit(c);
  }
  return out;
}

}  // namespace fuselab::kernel
