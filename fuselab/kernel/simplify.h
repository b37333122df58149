// simplify: makes a kernel smaller without changing a bit of any result (R11).
//
// It stands after the precision passes because they leave casts behind, and before the schedule because that prices statements.
// What it may do, each with a test:
//   - equal statements are computed once (same operation, type, operands, index);
//   - a cast to a value's own type is the value;
//   - f16 -> f32 -> f16, bf16 -> f32 -> bf16 and f32 -> f64 -> f32 are the value (every value of the narrow type is exact in the
//     wide one; NaN payloads stay as they are);
//   - a cast of a float or integer constant is the constant of that type when the value is exact there;
//   - statements nothing reads go.
#pragma once
#include "fuselab/kernel/ir.h"

namespace fuselab::kernel {

Kernel simplify(const Kernel& k);

}  // namespace fuselab::kernel
