#include "fuselab/core/version.h"

namespace fuselab {

std::string_view version() { return FUSELAB_VERSION; }
std::string_view llvm_version() { return FUSELAB_LLVM_VERSION; }

}  // namespace fuselab
