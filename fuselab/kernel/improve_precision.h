// improve_precision: makes the arithmetic of a kernel f32 where the graph says f16 or bf16 (R1-R3, R8-R10).
//
// It is the first pass after lower, so that no other pass ever sees low-precision arithmetic: afterwards f16 and bf16 appear only
// in loads, stores, casts and bit-exact copies. Every rounding is a cast statement one can read.
//   block: a cast to f32 after each load that feeds a computation, one back before each store, casts of the user kept, a
//          rounding where a decision is taken.
//   eager: besides, a rounding after every graph node's result; composites round at their end only.
//   keep:  the named operators round after themselves as in eager (R9); sum, mean and prod never do (R6).
#pragma once
#include <set>
#include <string>

#include "fuselab/kernel/ir.h"

namespace fuselab::kernel {

struct PrecisionOptions {
  bool eager = false;
  bool keep_all = false;
  std::set<std::string> keep;  ///< table names
};

Kernel improve_precision(const Kernel& k, const PrecisionOptions& options);

}  // namespace fuselab::kernel
