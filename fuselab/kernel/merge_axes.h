// merge_axes: neighbouring axes become one where every access runs through both without a gap.
//
// Part of the schedule: fewer, longer loops. Parallel axes are first put in the order of the first store's strides, so that the
// last one is the contiguous one; inner axes keep their order, which fixes the reduction tree, and merge within a group only.
#pragma once
#include "fuselab/kernel/ir.h"

namespace fuselab::kernel {

Kernel merge_axes(const Kernel& k);

}  // namespace fuselab::kernel
