// What memory a kernel reaches, against the tensors that a call hands over.
//
// Lowering makes indices that stay inside by construction; kernel IR that was edited need not. Every load and store is an affine
// form over axes whose ranges are known, so its least and largest element are expressions of sizes: each must lie in the
// buffer. What depends on symbolic sizes is checked at each new set of sizes, before anything runs.
#pragma once
#include <string>
#include <vector>

#include "fuselab/graph/bind.h"
#include "fuselab/kernel/ir.h"

namespace fuselab::kernel {

/// `slack` must not be negative where `when` is positive (there are points at which the statement runs).
struct Bound {
  Expr when, slack;
  std::string what;  ///< of the error; `{}` stands for the elements that are missing
};

/// The bounds of a kernel that is called with the tensors of `fragment`: inputs, then outputs, in its order. Bounds without
/// symbols are checked here and left out. Throws Error("kernel.invalid") for buffers or symbols that the fragment does not have
/// and Error("kernel.bounds"); `file` is where the IR came from.
std::vector<Bound> bounds(const Kernel& k, const Graph& fragment, const std::string& file);

/// Throws Error("kernel.bounds") for the first that does not hold, what Expr::eval throws for sizes past 63 bits.
void check_bounds(const std::vector<Bound>& bounds, const SymbolValues& values);

}  // namespace fuselab::kernel
