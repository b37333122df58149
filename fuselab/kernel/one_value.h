// one_value: a low-precision value that leaves the kernel and is also used inside it is rounded once, and both see that (R4).
//
// It stands right after improve_precision, which puts a rounding in front of each store: only then is it visible that an inside
// use still reads the unrounded value. Uses inside the node that made the value keep what they have: there the value is not
// stored yet.
#pragma once
#include "fuselab/kernel/ir.h"

namespace fuselab::kernel {

Kernel one_value(const Kernel& k);

}  // namespace fuselab::kernel
