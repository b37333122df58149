// Writing files so that a reader, or a crash at any moment, sees the old file or all of the new one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fuselab {

/// Writes the pieces one after the other beside `path`, syncs and renames. Throws Error("file.write") with the reason; nothing of
/// the attempt stays behind.
void write_whole(const std::string& path, const std::vector<std::string_view>& pieces);

}  // namespace fuselab
