// Versions of this library and of the compiler inside it: both are in every cache key.
#pragma once
#include <string_view>

namespace fuselab {

std::string_view version();       ///< "0.1.0"
std::string_view llvm_version();  ///< "19.1.7"

}  // namespace fuselab
