// A reduction of something that is the same all along the row (a broadcast value, a row of one element) still runs over the row,
// as its terms are added in the same order either way: the value is chosen anew at every element by a condition on the index that
// always holds. The last step of lower, used by it alone: every later pass may count on a reduction's argument being an
// element's value.
#pragma once
#include "fuselab/kernel/ir.h"

namespace fuselab::kernel {

void spread_constant_rows(Kernel& k);

}  // namespace fuselab::kernel
