// Rows that lie the other way round in memory: turned into scratch before the passes over them, and back after.
#include <fmt/format.h>

#include "fuselab/codegen/cpp/stages.h"

namespace fuselab::codegen::cpp {

using kernel::kLanes;
using kernel::StmtKind;

Expr Stages::turned_bytes(int i) const {
  const Expr vectors = points_ * steps_ * Expr(s_.strips() ? kLanes : 1);
  return floordiv(vectors * Expr(kLanes * size_of(v_.type(i))) + Expr(63), 64) * Expr(64);
}

void Stages::turned_row() {
  for (std::size_t i = 0; i < k_.stmts.size(); ++i)
    if (s_.tiled[i])
      w_.line(fmt::format("{0}* const {1}_t = {1}_turned + k * ({2});", memory_vector(k_.stmts[i].type),
                          v_.var(static_cast<int>(i)), Values::size(points_ * steps_)));
}

void Stages::turn(bool in) {
  for (std::size_t j = 0; j < k_.stmts.size(); ++j) {
    const int i = static_cast<int>(j);
    if (!s_.tiled[j] || (k_.stmts[j].kind == StmtKind::load) != in) continue;
    w_.open("");
    // The loops outside the lanes, but for the tiled axis, which runs 16 at a time.
    const auto& tiled = k_.axes[static_cast<std::size_t>(s_.tile_axis)];
    int open = 1;
    for (const int a : outer_) {
      if (a == s_.tile_axis) continue;
      const auto& axis = k_.axes[static_cast<std::size_t>(a)];
      w_.open(fmt::format("for (i64 {0} = 0; {0} < {1}; ++{0})", axis.name, Values::size(axis.extent)));
      ++open;
    }
    if (s_.strips()) {
      turn_steps(i, in, "rows", "0");
    } else {
      const std::int64_t extent = tiled.extent.value(), full = extent / kLanes * kLanes;
      if (full > 0) {
        w_.open(fmt::format("for (i64 {0} = 0; {0} < {1}; {0} += 16)", tiled.name, full));
        turn_steps(i, in, "16", tiled.name);
        w_.close();
      }
      std::int64_t at = full;
      for (const std::int64_t part : {std::int64_t{8}, std::int64_t{4}, (extent - full) % 4}) {
        if (part == 0 || at + part > extent) continue;
        w_.open("");
        w_.line(fmt::format("const i64 {} = {};", tiled.name, at));
        turn_steps(i, in, std::to_string(part), tiled.name);
        w_.close();
        at += part;
      }
    }
    for (; open > 0; --open) w_.close();
  }
}

/// All steps of one tile of rows, each into (from) its place in the turned rows.
void Stages::turn_steps(int i, bool in, const std::string& rows, const std::string& first) {
  std::string point = "0";
  for (const int a : outer_) {
    const auto& axis = k_.axes[static_cast<std::size_t>(a)];
    point = fmt::format("({}) * ({}) + {}", point, Values::size(axis.extent), a == s_.tile_axis ? first + " + k" : axis.name);
  }
  if (s_.strips()) point = fmt::format("k * ({}) + {}", Values::size(points_), point);
  const std::string place =
      fmt::format("{}_{}[({}) * ({}) + step]", v_.var(i), s_.strips() ? "turned" : "t", point, Values::size(steps_));
  const bool exact = n_.is_const() && n_.value() % kLanes == 0;
  w_.open(fmt::format("for (i64 step = 0; step < {}; ++step)", Values::size(steps_)));
  w_.line("const i64 e = step * 16;");
  if (!exact) w_.line(fmt::format("const i32 m = ({0}) - e < 16 ? (i32)(({0}) - e) : 16;", Values::size(n_)));
  w_.line(fmt::format("{} tile[16];", memory_vector(v_.type(i))));
  const std::string move = fmt::format("for (i32 k = 0; k < {}; ++k) ", rows);
  if (!in) w_.line(move + "tile[k] = " + place + ";");
  v_.move_tile(i, Values::active(exact), rows, "tile");
  if (in) w_.line(move + place + " = tile[k];");
  w_.close();
}

}  // namespace fuselab::codegen::cpp
