// Texts of the small functions that kernels use besides vecmath: loads and stores of part of a vector, minimum and maximum with
// IEEE edges, integer division, reductions over the lanes.
#pragma once
#include <string>

#include "fuselab/codegen/cpp/types.h"

namespace fuselab::codegen::cpp {

/// Typedefs vecmath's prelude does not have, then the helpers named in `used` and what they need, in a fixed order.
std::string helper_texts(const Used& used);

}  // namespace fuselab::codegen::cpp
