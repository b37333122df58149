// The schedule in words: loops, passes, and what the model of local memory decided.
#pragma once
#include <string>

#include "fuselab/kernel/schedule.h"

namespace fuselab::kernel {

/// A few lines, for `fuselab explain --passes` and the debug folder.
std::string describe(const Schedule& schedule);

}  // namespace fuselab::kernel
