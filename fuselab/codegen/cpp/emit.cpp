#include "fuselab/codegen/cpp/emit.h"

#include <fmt/format.h>

#include "fuselab/codegen/cpp/helpers.h"
#include "fuselab/codegen/cpp/stages.h"
#include "fuselab/codegen/cpp/vecmath/vecmath.h"
#include "fuselab/core/hash.h"

namespace fuselab::codegen::cpp {
namespace {

using kernel::Form;
using kernel::kLanes;
using kernel::StmtKind;

constexpr std::int64_t kTile = 8192;          // elements of one unit of an element kernel
constexpr std::int64_t kGrainCycles = 60000;  // work below which a second thread costs more than it brings

class Emitter {
 public:
  explicit Emitter(const kernel::Schedule& s) : s_(s), k_(s.kernel), values_(s, w_, needs_), stages_(s, w_, needs_, values_) {
    lanes_ = Expr(1);
    for (int a : s_.vector_axes) lanes_ = lanes_ * k_.axes[static_cast<std::size_t>(a)].extent;
    rows_ = Expr(1);
    for (int a : s_.row_axes) {
      const Expr& extent = k_.axes[static_cast<std::size_t>(a)].extent;
      rows_ = rows_ * (a == s_.tile_axis ? floordiv(extent + Expr(kLanes - 1), kLanes) : extent);
    }
    if (s_.form == Form::element) {
      if (s_.tile_axis >= 0) tile_ /= kLanes;
      tiles_ = lanes_.is_const() && lanes_.value() <= 2 * tile_ ? Expr(1) : floordiv(lanes_ + Expr(tile_ - 1), tile_);
    }
    const int per_unit = kLanes * (stages_.blocked() ? kColumnVectors : 1);
    if (s_.form == Form::columns) tiles_ = floordiv(lanes_ + Expr(per_unit - 1), per_unit);
  }

  Source run() {
    Source out;
    out.name = k_.name;
    out.sizes = k_.symbols;
    out.tiling_def = tiling_def();
    out.host_impl = host_impl();
    out.device_impl = device_impl();
    out.hash = hash_hex(out.text());
    return out;
  }

 private:
  std::string tiling_def() const {
    std::string fields;
    for (const std::string& s : k_.symbols) fields += fmt::format("  long s_{};\n", s);
    return fmt::format(
        "// Sizes and split of one launch; the first fields are common to all kernels.\n"
        "struct {0}_tiling {{\n  long phases, units[2], grain[2], scratch_bytes, shared_bytes;\n{1}}};\n"
        "extern \"C\" {{\nextern const long {0}_tiling_bytes;\nconst long {0}_tiling_bytes = sizeof(struct {0}_tiling);\n}}\n",
        k_.name, fields);
  }

  std::string symbols_from(const std::string& source) const {
    std::string out;
    for (std::size_t i = 0; i < k_.symbols.size(); ++i)
      out += fmt::format("  const long s_{0} = {1};\n", k_.symbols[i], fmt::format(fmt::runtime(source), k_.symbols[i], i));
    return out;
  }

  std::string host_impl() const {
    std::string copies;
    for (const std::string& s : k_.symbols) copies += fmt::format("  t->s_{0} = s_{0};\n", s);
    const bool split = stages_.split();
    std::int64_t cycles = 0;
    for (int c : s_.cost) cycles += c;
    Expr steps = s_.form == Form::element ? floordiv(min(lanes_, tile_) + Expr(kLanes - 1), kLanes) : Expr(1);
    if (s_.strips()) steps = steps * Expr(kLanes);
    if (s_.form != Form::element)
      for (const kernel::Axis& a : k_.axes)
        if (a.role == kernel::Role::inner) steps = steps * a.extent;
    if (s_.form == Form::rows) steps = floordiv(steps + Expr(kLanes - 1), kLanes);
    if (stages_.blocked()) steps = steps * Expr(kColumnVectors);
    if (split) steps = floordiv(steps, max(stages_.segments(), 1)) + Expr(1);
    return fmt::format(
        "extern \"C\" void {0}_tile(const long* sizes, long threads, void* out) {{\n"
        "  struct {0}_tiling* const t = (struct {0}_tiling*)out;\n  (void)sizes;\n  (void)threads;\n{1}{2}"
        "  const long cycles = ({3}) * {4} + 50;  // of one unit, roughly\n"
        "  t->phases = {9};\n  t->units[0] = ({5}) * ({6}) * ({10});\n  t->units[1] = {11};\n"
        "  t->grain[0] = {7} / cycles + 1;\n  t->grain[1] = 1;\n  t->scratch_bytes = {8};\n  t->shared_bytes = {12};\n}}\n",
        k_.name, symbols_from("sizes[{1}]"), copies, Values::size(steps), cycles + 2, Values::size(rows_), Values::size(tiles_),
        kGrainCycles, s_.form == Form::element ? "0" : stages_.scratch_bytes(), split ? 2 : 1,
        split ? Values::size(stages_.segments()) : "1", split ? Values::size(joined_units()) : "0",
        split ? stages_.shared_bytes(joined_units()) : "0");
  }

  std::string device_impl() {
    w_.open(
        fmt::format("extern \"C\" long {0}_run(void* const* bufs, const void* tiling, long phase, long begin, long end_unit, "
                    "char* scratch, char* shared)",
                    k_.name));
    w_.line(fmt::format("const struct {0}_tiling* const t = (const struct {0}_tiling*)tiling;", k_.name));
    w_.line("(void)t; (void)phase; (void)scratch; (void)shared;");
    for (const std::string& s : k_.symbols) w_.line(fmt::format("const i64 s_{0} = t->s_{0};", s));
    w_.line("i64 status = 0;");
    if (s_.form != Form::element) stages_.kept_pointers();
    if (stages_.split()) {
      split();
    } else {
      w_.open("for (i64 unit = begin; unit < end_unit; ++unit)");
      if (s_.form == Form::element && s_.tile_axis >= 0)
        tiled();
      else if (s_.form == Form::element)
        element();
      else
        reducing();
      w_.close();
    }
    for (bool stream : s_.stream)
      if (stream) {
        w_.line("__builtin_ia32_sfence();  // streamed stores are visible before the kernel returns");
        break;
      }
    w_.line("return status;");
    w_.close();
    return std::string(vecmath::prelude()) + helper_texts(needs_.helpers) + vecmath::texts(needs_.functions) + w_.text();
  }

  /// Row statements that are known once the passes before `stage` have run.
  void row_statements(int stage, bool rest) {
    for (std::size_t i = 0; i < k_.stmts.size(); ++i) {
      const auto& st = k_.stmts[i];
      if (s_.inner[i] || st.kind == StmtKind::reduce || (rest ? s_.stage[i] < stage : s_.stage[i] != stage)) continue;
      values_.statement(static_cast<int>(i), whole_lanes());
    }
  }

  /// Do all 16 lanes of a unit always count (outside element loops)?
  bool whole_lanes() const {
    return s_.form != Form::columns || (s_.vector_axes.size() == 1 && lanes_.is_const() && lanes_.value() % kLanes == 0);
  }

  std::string unit_row() {
    if (tiles_.is(1)) return "unit";
    w_.line(fmt::format("const i64 row = unit / ({0}), tile = unit % ({0});", Values::size(tiles_)));
    return "row";
  }

  void element() {
    const std::string row = unit_row(), n = Values::size(lanes_);
    if (!s_.row_axes.empty()) values_.coordinates(s_.row_axes, row);
    values_.row_pointers();
    for (std::size_t i = 0; i < k_.stmts.size(); ++i)
      if (!s_.inner[i]) values_.statement(static_cast<int>(i), true);
    lane_range(n);
    w_.line("i64 e = first;");
    const bool never_whole = lanes_.is_const() && lanes_.value() < kLanes;
    if (!never_whole) {
      w_.open("for (; e + 16 <= last; e += 16)");
      for (std::size_t i = 0; i < k_.stmts.size(); ++i)
        if (s_.inner[i]) values_.statement(static_cast<int>(i), true);
      w_.close();
    }
    if (lanes_.is_const() && lanes_.value() % kLanes == 0) return;
    w_.open("if (e < last)");
    w_.line("const i32 m = (i32)(last - e);");
    for (std::size_t i = 0; i < k_.stmts.size(); ++i)
      if (s_.inner[i]) values_.statement(static_cast<int>(i), false);
    w_.close();
  }

  /// The part of the vector axis that belongs to the unit.
  void lane_range(const std::string& n) {
    w_.line(tiles_.is(1)
                ? fmt::format("const i64 first = 0, last = {};", n)
                : fmt::format("const i64 first = tile * {0}, last = first + {0} < ({1}) ? first + {0} : ({1});", tile_, n));
  }

  /// A unit of 16 rows: its first as `top`, their number as `rows`; the other row axes.
  void strip() {
    const auto& axis = k_.axes[static_cast<std::size_t>(s_.tile_axis)];
    // Neighbouring units read neighbouring memory: the tiled axis runs fastest, then the other rows, then the lanes.
    const std::string strips = Values::size(floordiv(axis.extent + Expr(kLanes - 1), kLanes));
    Expr other_rows = 1;
    std::vector<int> others;
    for (int a : s_.row_axes)
      if (a != s_.tile_axis) {
        others.push_back(a);
        other_rows = other_rows * k_.axes[static_cast<std::size_t>(a)].extent;
      }
    w_.line(fmt::format("const i64 strip = unit % ({0}), row = unit / ({0}) % ({1}), tile = unit / ({0}) / ({1});", strips,
                        Values::size(other_rows)));
    w_.line("(void)row; (void)tile;");
    if (!others.empty()) values_.coordinates(others, "row");
    w_.line("const i64 top = strip * 16;");
    w_.line(fmt::format("const i32 rows = ({0}) - top < 16 ? (i32)(({0}) - top) : 16;", Values::size(axis.extent)));
  }

  /// 16 rows at a time, and along them 16 lanes at a time: first the tiles, then the rows one after the other, tiles to store
  /// last.
  void tiled() {
    const auto& axis = k_.axes[static_cast<std::size_t>(s_.tile_axis)];
    strip();
    for (std::size_t i = 0; i < k_.stmts.size(); ++i)
      if (s_.tiled[i]) w_.line(fmt::format("{} {}_t[16];", memory_vector(k_.stmts[i].type), values_.var(static_cast<int>(i))));
    const bool exact = lanes_.is_const() && lanes_.value() % kLanes == 0;
    lane_range(Values::size(lanes_));
    w_.line("i64 e = first;");
    w_.open("for (; e + 16 <= last; e += 16)");
    tile(axis.name, true);
    w_.close();
    if (exact) return;
    values_.forget_pointers();
    w_.open("if (e < last)");
    w_.line("const i32 m = (i32)(last - e);");
    tile(axis.name, false);
    w_.close();
  }

  void tile(const std::string& axis, bool whole) {
    w_.open("");
    move_tiles(StmtKind::load, axis, whole);
    w_.close();
    w_.open("for (i32 k = 0; k < rows; ++k)");
    w_.line(fmt::format("const i64 {} = top + k;", axis));
    values_.row_pointers();
    for (const bool inner : {false, true})
      for (std::size_t i = 0; i < k_.stmts.size(); ++i)
        if (s_.inner[i] == inner) values_.statement(static_cast<int>(i), whole || !inner);
    w_.close();
    w_.open("");
    move_tiles(StmtKind::store, axis, whole);
    w_.close();
  }

  void move_tiles(StmtKind kind, const std::string& axis, bool whole) {
    w_.line(fmt::format("const i64 {0} = top; (void){0};", axis));
    for (std::size_t j = 0; j < k_.stmts.size(); ++j) {
      const int i = static_cast<int>(j);
      if (s_.tiled[j] && k_.stmts[j].kind == kind) values_.move_tile(i, Values::active(whole), "rows", values_.var(i) + "_t");
    }
  }

  /// Units of the second phase of a split reduction; the first has `segments` for each.
  Expr joined_units() const { return rows_ * tiles_; }

  void split() {
    const std::string segs = Values::size(stages_.segments());
    stages_.shared_pointers(joined_units());
    auto place = [&](const std::string& unit) {
      w_.line(fmt::format("const i64 row = {0} / ({1}), tile = {0} % ({1});", unit, Values::size(tiles_)));
      w_.line("(void)row; (void)tile;");
      if (!s_.row_axes.empty()) values_.coordinates(s_.row_axes, "row");
      values_.row_pointers();
    };
    w_.open("if (phase == 0)");
    w_.open("for (i64 unit = begin; unit < end_unit; ++unit)");
    w_.line(fmt::format("const i64 joined = unit / ({0}), seg = unit % ({0});", segs));
    place("joined");
    stages_.split_segment([&] { row_statements(0, false); });
    w_.close();
    w_.line("return status;");
    w_.close();
    values_.forget_pointers();
    w_.open("for (i64 unit = begin; unit < end_unit; ++unit)");
    place("unit");
    stages_.split_join([&] { row_statements(0, false); }, [&] { row_statements(1, true); });
    w_.close();
  }

  void reducing() {
    if (s_.strips()) {
      reducing_strip();
      return;
    }
    const std::string row = unit_row();
    if (!s_.row_axes.empty()) values_.coordinates(s_.row_axes, row);
    if (stages_.blocked()) {
      if (tiles_.is(1)) w_.line("const i64 tile = 0;");
      values_.row_pointers();
      stages_.blocked_stage([&] { row_statements(0, false); }, [&] { row_statements(1, true); });
      return;
    }
    if (s_.form == Form::columns) {
      w_.line(tiles_.is(1) ? "const i64 e = 0;" : "const i64 e = tile * 16;");
      w_.line(fmt::format("const i32 m = ({0}) - e < 16 ? (i32)(({0}) - e) : 16;", Values::size(lanes_)));
      w_.line("(void)m;");
    }
    values_.row_pointers();
    stages_.turn(true);
    passes();
    stages_.turn(false);
  }

  void passes() {
    for (int stage = 0; stage < s_.stages; ++stage) {
      row_statements(stage, false);
      stages_.stage(stage);
    }
    row_statements(s_.stages, true);
  }

  /// 16 rows that are turned together and then reduced one after the other.
  void reducing_strip() {
    const std::string& axis = k_.axes[static_cast<std::size_t>(s_.tile_axis)].name;
    strip();
    const auto turn = [&](bool in) {
      w_.open("");
      w_.line(fmt::format("const i64 {0} = top; (void){0};", axis));
      stages_.turn(in);
      w_.close();
    };
    turn(true);
    w_.open("for (i32 k = 0; k < rows; ++k)");
    w_.line(fmt::format("const i64 {} = top + k;", axis));
    values_.row_pointers();
    stages_.turned_row();
    passes();
    w_.close();
    turn(false);
  }

  const kernel::Schedule& s_;
  const kernel::Kernel& k_;
  Writer w_;
  Needs needs_;
  Values values_;
  Stages stages_;
  Expr lanes_, rows_, tiles_ = 1;
  std::int64_t tile_ = kTile;  ///< elements of the vector axis in one unit
};

}  // namespace

Source emit(const kernel::Schedule& s) { return Emitter(s).run(); }

}  // namespace fuselab::codegen::cpp
