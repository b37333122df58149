#include "fuselab/kernel/simplify.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>

namespace fuselab::kernel {
namespace {

std::string scalar_key(const Scalar& v) {
  if (const auto* d = std::get_if<double>(&v)) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, d, sizeof bits);
    return fmt::format("d{:x}", bits);
  }
  if (const auto* i = std::get_if<std::int64_t>(&v)) return fmt::format("i{}", *i);
  return std::get<bool>(v) ? "true" : "false";
}

std::string key(const Kernel& k, const Stmt& s) {
  std::string out = fmt::format("{}|{}|{}|{}|{}|{}", static_cast<int>(s.kind), s.op, static_cast<int>(s.type), s.buffer,
                                s.index.str(k.axes), s.size.str());
  if (s.kind == StmtKind::constant) out += "|" + scalar_key(s.value);
  for (int a : s.args) out += "|" + std::to_string(a);
  return out;
}

/// Is every value of `narrow` exact in `wide`, so that the way there and back is the value itself?
bool exact_in(DType narrow, DType wide) {
  if (narrow == wide) return true;
  if (is_low_precision(narrow)) return wide == DType::f32 || wide == DType::f64;
  return narrow == DType::f32 && wide == DType::f64;
}

/// The constant in type `to`, when that is the same number.
bool fold_constant(const Stmt& c, DType to, Scalar& out) {
  if (is_low_precision(to) || is_bool(to) || is_bool(c.type) || std::holds_alternative<bool>(c.value)) return false;
  if (const auto* i = std::get_if<std::int64_t>(&c.value)) {
    out = *i;
    return is_float(to) && std::llabs(*i) <= (1 << 24);
  }
  const double d = std::get<double>(c.value);
  out = d;
  return is_float(to) && is_float(c.type) && (to == DType::f64 ? c.type == DType::f32 : true) &&
         static_cast<double>(static_cast<float>(d)) == d;
}

}  // namespace

Kernel simplify(const Kernel& k) {
  Kernel out = k;
  out.stmts.clear();
  std::vector<int> to(k.stmts.size());
  std::map<std::string, int> seen;
  for (std::size_t i = 0; i < k.stmts.size(); ++i) {
    Stmt s = k.stmts[i];
    for (int& a : s.args) a = to[a];
    if (s.kind == StmtKind::cast) {
      const Stmt from = out.stmts[s.args[0]];
      if (from.type == s.type) {
        to[i] = s.args[0];
        continue;
      }
      if (from.kind == StmtKind::cast && !from.user && out.stmts[from.args[0]].type == s.type && exact_in(s.type, from.type)) {
        to[i] = from.args[0];
        continue;
      }
      Scalar folded;
      if (from.kind == StmtKind::constant && fold_constant(from, s.type, folded)) {
        s.kind = StmtKind::constant;
        s.value = folded;
        s.args.clear();
      }
    }
    if (s.kind != StmtKind::store) {
      const std::string id = key(out, s);
      auto it = seen.find(id);
      if (it != seen.end()) {
        to[i] = it->second;
        continue;
      }
      seen[id] = static_cast<int>(out.stmts.size());
    }
    to[i] = static_cast<int>(out.stmts.size());
    out.stmts.push_back(std::move(s));
  }
  // Dead statements.
  std::vector<bool> live(out.stmts.size());
  for (std::size_t i = out.stmts.size(); i-- > 0;) {
    live[i] = live[i] || out.stmts[i].kind == StmtKind::store;
    if (live[i])
      for (int a : out.stmts[i].args) live[a] = true;
  }
  std::vector<Stmt> kept;
  std::vector<int> place(out.stmts.size());
  for (std::size_t i = 0; i < out.stmts.size(); ++i) {
    if (!live[i]) continue;
    for (int& a : out.stmts[i].args) a = place[a];
    place[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(out.stmts[i]));
  }
  out.stmts = std::move(kept);
  return out;
}

}  // namespace fuselab::kernel
