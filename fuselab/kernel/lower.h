// lower: fragment graph -> kernel IR, still in the graph's dtypes.
//
// First pass of a kernel. It works backwards from the outputs: every value is evaluated at an index (one affine form per
// dimension), so views cost nothing (they only change the index) and a value wanted at two places is two statements. Reductions
// bind the kernel's inner axes. It stands before improve_precision because that pass needs every load, cast and store spelled
// out.
#pragma once
#include <string>

#include "fuselab/kernel/ir.h"

namespace fuselab::kernel {

/// Throws Error("kernel.unsupported") naming the node when the fragment cannot be one kernel (two different reduced extents, a
/// reshape that mixes axes, an operator without a recipe).
Kernel lower(const Graph& fragment, const std::string& name);

}  // namespace fuselab::kernel
