// A scheduled kernel as three texts: tiling struct, host part, device part.
#pragma once
#include "fuselab/codegen/source.h"
#include "fuselab/kernel/schedule.h"

namespace fuselab::codegen::cpp {

/// Deterministic.
Source emit(const kernel::Schedule& s);

}  // namespace fuselab::codegen::cpp
