// The groups of texts, one source file each. Inside this folder only.
#pragma once
#include <vector>

#include "fuselab/codegen/cpp/vecmath/vecmath.h"

namespace fuselab::codegen::vecmath {

using Group = std::vector<Function>;
const Group& f32_exponentials();
const Group& f32_logarithms();
const Group& f32_error_functions();
const Group& f32_activations();
const Group& f32_two_arguments();
const Group& f32_through_f64();
const Group& trigonometric();
const Group& f64_exponentials();
const Group& f64_logarithms();
const Group& f64_trigonometric();
const Group& f64_error_functions();
const Group& roots();
const Group& low_precision();
const Group& row_functions();

}  // namespace fuselab::codegen::vecmath
