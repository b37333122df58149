// Loop axes of a block, found by unification: each dim of each value starts with an axis of its own, and what the nodes say about
// their operands (same index, broadcast, merged, split) joins or refines them. What is left in the end is the block's domain.
#pragma once
#include <vector>

#include "fuselab/core/expr.h"

namespace fuselab::fuse {

/// The axes that one dim runs over, outermost first. Empty: size 1 (or a broadcast dim, which is read at index 0).
using Dim = std::vector<int>;

class Axes {
 public:
  /// A new axis; an extent that is known to be 1 gives no axis.
  Dim fresh(const Expr& extent);
  /// The same dim in terms of the axes that are left after all joins and splits so far.
  Dim resolve(const Dim& dim) const;
  /// Makes both the same sequence of axes, splitting where one merges what the other keeps apart. False: impossible.
  bool unify(const Dim& a, const Dim& b);
  /// Distributes a row-major sequence of axes over dims of these sizes (a reshape). False: some size would cut an axis unevenly.
  bool regroup(const Dim& all, const std::vector<Expr>& sizes, std::vector<Dim>& out);
  const Expr& extent(int axis) const { return nodes_[axis].extent; }
  bool was_split(int axis) const { return !nodes_[axis].pieces.empty(); }

 private:
  struct Node {
    Expr extent;
    int parent = -1;  ///< joined with this one
    Dim pieces;       ///< split into these
  };
  int root(int axis) const;
  bool split(int axis, const Expr& outer);
  bool join(int a, int b);
  std::vector<Node> nodes_;
};

}  // namespace fuselab::fuse
