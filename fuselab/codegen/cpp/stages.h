// The passes of a reducing kernel over its inner axes: the loops, the reduction tree, kept rows.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fuselab/codegen/cpp/values.h"

namespace fuselab::codegen::cpp {

inline constexpr int kColumnVectors = 4;       ///< vectors of columns that a blocked unit takes
inline constexpr const char* kStack = "[48]";  ///< dims of a stack of partial results: a level per bit of their number

class Stages {
 public:
  Stages(const kernel::Schedule& s, Writer& w, Needs& needs, Values& values);

  /// Bytes of scratch a thread needs, as C++ text over the size symbols; "0" when nothing is kept.
  std::string scratch_bytes() const;
  /// Pointers to the kept and the turned rows inside `scratch`; once per run.
  void kept_pointers();
  /// Rows whose accesses are tiled: turned into scratch before the passes, and back after them (stages_turned.cpp). With strips
  /// `rows` of them together, the tiled axis at the first; turned_row() then names the rows of row `k`.
  void turn(bool in);
  void turned_row();
  /// One pass: the reductions and the element stores of stage `stage`.
  void stage(int stage);
  /// Columns: may the single pass take several vectors of columns together, block by block? Every cache line of a row is then
  /// used while it is near.
  bool blocked() const;
  /// That pass over the columns of `tile`: `before` prints what the body needs, `after` what follows the reductions.
  void blocked_stage(const std::function<void()>& before, const std::function<void()>& after);

  /// Is there too little to share among threads in rows or columns, so that the reduction itself is cut into segments? A
  /// segment is an aligned power of two of the tree's leaves, so the tree stays the same (stages_split.cpp).
  bool split() const;
  /// Segments per unit of the second phase, and bytes of `shared` for `units` such units, as C++ text over the size symbols.
  Expr segments() const;
  std::string shared_bytes(const Expr& units) const;
  void shared_pointers(const Expr& units);
  /// First phase: segment `seg` of a unit. Second phase: joins the segments of `unit`.
  void split_segment(const std::function<void()>& before);
  void split_join(const std::function<void()>& before, const std::function<void()>& after);

 private:
  struct Plan {
    std::vector<int> reduces, stores;
    std::vector<std::pair<int, int>> values_of;  ///< a firstmax and the argmax that holds its value
    std::vector<int> body;                       ///< statements to print per step, in order
  };
  Plan plan(int stage) const;
  void body(const Plan& p, int stage, const std::string& q, bool whole);
  void accumulate(int reduce, const std::string& chain, bool whole);
  void lane_loops(const Plan& p, int stage, const std::string& suffix);
  void store_loops(const Plan& p, int stage);
  void block(const Plan& p, int stage, bool single);
  void declare(const Plan& p, const std::string& suffix, const std::string& dims = "");
  void merge(int reduce, const std::string& into, const std::string& left, const std::string& right);
  void push(const Plan& p, const std::string& stack, const std::string& count, const std::string& value);
  void flush(const Plan& p, const std::string& stack, const std::string& count, const std::string& into);
  void across_lanes(int reduce);
  void results(const Plan& p);
  void columns_of(const std::string& w);
  bool is_arg(int reduce) const;
  std::string arg_function(int reduce) const;
  int index_twin(int reduce) const;
  static std::string index_of(const std::string& value);
  Expr columns() const;
  Expr leaves() const;
  std::int64_t leaves_per_segment() const;
  int block_steps() const { return k_.tree.block_steps; }
  int width() const { return rows_ ? 1 : kColumnVectors; }
  void to_shared(const Plan& p, const std::string& at);
  void from_shared(const Plan& p, const std::string& at, const std::string& suffix);
  std::string slot() const;
  Expr turned_bytes(int i) const;
  void turn_steps(int i, bool in, const std::string& rows, const std::string& first);

  const kernel::Schedule& s_;
  const kernel::Kernel& k_;
  Writer& w_;
  Needs& needs_;
  Values& v_;
  bool rows_;
  std::vector<int> outer_, lane_axes_;  ///< axes looped outside the steps; axes the steps run along
  Expr n_;                              ///< elements per outer point
  Expr steps_;                          ///< steps per outer point
  Expr points_;                         ///< outer points
};

}  // namespace fuselab::codegen::cpp
