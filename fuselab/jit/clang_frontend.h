// C++ text -> LLVM IR with clang as a library. No process, no files: the text is a buffer, and nothing can be included.
#pragma once
#include <memory>
#include <string>

#include "fuselab/jit/jit.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace fuselab::jit {

/// Throws Error("jit.compile") with clang's messages (`file:line:column: error: ...` and the line with a caret).
/// The same text and target give the same module on every machine: CPU and features come from the target, not from the host.
std::unique_ptr<llvm::Module> to_module(const std::string& text, const std::string& file_name, const Target& target,
                                        llvm::LLVMContext& context);

}  // namespace fuselab::jit
