// What may be one kernel. A block runs over parallel axes P and, when it reduces, over axes R inside them. Every value of the
// block is "full" (one element per P x R), a "row" (one per P), or smaller and cheap enough to be computed again wherever it is
// read.
#pragma once
#include <string>
#include <vector>

#include "fuselab/fuse/info.h"

namespace fuselab::fuse {

struct Block {
  std::vector<NodeId> nodes;  ///< computing nodes, ascending; views come along when the fragment is made
  std::vector<ValueId> ties;  ///< values from outside that all readers in the block walk in step (horizontal fusion)
};

struct Verdict {
  std::string why;               ///< empty: the block is fine; otherwise what forbids it
  std::vector<ValueId> outputs;  ///< results that something outside the block reads, in node order
  bool reduces = false;
  bool ok() const { return why.empty(); }
};

/// Checks domains, not cycles. A single node is always fine.
Verdict check_block(const Info& info, const Block& block);

}  // namespace fuselab::fuse
