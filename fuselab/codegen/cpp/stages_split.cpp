// Reductions with few results, cut into segments over the threads: first every segment on its own, then the segments together.
#include <fmt/format.h>

#include "fuselab/codegen/cpp/stages.h"

namespace fuselab::codegen::cpp {

using kernel::kLanes;
using kernel::Stmt;

namespace {

constexpr std::int64_t kSegmentElements = 32 * 1024;  // work of one segment: a few microseconds
constexpr std::int64_t kFewRows = 8;

}  // namespace

/// Leaves of the upper tree: outer points, or blocks of steps.
Expr Stages::leaves() const {
  return rows_ && !outer_.empty() ? points_ : floordiv(steps_ + Expr(block_steps() - 1), block_steps());
}

std::int64_t Stages::leaves_per_segment() const {
  if (!(rows_ && !outer_.empty())) return 64;
  std::int64_t per = 1;
  const std::int64_t each = n_.is_const() ? std::max<std::int64_t>(n_.value(), 1) : 1024;
  while (per * each < kSegmentElements) per *= 2;
  return per;
}

Expr Stages::segments() const { return floordiv(leaves() + Expr(leaves_per_segment() - 1), leaves_per_segment()); }

bool Stages::split() const {
  if (s_.tile_axis >= 0 || s_.stages != 1 || s_.form == kernel::Form::element || (!rows_ && !blocked())) return false;
  const Plan p = plan(0);
  if (p.reduces.empty() || !p.stores.empty()) return false;
  Expr units = 1;
  for (int a : s_.row_axes) units = units * k_.axes[static_cast<std::size_t>(a)].extent;
  if (!rows_) {
    units = units * floordiv(columns() + Expr(kLanes * kColumnVectors - 1), kLanes * kColumnVectors);
  }
  if (!units.is_const() || units.value() > kFewRows || units.value() == 0) return false;
  const Expr s = segments();
  return !s.is_const() || s.value() > 1;
}

std::string Stages::shared_bytes(const Expr& units) const {
  Expr bytes = 0;
  for (int r : plan(0).reduces) {
    const DType t = v_.type(k_.stmts[static_cast<std::size_t>(r)].args[0]);
    bytes = bytes + units * segments() * Expr(width() * kLanes * (std::max(4, size_of(t)) + (is_arg(r) ? 8 : 0)));
  }
  return Values::size(bytes);
}

void Stages::shared_pointers(const Expr& units) {
  Expr at = 0;
  for (int r : plan(0).reduces) {
    const DType t = v_.type(k_.stmts[static_cast<std::size_t>(r)].args[0]);
    w_.line(fmt::format("{0}* const {1}_shared = ({0}*)(shared + ({2}));", vector_type(t), v_.var(r), Values::size(at)));
    at = at + units * segments() * Expr(width() * kLanes * std::max(4, size_of(t)));
    if (!is_arg(r)) continue;
    w_.line(fmt::format("i64x16* const {0}_shared_i = (i64x16*)(shared + ({1}));", v_.var(r), Values::size(at)));
    at = at + units * segments() * Expr(width() * kLanes * 8);
  }
}

void Stages::to_shared(const Plan& p, const std::string& at) {
  for (int r : p.reduces) {
    w_.line(fmt::format("{0}_shared[{1}] = {0}_a;", v_.var(r), at));
    if (is_arg(r)) w_.line(fmt::format("{0}_shared_i[{1}] = {0}_a_i;", v_.var(r), at));
  }
}

void Stages::from_shared(const Plan& p, const std::string& at, const std::string& suffix) {
  for (int r : p.reduces) {
    const std::string x = v_.var(r) + suffix;
    w_.line(fmt::format("{} {} = {}_shared[{}];", vector_type(v_.type(k_.stmts[static_cast<std::size_t>(r)].args[0])), x,
                        v_.var(r), at));
    if (is_arg(r)) w_.line(fmt::format("i64x16 {} = {}_shared_i[{}];", index_of(x), v_.var(r), at));
  }
}

void Stages::split_segment(const std::function<void()>& before) {
  const Plan p = plan(0);
  const std::int64_t per = leaves_per_segment();
  w_.line(fmt::format("const i64 leaf = seg * {0}, leaves = {1}, last = leaf + {0} < leaves ? leaf + {0} : leaves;", per,
                      Values::size(leaves())));
  if (rows_) {
    before();
    declare(p, "_a");
    w_.open("");
    declare(p, "_s", kStack);
    if (outer_.empty()) {
      w_.open(fmt::format("for (i64 b = leaf * {0}; b < last * {0}; b += {0})", block_steps()));
      block(p, 0, false);
      push(p, "_s", fmt::format("(b / {} - leaf)", block_steps()), "_c0");
    } else {
      w_.open("for (i64 g = leaf; g < last; ++g)");
      v_.coordinates(outer_, "g");
      declare(p, "_t");
      w_.open("");
      lane_loops(p, 0, "_t");
      w_.close();
      push(p, "_s", "(g - leaf)", "_t");
    }
    w_.close();
    flush(p, "_s", "(last - leaf)", "_a");
    w_.close();
    to_shared(p, "unit");
    return;
  }
  declare(p, "_s", fmt::format("[{}]{}", kColumnVectors, kStack));
  w_.open(fmt::format("for (i64 b = leaf * {0}; b < last * {0}; b += {0})", block_steps()));
  w_.open(fmt::format("for (i32 w = 0; w < {}; ++w)", kColumnVectors));
  columns_of("w");
  before();
  block(p, 0, false);
  push(p, "_s[w]", fmt::format("(b / {} - leaf)", block_steps()), "_c0");
  w_.close();
  w_.close();
  w_.open(fmt::format("for (i32 w = 0; w < {}; ++w)", kColumnVectors));
  columns_of("w");
  declare(p, "_a");
  flush(p, "_s[w]", "(last - leaf)", "_a");
  to_shared(p, fmt::format("unit * {} + w", kColumnVectors));
  w_.close();
}

void Stages::split_join(const std::function<void()>& before, const std::function<void()>& after) {
  const Plan p = plan(0);
  const std::string segs = Values::size(segments());
  if (!rows_) {
    w_.open(fmt::format("for (i32 w = 0; w < {}; ++w)", kColumnVectors));
    columns_of("w");
  }
  before();
  declare(p, "_a");
  w_.open("");
  declare(p, "_s", kStack);
  w_.open(fmt::format("for (i64 seg = 0; seg < {}; ++seg)", segs));
  from_shared(p,
              rows_ ? fmt::format("unit * ({}) + seg", segs) : fmt::format("(unit * ({}) + seg) * {} + w", segs, kColumnVectors),
              "_t");
  push(p, "_s", "seg", "_t");
  w_.close();
  flush(p, "_s", segs, "_a");
  w_.close();
  results(p);
  after();
  if (!rows_) w_.close();
}

}  // namespace fuselab::codegen::cpp
