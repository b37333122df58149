#include "fuselab/kernel/ir.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fuselab/core/error.h"
#include "fuselab/kernel/primitives.h"

namespace fuselab::kernel {

Expr Index::coefficient(int axis) const {
  for (const auto& [a, c] : terms)
    if (a == axis) return c;
  return 0;
}

void Index::add(int axis, const Expr& coefficient) {
  auto it = std::lower_bound(terms.begin(), terms.end(), axis, [](const auto& t, int a) { return t.first < a; });
  if (it != terms.end() && it->first == axis) {
    it->second = it->second + coefficient;
    if (it->second.is(0)) terms.erase(it);
  } else if (!coefficient.is(0)) {
    terms.insert(it, {axis, coefficient});
  }
}

Index Index::plus(const Index& other) const {
  Index r = *this;
  for (const auto& [a, c] : other.terms) r.add(a, c);
  r.offset = r.offset + other.offset;
  return r;
}

Index Index::times(const Expr& factor) const {
  Index r;
  for (const auto& [a, c] : terms) r.add(a, c * factor);
  r.offset = offset * factor;
  return r;
}

bool Index::depends_on_inner(const std::vector<Axis>& axes) const {
  return std::any_of(terms.begin(), terms.end(), [&](const auto& t) { return axes[t.first].role == Role::inner; });
}

std::string Index::str(const std::vector<Axis>& axes) const {
  std::string out;
  for (const auto& [a, c] : terms) {
    if (!out.empty()) out += " + ";
    out += c.is(1) ? axes[a].name : "[" + c.str() + "]*" + axes[a].name;
  }
  if (!offset.is(0) || out.empty()) out += (out.empty() ? "[" : " + [") + offset.str() + "]";
  return out;
}

bool operator==(const Index& a, const Index& b) { return a.terms == b.terms && a.offset == b.offset; }

std::vector<bool> Kernel::inner_stmts() const {
  std::vector<bool> inner(stmts.size());
  for (std::size_t i = 0; i < stmts.size(); ++i) {
    const Stmt& s = stmts[i];
    if (s.kind == StmtKind::reduce) continue;
    inner[i] = s.index.depends_on_inner(axes);
    for (int a : s.args) inner[i] = inner[i] || inner[a];
  }
  return inner;
}

namespace {

void verify_stmt(const Kernel& k, std::size_t i) {
  const Stmt& s = k.stmts[i];
  auto bad = [&](const std::string& why) {
    fail("kernel.invalid", "kernel {}: statement %{} {}: {}; fix the IR text, or report the graph it came from", k.name, i,
         s.name, why);
  };
  for (int a : s.args)
    if (a < 0 || static_cast<std::size_t>(a) >= i || k.stmts[a].kind == StmtKind::store)
      bad("reads a statement that is no value before it");
  for (const auto& t : s.index.terms)
    if (t.first < 0 || static_cast<std::size_t>(t.first) >= k.axes.size()) bad("names an axis that does not exist");
  const bool memory = s.kind == StmtKind::load || s.kind == StmtKind::store;
  if (memory && (s.buffer < 0 || static_cast<std::size_t>(s.buffer) >= k.buffers.size()))
    bad("names a buffer that does not exist");
  if (memory && k.buffers[s.buffer].dtype != s.type) bad("has another type than its buffer");
  if (memory && k.buffers[s.buffer].output != (s.kind == StmtKind::store)) bad("reads an output or writes an input");
  if (s.kind == StmtKind::store && (s.args.size() != 1 || k.stmts[s.args[0]].type != s.type))
    bad("must store one value of its own type");
  if (s.kind == StmtKind::cast && s.args.size() != 1) bad("a cast takes one value");
  if (s.kind == StmtKind::reduce && (s.args.size() != 1 || k.tree.groups.empty()))
    bad("a reduction takes one value and needs a tree");
  if (s.kind != StmtKind::compute) return;
  const Primitive* p = find_primitive(s.op);
  if (p == nullptr) bad("unknown primitive '" + s.op + "'");
  if (static_cast<int>(s.args.size()) != p->args) bad("'" + s.op + "' takes another number of arguments");
  for (std::size_t a = s.op == "select" ? 1 : 0; a < s.args.size(); ++a)
    if (p->result == ResultType::same && k.stmts[s.args[a]].type != s.type) bad("mixes types");
}

/// Axes and tree: what the schedule builds its loops from.
void verify_loops(const Kernel& k) {
  const auto bad = [&](const std::string& why) {
    fail("kernel.invalid", "kernel {}: {}; fix the IR text, or report the graph it came from", k.name, why);
  };
  std::set<std::string> names;
  for (const Axis& a : k.axes)
    if (!names.insert(a.name).second) bad("two axes are called " + a.name);
  std::vector<int> seen(k.axes.size());
  for (const auto& group : k.tree.groups) {
    for (const int a : group) {
      if (k.axes[static_cast<std::size_t>(a)].role != Role::inner)
        bad("the tree holds the parallel axis " + k.axes[static_cast<std::size_t>(a)].name);
      ++seen[static_cast<std::size_t>(a)];
    }
  }
  for (std::size_t a = 0; a < k.axes.size(); ++a)
    if (k.axes[a].role == Role::inner && seen[a] != 1) bad("the tree must hold the inner axis " + k.axes[a].name + " once");
}

void verify_buffers(const Kernel& k) {
  std::set<std::pair<bool, std::string>> names;
  for (std::size_t i = 0; i < k.buffers.size(); ++i) {
    const Buffer& b = k.buffers[i];
    if (b.output != (static_cast<int>(i) >= k.inputs))
      fail("kernel.invalid", "kernel {}: buffer {} is out of place: inputs come first, then outputs", k.name, b.name);
    if (!names.emplace(b.output, b.name).second)
      fail("kernel.invalid", "kernel {}: two {} are called {}", k.name, b.output ? "outputs" : "inputs", b.name);
  }
}

}  // namespace

void verify(const Kernel& k) {
  verify_buffers(k);
  verify_loops(k);
  for (std::size_t i = 0; i < k.stmts.size(); ++i) verify_stmt(k, i);
  const std::vector<bool> inner = k.inner_stmts();
  for (const Stmt& s : k.stmts)
    if (s.kind == StmtKind::reduce && !inner[static_cast<std::size_t>(s.args[0])])
      fail("kernel.invalid", "kernel {}: %{} is folded along the inner axes, but is the same all along them", k.name, s.args[0]);
}

}  // namespace fuselab::kernel
