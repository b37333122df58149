// The table behind the flags and docs/flags.md.
#pragma once
#include <string>

namespace fuselab::fuse {

/// An option of the system that fuselab replaces which means nothing here: accepted with a warning.
bool is_meaningless_option(const std::string& name);

}  // namespace fuselab::fuse
