// A block as a graph of its own, with names that do not depend on where in the model it stands: equal blocks have equal text.
#pragma once
#include "fuselab/fuse/block.h"
#include "fuselab/fuse/fuse.h"

namespace fuselab::fuse {

/// Fills name, block_kind, fragment, inputs, outputs and nodes of a kernel step. `verdict` must be check_block() of the block.
Step make_kernel_step(const Info& info, const Block& block, const Verdict& verdict);

}  // namespace fuselab::fuse
