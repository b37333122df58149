// LLVM IR -> object file bytes, with a pass list of our own.
//
// Kernel texts are vector code already, so there is no loop or SLP vectoriser and no unroller: what remains is what makes
// straight vector code good (inlining, SROA, CSE, instruction combining, hoisting out of loops), and that is most of the compile
// time saved.
#pragma once
#include <vector>

#include "fuselab/jit/jit.h"

namespace llvm {
class Module;
}

namespace fuselab::jit {

/// Throws Error("jit.compile") when the back end cannot compile the module.
std::vector<char> to_object(llvm::Module& module, const Target& target);

}  // namespace fuselab::jit
