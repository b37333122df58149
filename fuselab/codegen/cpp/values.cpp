#include "fuselab/codegen/cpp/values.h"

#include <fmt/format.h>

#include <cctype>

namespace fuselab::codegen::cpp {

using kernel::Form;
using kernel::Index;
using kernel::Stmt;
using kernel::StmtKind;

namespace {

std::string identifier(const std::string& text) {
  std::string out;
  for (char c : text) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return out.substr(0, 40);
}

}  // namespace

Values::Values(const kernel::Schedule& s, Writer& w, Needs& needs) : s_(s), k_(s.kernel), w_(w), needs_(needs) {
  for (std::size_t i = 0; i < k_.stmts.size(); ++i) {
    const Stmt& st = k_.stmts[i];
    std::string base = !st.name.empty() ? st.name : st.kind == StmtKind::compute || st.kind == StmtKind::reduce ? st.op : "v";
    vars_.push_back(fmt::format("{}_{}", identifier(base), i));
  }
}

std::string Values::size(const Expr& e) {
  return e.cpp([](const std::string& s) { return "s_" + s; });
}

bool Values::along_lanes(const Index& index) const {
  for (int a : s_.vector_axes)
    if (!index.coefficient(a).is(0)) return true;
  return false;
}

/// Position part of an access: `rows` the row axes (and the constant offset), otherwise the loop axes.
std::string Values::offset(const Index& index, bool rows) const {
  std::string out;
  auto add = [&](const std::string& t) { out += (out.empty() ? "" : " + ") + t; };
  auto axis = [&](int a) {
    const Expr c = index.coefficient(a);
    if (!c.is(0))
      add(c.is(1) ? k_.axes[static_cast<std::size_t>(a)].name
                  : fmt::format("{} * ({})", k_.axes[static_cast<std::size_t>(a)].name, size(c)));
  };
  if (rows) {
    for (int a : s_.row_axes) axis(a);
    if (!index.offset.is(0)) add("(" + size(index.offset) + ")");
  } else {
    for (const auto& g : s_.loops)
      for (int a : g) axis(a);
  }
  return out.empty() ? "0" : out;
}

std::string Values::pointer(int i) const {
  const Stmt& st = k_.stmts[static_cast<std::size_t>(i)];
  return pointers_.at(std::to_string(st.buffer) + "|" + offset(st.index, true));
}

void Values::row_pointers() {
  for (const Stmt& st : k_.stmts) {
    if (st.kind != StmtKind::load && st.kind != StmtKind::store) continue;
    const std::string off = offset(st.index, true), key = std::to_string(st.buffer) + "|" + off;
    if (pointers_.count(key) != 0) continue;
    const auto& b = k_.buffers[static_cast<std::size_t>(st.buffer)];
    const std::string var = fmt::format("{}_{}p", identifier(b.name), pointers_.size());
    pointers_[key] = var;
    w_.line(fmt::format("{0}{1}* const {2} = ({0}{1}*)bufs[{3}]{4};", b.output ? "" : "const ", memory_type(b.dtype), var,
                        st.buffer, off == "0" ? "" : " + (" + off + ")"));
  }
}

void Values::coordinates(const std::vector<int>& axes, const std::string& linear) {
  std::string rest = linear;
  for (std::size_t j = axes.size(); j-- > 0;) {
    const auto& a = k_.axes[static_cast<std::size_t>(axes[j])];
    if (j == 0) {
      w_.line(fmt::format("const i64 {} = {};", a.name, rest));
    } else {
      w_.line(fmt::format("const i64 {0} = {1} % ({2}), {0}_rest = {1} / ({2});", a.name, rest, size(a.extent)));
      rest = a.name + "_rest";
    }
  }
}

Values::Mode Values::mode(const Index& index, Expr& stride) const {
  if (!along_lanes(index)) return Mode::splat;
  for (std::size_t j = 0; j + 1 < s_.vector_axes.size(); ++j) {
    const int outer = s_.vector_axes[j], inner = s_.vector_axes[j + 1];
    if (index.coefficient(outer) != index.coefficient(inner) * k_.axes[static_cast<std::size_t>(inner)].extent)
      return Mode::gather;
  }
  stride = index.coefficient(s_.vector_axes.back());
  return stride.is(1) ? Mode::contiguous : Mode::strided;
}

/// Inside a loop over `l`: the coordinates of lane l along the vector axes, as z<axis>.
void Values::gather_coordinates() {
  std::string rest = "(e + l)";
  for (std::size_t j = s_.vector_axes.size(); j-- > 0;) {
    const auto& a = k_.axes[static_cast<std::size_t>(s_.vector_axes[j])];
    w_.line(j == 0 ? fmt::format("const i64 z_{} = {};", a.name, rest)
                   : fmt::format("const i64 z_{0} = {1} % ({2}), z_{0}_rest = {1} / ({2});", a.name, rest, size(a.extent)));
    rest = "z_" + a.name + "_rest";
  }
}

std::string Values::lane_offset(const Index& index) const {
  std::string out = offset(index, false);
  for (int a : s_.vector_axes) {
    const Expr c = index.coefficient(a);
    if (!c.is(0)) out += fmt::format(" + z_{} * ({})", k_.axes[static_cast<std::size_t>(a)].name, size(c));
  }
  return out;
}

void Values::move_tile(int i, const std::string& lanes, const std::string& rows, const std::string& tile) {
  const Stmt& st = k_.stmts[static_cast<std::size_t>(i)];
  const bool load = st.kind == StmtKind::load;
  const std::string stride = size(st.index.coefficient(s_.vector_axes.back()));
  needs_.helpers.insert("tile");
  w_.line(fmt::format("fl_{0}_tile<{1}, {2}, {11}>(({3}{2}*)bufs[{4}] + ({5}) + ({6}) + e * ({7}), {7}, {8}, {9}, {10});",
                      load ? "load" : "store", memory_vector(st.type), memory_type(st.type), load ? "const " : "", st.buffer,
                      offset(st.index, true), offset(st.index, false), stride, lanes, rows, tile, rows == "rows" ? "0" : rows));
}

void Values::load(int i, bool whole) {
  const Stmt& st = k_.stmts[static_cast<std::size_t>(i)];
  const std::string p = pointer(i), off = offset(st.index, false), mv = memory_vector(st.type), mt = memory_type(st.type);
  const std::string n = active(whole);
  Expr stride;
  std::string v;
  if (s_.tiled[static_cast<std::size_t>(i)]) {
    v = fmt::format("{}_t[{}]", var(i), place_);
    if (is_bool(st.type)) v = fmt::format("__builtin_convertvector({} != 0, i32x16)", v);
    w_.line(fmt::format("const {} {} = {};", vector_type(st.type), var(i), v));
    return;
  }
  switch (mode(st.index, stride)) {
    case Mode::splat:
      v = is_bool(st.type) ? fmt::format("(i32x16)({}[{}] != 0 ? -1 : 0)", p, off) : fmt::format("({})({}[{}])", mv, p, off);
      w_.line(fmt::format("const {} {} = {};", vector_type(st.type), var(i), v));
      return;
    case Mode::contiguous:
      if (!whole) needs_.helpers.insert("part");
      v = whole ? fmt::format("fl_load<{}>({} + {} + e)", mv, p, off)
                : fmt::format("fl_load_part<{}, {}>({} + {} + e, {})", mv, mt, p, off, n);
      break;
    case Mode::strided:
      needs_.helpers.insert("strided");
      v = fmt::format("fl_load_strided<{}, {}>({} + {} + e * ({}), {}, {})", mv, mt, p, off, size(stride), size(stride), n);
      break;
    case Mode::gather:
      w_.line(fmt::format("{0} {1}_m = ({0})({2})0;", mv, var(i), mt));
      w_.open(fmt::format("for (i32 l = 0; l < {}; ++l)", n));
      gather_coordinates();
      w_.line(fmt::format("{}_m[l] = {}[{}];", var(i), p, lane_offset(st.index)));
      w_.close();
      v = var(i) + "_m";
      break;
  }
  if (is_bool(st.type)) v = fmt::format("__builtin_convertvector({} != 0, i32x16)", v);
  w_.line(fmt::format("const {} {} = {};", vector_type(st.type), var(i), v));
}

void Values::store(int i, bool whole) {
  const Stmt& st = k_.stmts[static_cast<std::size_t>(i)];
  const std::string p = pointer(i), off = offset(st.index, false), mv = memory_vector(st.type), mt = memory_type(st.type);
  const std::string n = active(whole);
  std::string v = var(st.args[0]);
  Expr stride;
  const Mode where = mode(st.index, stride);
  if (where == Mode::splat) {
    w_.line(fmt::format("{}[{}] = {}[0]{};", p, off, v, is_bool(st.type) ? " & 1" : ""));
    return;
  }
  if (is_bool(st.type)) v = fmt::format("__builtin_convertvector({} & 1, u8x16)", v);
  if (s_.tiled[static_cast<std::size_t>(i)]) {
    w_.line(fmt::format("{}_t[{}] = {};", var(i), place_, v));
    return;
  }
  switch (where) {
    case Mode::contiguous:
      if (!whole) {
        needs_.helpers.insert("part");
        w_.line(fmt::format("fl_store_part<{}, {}>({} + {} + e, {}, {});", mv, mt, p, off, v, n));
      } else if (s_.stream[static_cast<std::size_t>(i)]) {
        needs_.helpers.insert("stream");
        w_.line(fmt::format("fl_stream<{}, {}>({} + {} + e, {});", mv, mt, p, off, v));
      } else {
        w_.line(fmt::format("fl_store<{}>({} + {} + e, {});", mv, p, off, v));
      }
      break;
    case Mode::strided:
      needs_.helpers.insert("strided");
      w_.line(fmt::format("fl_store_strided<{}, {}>({} + {} + e * ({}), {}, {}, {});", mv, mt, p, off, size(stride), size(stride),
                          v, n));
      break;
    default:
      w_.line(fmt::format("const {} {}_m = {};", mv, var(i), v));
      w_.open(fmt::format("for (i32 l = 0; l < {}; ++l)", n));
      gather_coordinates();
      w_.line(fmt::format("{}[{}] = {}_m[l];", p, lane_offset(st.index), var(i)));
      w_.close();
  }
}

void Values::index_value(int i) {
  const Stmt& st = k_.stmts[static_cast<std::size_t>(i)];
  const std::string base = fmt::format("{} + {}", offset(st.index, true), offset(st.index, false));
  Expr stride;
  switch (mode(st.index, stride)) {
    case Mode::splat:
      w_.line(fmt::format("const i64x16 {} = (i64x16)({});", var(i), base));
      return;
    case Mode::gather:
      w_.line(fmt::format("i64x16 {} = (i64x16)(0l);", var(i)));
      w_.open("for (i32 l = 0; l < 16; ++l)");
      gather_coordinates();
      w_.line(fmt::format("{}[l] = {} + {};", var(i), offset(st.index, true), lane_offset(st.index)));
      w_.close();
      return;
    default:
      needs_.helpers.insert("iota");
      w_.line(fmt::format("const i64x16 {} = (i64x16)({}) + fl_iota(e) * (i64x16)({});", var(i), base, size(stride)));
  }
}

void Values::statement(int i, bool whole) {
  const Stmt& st = k_.stmts[static_cast<std::size_t>(i)];
  switch (st.kind) {
    case StmtKind::load:
      load(i, whole);
      return;
    case StmtKind::store:
      store(i, whole);
      return;
    case StmtKind::index:
      index_value(i);
      return;
    case StmtKind::constant:
      w_.line(fmt::format("const {} {} = {};", vector_type(st.type), var(i), splat(literal(st.value, st.type), st.type)));
      return;
    case StmtKind::size:
      w_.line(fmt::format("const i64x16 {} = (i64x16)({});", var(i), size(st.size)));
      return;
    case StmtKind::cast:
      w_.line(fmt::format("const {} {} = {};", vector_type(st.type), var(i),
                          convert(var(st.args[0]), type(st.args[0]), st.type, needs_.helpers)));
      return;
    case StmtKind::compute: {
      std::vector<std::string> args;
      for (int a : st.args) args.push_back(var(a));
      w_.line(fmt::format("const {} {} = {};", vector_type(st.type), var(i), compute_text(k_, st, args, active(whole), needs_)));
      return;
    }
    case StmtKind::reduce:
      return;
  }
}

}  // namespace fuselab::codegen::cpp
