// How a view changes an index: the operand's index from the result's. Used by lower alone.
#pragma once
#include <vector>

#include "fuselab/kernel/ir.h"

namespace fuselab::kernel {

/// Thrown by a view that needs an axis as two: `axis` becomes (extent / inner, inner). lower starts again with that split.
struct SplitAxis {
  int axis;
  Expr inner;
};

/// The operand's index (one form per dimension) of view `node`, whose result is read at `index`.
/// Throws Error("kernel.unsupported") or SplitAxis.
std::vector<Index> through_view(const Graph& g, const Node& node, const std::vector<Index>& index, const std::vector<Axis>& axes);

/// Index of an operand of `sizes` broadcast into a result read at `index` (aligned at the right).
std::vector<Index> broadcast_index(const std::vector<Expr>& sizes, const std::vector<Index>& index);

}  // namespace fuselab::kernel
