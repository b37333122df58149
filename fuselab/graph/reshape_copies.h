// What a reshape needs that no strides can say. A kernel walks merged and split dimensions; a reshape such as [3, 7] -> [7, 3] is
// neither, and only row-major memory can be seen that way.
#pragma once
#include "fuselab/graph/graph.h"

namespace fuselab {

/// Can both lists of sizes be had from one finer list by merging neighbours ([6, 4] and [3, 8] from [3, 2, 4])? Sizes of 1 do not
/// count. False as well where symbols leave it open.
bool share_a_refinement(const std::vector<Expr>& from, const std::vector<Expr>& to);

/// The graph in which every reshape that must copy and whose sizes share no refinement reads a row-major copy, so that it is a
/// view. Run before fusing, whatever the options.
Graph copy_before_reshape(const Graph& g);

}  // namespace fuselab
