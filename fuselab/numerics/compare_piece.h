// One piece of two tensors: what it adds to a comparison. Used by compare alone.
#pragma once
#include <cstdint>

#include "fuselab/core/tensor.h"
#include "fuselab/numerics/cann.h"
#include "fuselab/numerics/compare.h"
#include "fuselab/numerics/histogram.h"

namespace fuselab::numerics {

/// Elements [begin, begin + n) in row-major order, widened.
void load_piece(const Tensor& t, std::int64_t begin, std::int64_t n, double* to);

/// The dtype whose ULP counts: the less precise one; integers have 1.
DType coarser(DType a, DType b);

/// What one piece adds. Sums of a piece are in double, pieces are added in their order.
struct Piece {
  double absolute = 0, relative = 0, ulp = 0, aa = 0, dd = 0;  // sums
  double max_absolute = 0, max_relative = 0, max_ulp = -1;
  std::int64_t worst = -1, differing = 0, aligned = 0, misaligned = 0, first_misaligned = -1, beyond = 0;
  CannRange range;
};

/// What a thread counts into: order does not matter.
struct Counts {
  LogHistogram absolute, relative, ulp;
};

/// Looks at pieces of one pair of tensors; may be used by several threads.
class PieceReader {
 public:
  PieceReader(const Tensor& a, const Tensor& b, const CompareLimits& limits);
  /// `x` and `y`: elements [begin, begin + n) of a and b, as load_piece gives them.
  void look(std::int64_t begin, std::int64_t n, const double* x, const double* y, Piece& p, Counts& counts) const;

 private:
  bool same_memory(std::int64_t begin, std::int64_t n) const;
  void look_plainly(std::int64_t begin, std::int64_t n, const double* x, const double* y, Piece& p, Counts& counts) const;
  bool look_at_block(std::int64_t begin, const double* x, const double* y, Piece& p, Counts& counts) const;
  static bool look_at_equal_block(std::int64_t begin, const double* x, Piece& p);

  const Tensor &a_, &b_;
  double atol_, rtol_;
  DType unit_type_;
  bool integers_, lanes_;
};

}  // namespace fuselab::numerics
