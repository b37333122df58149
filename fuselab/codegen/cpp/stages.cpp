#include "fuselab/codegen/cpp/stages.h"

#include <fmt/format.h>

#include <algorithm>

namespace fuselab::codegen::cpp {

using kernel::Form;
using kernel::kLanes;
using kernel::Stmt;
using kernel::StmtKind;

namespace {

constexpr int kCheap = 14;  // cycles per step below which one chain of additions is slower than the work: four bodies then

bool multiple(const Expr& e, std::int64_t of) { return e.is_const() && e.value() % of == 0; }

}  // namespace

Stages::Stages(const kernel::Schedule& s, Writer& w, Needs& needs, Values& values)
    : s_(s), k_(s.kernel), w_(w), needs_(needs), v_(values), rows_(s.form == Form::rows) {
  for (const auto& g : s.loops)
    for (int a : g) (rows_ ? outer_ : lane_axes_).push_back(a);
  if (rows_) lane_axes_ = s.vector_axes;
  auto extent = [&](const std::vector<int>& axes) {
    Expr e = 1;
    for (int a : axes) e = e * k_.axes[static_cast<std::size_t>(a)].extent;
    return e;
  };
  n_ = extent(lane_axes_);
  points_ = extent(outer_);
  steps_ = rows_ ? floordiv(n_ + Expr(kLanes - 1), kLanes) : n_;
  if (rows_) v_.place_tiles(slot());
}

/// The index variable beside a value variable: `x_c0` -> `x_c0_i`, `x_s[l]` -> `x_s_i[l]`.
std::string Stages::index_of(const std::string& v) {
  const std::size_t bracket = v.find('[');
  return bracket == std::string::npos ? v + "_i" : v.substr(0, bracket) + "_i" + v.substr(bracket);
}

bool Stages::is_arg(int r) const { return k_.stmts[static_cast<std::size_t>(r)].finds_first(); }

/// fl_argmax or fl_argmin, which both kinds of reduction share.
std::string Stages::arg_function(int r) const {
  const auto& op = k_.stmts[static_cast<std::size_t>(r)].op;
  return op == "argmax" || op == "firstmax" ? "fl_argmax" : "fl_argmin";
}

std::string Stages::slot() const { return outer_.empty() ? "step" : fmt::format("(g * ({}) + step)", Values::size(steps_)); }

std::string Stages::scratch_bytes() const {
  Expr bytes = 0;
  for (std::size_t i = 0; i < k_.stmts.size(); ++i)
    if (s_.keep[i]) bytes = bytes + points_ * steps_ * Expr(kLanes * std::max(4, size_of(k_.stmts[i].type)));
  if (rows_)
    for (std::size_t i = 0; i < k_.stmts.size(); ++i)
      if (s_.tiled[i]) bytes = bytes + turned_bytes(static_cast<int>(i));
  return bytes.is(0) ? "0" : Values::size(bytes);
}

void Stages::kept_pointers() {
  Expr at = 0;
  for (std::size_t i = 0; i < k_.stmts.size(); ++i) {
    if (!s_.keep[i]) continue;
    const std::string type = vector_type(k_.stmts[i].type);
    w_.line(fmt::format("{0}* const {1}_kept = ({0}*)(scratch + ({2}));", type, v_.var(static_cast<int>(i)), Values::size(at)));
    at = at + points_ * steps_ * Expr(kLanes * std::max(4, size_of(k_.stmts[i].type)));
  }
  for (std::size_t i = 0; rows_ && i < k_.stmts.size(); ++i) {
    if (!s_.tiled[i]) continue;
    w_.line(fmt::format("{0}* const {1}_{2} = ({0}*)(scratch + ({3}));", memory_vector(k_.stmts[i].type),
                        v_.var(static_cast<int>(i)), s_.strips() ? "turned" : "t", Values::size(at)));
    at = at + turned_bytes(static_cast<int>(i));
  }
}

/// The argmax (argmin) of the same values as firstmax (firstmin) `r`, which finds what `r` wants on its way; -1 if there is none.
int Stages::index_twin(int r) const {
  const Stmt& st = k_.stmts[static_cast<std::size_t>(r)];
  if (st.op != "firstmax" && st.op != "firstmin") return -1;
  const char* twin = st.op == "firstmax" ? "argmax" : "argmin";
  for (std::size_t i = 0; i < k_.stmts.size(); ++i)
    if (k_.stmts[i].kind == StmtKind::reduce && k_.stmts[i].op == twin && k_.stmts[i].args == st.args) return static_cast<int>(i);
  return -1;
}

Stages::Plan Stages::plan(int stage) const {
  Plan p;
  std::vector<bool> needed(k_.stmts.size());
  for (std::size_t j = k_.stmts.size(); j-- > 0;) {
    const Stmt& st = k_.stmts[j];
    const int i = static_cast<int>(j);
    if (s_.stage[j] == stage && st.kind == StmtKind::reduce) {
      const int twin = index_twin(i);
      if (twin >= 0)
        p.values_of.emplace_back(i, twin);
      else
        p.reduces.insert(p.reduces.begin(), i);
    }
    if (s_.stage[j] == stage && st.kind == StmtKind::store && s_.inner[j]) p.stores.insert(p.stores.begin(), i);
    const bool root = s_.stage[j] == stage && (st.kind == StmtKind::reduce || (st.kind == StmtKind::store && s_.inner[j]));
    if (root || (s_.keep[j] && s_.stage[j] == stage)) needed[j] = true;
    if (!needed[j] || (st.kind == StmtKind::reduce && !root)) continue;
    if (s_.inner[j] && st.kind != StmtKind::reduce) p.body.insert(p.body.begin(), i);
    if (s_.keep[j] && s_.stage[j] < stage) continue;  // read back, not computed
    for (int a : st.args)
      if (s_.inner[static_cast<std::size_t>(a)]) needed[static_cast<std::size_t>(a)] = true;
  }
  return p;
}

/// Prints the statements of one step. In scope: q; here e (position of lane 0) and, for part of a vector, m.
void Stages::body(const Plan& p, int stage, const std::string& q, bool whole) {
  w_.line(fmt::format("const i64 step = {};", q));
  if (rows_) {
    w_.line("const i64 e = step * 16;");
    if (!whole) w_.line(fmt::format("const i32 m = ({0}) - e < 16 ? (i32)(({0}) - e) : 16;", Values::size(n_)));
  } else {
    v_.coordinates(lane_axes_, "step");
  }
  const bool lanes_whole =
      rows_ ? whole
            : multiple(k_.axes[static_cast<std::size_t>(s_.vector_axes.back())].extent, kLanes) && s_.vector_axes.size() == 1;
  const std::string at = slot();
  for (int i : p.body) {
    const bool kept = s_.keep[static_cast<std::size_t>(i)];
    if (kept && s_.stage[static_cast<std::size_t>(i)] < stage) {
      w_.line(fmt::format("const {} {} = {}_kept[{}];", vector_type(v_.type(i)), v_.var(i), v_.var(i), at));
      continue;
    }
    v_.statement(i, lanes_whole);
    if (kept) w_.line(fmt::format("{0}_kept[{1}] = {0};", v_.var(i), at));
  }
}

void Stages::accumulate(int r, const std::string& chain, bool whole) {
  const Stmt& st = k_.stmts[static_cast<std::size_t>(r)];
  const int arg = st.args[0];
  const DType t = v_.type(arg);
  std::string v = v_.var(arg);
  const std::string acc = v_.var(r) + "_" + chain;
  const bool part = rows_ && !whole;
  if (part) {
    needs_.helpers.insert("lanes");
    v = select("fl_lanes(m)", v, splat(identity_text(st.op, t), t), t);
  }
  if (!is_arg(r)) {
    w_.line(fmt::format("{} = {};", acc, combine_text(st.op, t, acc, v, needs_)));
    return;
  }
  needs_.helpers.insert("arg");
  needs_.helpers.insert("iota");
  const std::string first = outer_.empty() ? "0l" : fmt::format("g * ({})", Values::size(n_));
  std::string index = rows_ ? fmt::format("fl_iota({} + e)", first) : "(i64x16)(step)";
  if (part) index = fmt::format("({} ? {} : (i64x16)(9223372036854775807l))", widen_mask("fl_lanes(m)", DType::i64), index);
  w_.line(fmt::format("{}({}, {}, {}, {});", arg_function(r), acc, index_of(acc), v, index));
}

/// `V x<suffix> = start;` for every reduction (and its index), or with `dims` an array `V x<suffix><dims>;`.
void Stages::declare(const Plan& p, const std::string& suffix, const std::string& dims) {
  for (int r : p.reduces) {
    const Stmt& st = k_.stmts[static_cast<std::size_t>(r)];
    const DType t = v_.type(st.args[0]);
    const std::string name = v_.var(r) + suffix;
    const std::string value = splat(identity_text(st.op, t), t), index = "(i64x16)(9223372036854775807l)";
    w_.line(vector_type(t) + " " + name + (dims.empty() ? " = " + value : dims) + ";");
    if (is_arg(r)) w_.line("i64x16 " + index_of(name) + (dims.empty() ? " = " + index : dims) + ";");
  }
}

void Stages::merge(int r, const std::string& into, const std::string& left, const std::string& right) {
  const Stmt& st = k_.stmts[static_cast<std::size_t>(r)];
  const DType t = v_.type(st.args[0]);
  if (!is_arg(r)) {
    w_.line(fmt::format("{} = {};", into, combine_text(st.op, t, left, right, needs_)));
    return;
  }
  needs_.helpers.insert("arg");
  w_.line(fmt::format("{{ {0} t = {1}; i64x16 ti = {2}; {3}(t, ti, {4}, {5}); {6} = t; {7} = ti; }}", vector_type(t), left,
                      index_of(left), arg_function(r), right, index_of(right), into, index_of(into)));
}

/// A binary counter: result number `count` meets its equals, as in pairwise summation.
void Stages::push(const Plan& p, const std::string& stack, const std::string& count, const std::string& value) {
  w_.line("i32 level = 0;");
  w_.open(fmt::format("for (i64 c = {}; c & 1; c >>= 1, ++level)", count));
  for (int r : p.reduces) merge(r, v_.var(r) + value, v_.var(r) + stack + "[level]", v_.var(r) + value);
  w_.close();
  for (int r : p.reduces) {
    w_.line(fmt::format("{}{}[level] = {}{};", v_.var(r), stack, v_.var(r), value));
    if (is_arg(r)) w_.line(fmt::format("{}[level] = {};", index_of(v_.var(r) + stack), index_of(v_.var(r) + value)));
  }
}

void Stages::flush(const Plan& p, const std::string& stack, const std::string& count, const std::string& into) {
  w_.line("bool first = true;");
  w_.open(fmt::format("for (i64 c = {}, level = 0; c != 0; c >>= 1, ++level)", count));
  w_.line("if (!(c & 1)) continue;");
  w_.open("if (first)");
  for (int r : p.reduces) {
    w_.line(fmt::format("{}{} = {}{}[level];", v_.var(r), into, v_.var(r), stack));
    if (is_arg(r)) w_.line(fmt::format("{} = {}[level];", index_of(v_.var(r) + into), index_of(v_.var(r) + stack)));
  }
  w_.close(" else {");
  w_.open("");
  for (int r : p.reduces) merge(r, v_.var(r) + into, v_.var(r) + stack + "[level]", v_.var(r) + into);
  w_.close();
  w_.line("}");
  w_.line("first = false;");
  w_.close();
}

/// Steps [b, end) of one block into x_b.
void Stages::block(const Plan& p, int stage, bool single) {
  const std::string steps = Values::size(steps_), full = rows_ ? fmt::format("({}) / 16", Values::size(n_)) : steps;
  w_.line(single ? fmt::format("const i64 b = 0, end = {};", steps)
                 : fmt::format("const i64 end = b + {0} < ({1}) ? b + {0} : ({1});", block_steps(), steps));
  for (int c = 0; c < kernel::kChains; ++c) declare(p, fmt::format("_c{}", c));
  w_.line(fmt::format("const i64 full = ({0}) < end ? ({0}) : end;", full));
  w_.line("i64 q = b;");
  const bool cheap = s_.cost[static_cast<std::size_t>(stage)] < kCheap;
  const bool short_row = single && steps_.is_const() && n_.is_const() && steps_.value() <= (cheap ? 2 : 1) * kernel::kChains;
  const bool exact = rows_ ? multiple(n_, kLanes) : true;
  auto by_chain = [&](bool whole) {
    w_.open("switch (q & 3)");
    for (int c = 0; c < kernel::kChains; ++c) {
      w_.open(c == 3 ? "default:" : fmt::format("case {}:", c));
      for (int r : p.reduces) accumulate(r, fmt::format("c{}", c), whole);
      w_.line("break;");
      w_.close();
    }
    w_.close();
  };
  if (short_row) {  // every step known: no loop, no choice of chain
    w_.line("(void)full; (void)q;");
    for (std::int64_t i = 0; i < steps_.value(); ++i) {
      const bool whole = !rows_ || (i + 1) * kLanes <= n_.value();
      w_.open("");
      body(p, stage, std::to_string(i), whole);
      for (int r : p.reduces) accumulate(r, fmt::format("c{}", i % kernel::kChains), whole);
      w_.close();
    }
  } else if (cheap) {
    w_.open("for (; q + 4 <= full; q += 4)");
    for (int c = 0; c < kernel::kChains; ++c) {
      w_.open("");
      body(p, stage, fmt::format("q + {}", c), true);
      for (int r : p.reduces) accumulate(r, fmt::format("c{}", c), true);
      w_.close();
    }
    w_.close();
    if (!(exact && multiple(steps_, 4))) {
      w_.open("for (; q < end; ++q)");
      body(p, stage, "q", !rows_);
      by_chain(!rows_);
      w_.close();
    }
  } else {
    w_.open("for (; q < full; ++q)");
    body(p, stage, "q", true);
    by_chain(true);
    w_.close();
    if (!exact) {
      w_.open("if (q < end)");
      body(p, stage, "q", false);
      by_chain(false);
      w_.close();
    }
  }
  for (int r : p.reduces) {
    const std::string x = v_.var(r);
    merge(r, x + "_c0", x + "_c0", x + "_c1");
    merge(r, x + "_c2", x + "_c2", x + "_c3");
    merge(r, x + "_c0", x + "_c0", x + "_c2");
  }
}

/// Reductions along the steps into x<suffix>, which is declared.
void Stages::lane_loops(const Plan& p, int stage, const std::string& suffix) {
  const bool single = steps_.is_const() && steps_.value() <= block_steps();
  if (single) {
    w_.open("");
    block(p, stage, true);
    for (int r : p.reduces) {
      w_.line(fmt::format("{0}{1} = {0}_c0;", v_.var(r), suffix));
      if (is_arg(r)) w_.line(fmt::format("{} = {};", index_of(v_.var(r) + suffix), index_of(v_.var(r) + "_c0")));
    }
    w_.close();
    return;
  }
  w_.open("");
  declare(p, "_s", kStack);
  w_.open(fmt::format("for (i64 b = 0; b < {}; b += {})", Values::size(steps_), block_steps()));
  block(p, stage, false);
  push(p, "_s", fmt::format("b / {}", block_steps()), "_c0");
  w_.close();
  flush(p, "_s", fmt::format("(({}) + {}) / {}", Values::size(steps_), block_steps() - 1, block_steps()), suffix);
  w_.close();
}

/// A pass that only stores.
void Stages::store_loops(const Plan& p, int stage) {
  if (!rows_) {
    w_.open(fmt::format("for (i64 q = 0; q < {}; ++q)", Values::size(steps_)));
    body(p, stage, "q", true);
    w_.close();
    return;
  }
  w_.open(fmt::format("for (i64 q = 0; q < ({}) / 16; ++q)", Values::size(n_)));
  body(p, stage, "q", true);
  w_.close();
  if (multiple(n_, kLanes)) return;
  w_.open(fmt::format("if (const i64 q = ({0}) / 16; q * 16 < ({0}))", Values::size(n_)));
  body(p, stage, "q", false);
  w_.close();
}

/// All lanes become the whole: lane i meets lane i + 8, then + 4, + 2, + 1.
void Stages::across_lanes(int r) {
  const Stmt& st = k_.stmts[static_cast<std::size_t>(r)];
  const std::string x = v_.var(r) + "_a";
  if (is_arg(r)) {
    needs_.helpers.insert("rotate");
    for (int d : {8, 4, 2, 1})
      w_.line(fmt::format("{0}({1}, {2}, fl_rotate{3}({1}), fl_rotate{3}({2}));", arg_function(r), x, index_of(x), d));
    return;
  }
  needs_.helpers.insert("across");
  const DType t = v_.type(st.args[0]);
  const bool wraps = (st.op == "sum" || st.op == "prod") && !is_float(t);  // on unsigned lanes, where overflow is defined
  const std::string u = wraps ? fmt::format("u{}x16", 8 * size_of(is_bool(t) ? DType::i32 : t)) : vector_type(t);
  const std::string meet = st.op == "sum"    ? "a + b"
                           : st.op == "prod" ? "a * b"
                           : st.op == "any"  ? "a | b"
                           : st.op == "all"  ? "a & b"
                           : is_bool(t)      ? (st.op == "max" ? "a | b" : "a & b")
                                             : fmt::format("fl_fold_{}(a, b)", st.op);
  w_.line(fmt::format("{0} = ({1})fl_across(({2}){0}, [](auto a, auto b) __attribute__((always_inline)) {{ return {3}; }});", x,
                      vector_type(t), u, meet));
}

void Stages::stage(int stage) {
  const Plan p = plan(stage);
  if (p.reduces.empty() && p.stores.empty()) return;
  std::string what;
  for (int r : p.reduces) what += (what.empty() ? "" : ", ") + k_.stmts[static_cast<std::size_t>(r)].op + " " + v_.var(r);
  for (int st : p.stores)
    what += (what.empty() ? "" : ", ") + std::string("store ") +
            k_.buffers[static_cast<std::size_t>(k_.stmts[static_cast<std::size_t>(st)].buffer)].name;
  w_.line(fmt::format("// Pass {}: {}", stage + 1, what));
  declare(p, "_a");
  if (outer_.empty()) {
    if (p.reduces.empty())
      store_loops(p, stage);
    else
      lane_loops(p, stage, "_a");
  } else {
    w_.open("");
    if (!p.reduces.empty()) declare(p, "_o", kStack);
    w_.open(fmt::format("for (i64 g = 0; g < {}; ++g)", Values::size(points_)));
    v_.coordinates(outer_, "g");
    if (p.reduces.empty()) {
      store_loops(p, stage);
    } else {
      declare(p, "_t");
      lane_loops(p, stage, "_t");
      push(p, "_o", "g", "_t");
    }
    w_.close();
    if (!p.reduces.empty()) flush(p, "_o", Values::size(points_), "_a");
    w_.close();
  }
  results(p);
}

void Stages::results(const Plan& p) {
  for (int r : p.reduces) {
    if (rows_) across_lanes(r);
    const std::string x = v_.var(r);
    const Stmt& st = k_.stmts[static_cast<std::size_t>(r)];
    const bool index = st.op == "argmax" || st.op == "argmin";
    w_.line(index ? fmt::format("const i64x16 {0} = {0}_a_i;", x)
                  : fmt::format("const {1} {0} = {0}_a;", x, vector_type(st.type)));
  }
  for (const auto& [value, index] : p.values_of)
    w_.line(fmt::format("const {} {} = {}_a;", vector_type(v_.type(value)), v_.var(value), v_.var(index)));
}

bool Stages::blocked() const {
  if (rows_ || s_.form != Form::columns || s_.stages != 1 || (steps_.is_const() && steps_.value() <= block_steps())) return false;
  const Plan p = plan(0);
  return p.stores.empty() && !p.reduces.empty();
}

Expr Stages::columns() const {
  Expr n = 1;
  for (int a : s_.vector_axes) n = n * k_.axes[static_cast<std::size_t>(a)].extent;
  return n;
}

/// Where vector `w` of the tile lies.
void Stages::columns_of(const std::string& w) {
  const Expr n = columns();
  w_.line(fmt::format("const i64 e = (tile * {} + {}) * 16;", kColumnVectors, w));
  if (!multiple(n, kLanes * kColumnVectors)) w_.line(fmt::format("if (e >= {}) break;", Values::size(n)));
  w_.line(fmt::format("const i32 m = ({0}) - e < 16 ? (i32)(({0}) - e) : 16;", Values::size(n)));
  w_.line("(void)m;");
}

void Stages::blocked_stage(const std::function<void()>& before, const std::function<void()>& after) {
  const Plan p = plan(0);
  w_.line("// One pass, block by block, so that neighbouring columns share cache lines.");
  declare(p, "_s", fmt::format("[{}]{}", kColumnVectors, kStack));
  w_.open(fmt::format("for (i64 b = 0; b < {}; b += {})", Values::size(steps_), block_steps()));
  w_.open(fmt::format("for (i32 w = 0; w < {}; ++w)", kColumnVectors));
  columns_of("w");
  before();
  block(p, 0, false);
  push(p, "_s[w]", fmt::format("b / {}", block_steps()), "_c0");
  w_.close();
  w_.close();
  w_.open(fmt::format("for (i32 w = 0; w < {}; ++w)", kColumnVectors));
  columns_of("w");
  before();
  declare(p, "_a");
  flush(p, "_s[w]", fmt::format("(({}) + {}) / {}", Values::size(steps_), block_steps() - 1, block_steps()), "_a");
  results(p);
  after();
  w_.close();
}

}  // namespace fuselab::codegen::cpp
