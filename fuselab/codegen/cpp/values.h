// Statements as lines of text: where an access lies relative to the lanes, loads, stores, computed values.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "fuselab/codegen/cpp/expressions.h"
#include "fuselab/codegen/cpp/writer.h"
#include "fuselab/kernel/schedule.h"

namespace fuselab::codegen::cpp {

/// Prints single statements. Assumes these names in scope: the size symbols (s_<symbol>), the row axes and loop axes by their
/// names, `e` (position of lane 0 along the vector axes), `m` (lanes that count, 16 at most), `status`.
class Values {
 public:
  Values(const kernel::Schedule& s, Writer& w, Needs& needs);

  /// C++ text of a size expression.
  static std::string size(const Expr& e);
  /// The variable that holds statement i.
  std::string var(int i) const { return vars_[static_cast<std::size_t>(i)]; }
  /// `const f32* const x_0 = x + ...;` for every access of this kernel; once per row.
  void row_pointers();
  /// A second loop over rows declares its own.
  void forget_pointers() { pointers_.clear(); }
  /// `const i64 p1 = ..., p0 = ...;` from a linear position over `axes` (outermost first). Destroys nothing; needs no names.
  void coordinates(const std::vector<int>& axes, const std::string& linear);
  /// One statement. `whole`: all 16 lanes count.
  void statement(int i, bool whole);
  /// Moves the tile of a tiled load or store between memory and `tile`: in scope are the axes, at the tile's first row, and `e`.
  void move_tile(int i, const std::string& lanes, const std::string& rows, const std::string& tile);
  /// Where in `<var>_t` a row's 16 lanes of a tiled statement are: "k" within a tile.
  void place_tiles(const std::string& place) { place_ = place; }
  /// The number of lanes as text.
  static std::string active(bool whole) { return whole ? "16" : "m"; }
  bool along_lanes(const kernel::Index& index) const;
  DType type(int i) const { return s_.kernel.stmts[static_cast<std::size_t>(i)].type; }

 private:
  enum class Mode { splat, contiguous, strided, gather };
  Mode mode(const kernel::Index& index, Expr& stride) const;
  std::string offset(const kernel::Index& index, bool rows) const;
  std::string pointer(int i) const;
  void gather_coordinates();
  std::string lane_offset(const kernel::Index& index) const;
  void load(int i, bool whole);
  void store(int i, bool whole);
  void index_value(int i);

  const kernel::Schedule& s_;
  const kernel::Kernel& k_;
  Writer& w_;
  Needs& needs_;
  std::vector<std::string> vars_;
  std::string place_ = "k";
  std::map<std::string, std::string> pointers_;  ///< buffer and row offset -> variable
};

}  // namespace fuselab::codegen::cpp
