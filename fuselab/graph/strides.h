// Questions about strides that PyTorch's allocation rules ask, answered for symbolic sizes too. Symbols count as >= 2 here: a
// size that is 0 or 1 is written as that number (PyTorch specialises both), and any answer gives a correct program.
#pragma once
#include <optional>
#include <vector>

#include "fuselab/core/expr.h"

namespace fuselab {

using Exprs = std::vector<Expr>;

/// -1, 0 or 1 as a is less than, equal to or greater than b, for symbols >= 2; by a sample of sizes where that does not decide.
int compare_sizes(const Expr& a, const Expr& b);

/// Row-major; dimensions of size 1 do not count; always when a size is 0.
bool is_contiguous(const Exprs& sizes, const Exprs& strides);
/// Channels-last (NHWC for rank 4, NDHWC for rank 5), dimensions of size 1 not counting; false for other ranks.
bool is_channels_last(const Exprs& sizes, const Exprs& strides);
/// Would PyTorch suggest channels-last for a tensor with these strides (dense or not)?
bool suggests_channels_last(const Exprs& sizes, const Exprs& strides);
Exprs channels_last_strides(const Exprs& sizes);  ///< rank 4 or 5
/// Every element has its own place and there are no holes.
bool non_overlapping_and_dense(const Exprs& sizes, const Exprs& strides);

/// Dimensions from the fastest to the slowest, as PyTorch orders them when it allocates a result for operands with these
/// (broadcast) strides: the first operand with a preference decides each pair; the order of the sizes where nobody has one.
std::vector<int> iteration_order(const Exprs& sizes, const std::vector<Exprs>& operands);
/// Dense strides for that order; order[0] gets stride 1.
Exprs dense_strides(const Exprs& sizes, const std::vector<int>& order);
/// Strides of a copy that preserves the format: the same when dense, else dense in the same order.
Exprs preserved_strides(const Exprs& sizes, const Exprs& strides);

/// Strides with which `new_sizes` (same number of elements) can be seen without copying; nothing when a copy is needed.
std::optional<Exprs> view_strides(const Exprs& sizes, const Exprs& strides, const Exprs& new_sizes);

}  // namespace fuselab
