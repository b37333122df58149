// Text -> object bytes on a thread with a stack deep enough for clang, with the time each half took.
#pragma once
#include <string>
#include <vector>

#include "fuselab/jit/jit.h"

namespace fuselab::jit {

struct Object {
  std::vector<char> bytes;
  double front_ms = 0, back_ms = 0;  ///< parsing and IR; passes and machine code
};

/// As compile_object(). Thread safe; the caller's stack may be small.
Object compile(const std::string& text, const std::string& file_name, const Target& target);

}  // namespace fuselab::jit
