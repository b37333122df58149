// How the values of a block share loops: every dim of every value becomes a list of axes, and axes are joined wherever an
// operator walks two values in step. Used by check_block alone, which decides from it whether the block is one loop nest.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "fuselab/fuse/axes.h"
#include "fuselab/fuse/block.h"

namespace fuselab::fuse {

struct Loops {
  struct Slice {
    Dim whole, part;  ///< `part` walks some of `whole`; empty: one fixed index
  };
  Axes axes;
  std::map<ValueId, std::vector<Dim>> dims;  ///< of each computed value and each tie
  std::vector<Slice> slices;                 ///< of computed values
  bool reduces = false, has_groups = false;
  std::vector<Dim> operands;  ///< the reduced operand of each reduction, all dims in one list
  Dim kept, over;             ///< of the first reduction, like the next two
  std::vector<Dim> full_dims;
  std::vector<Expr> full_sizes;
};

Dim concat(const std::vector<Dim>& dims);

/// Fills `loops` for a block of several nodes. Returns "", or what does not fit in one loop nest.
std::string relate_values(const Info& info, const Block& block, Loops& loops);

}  // namespace fuselab::fuse
