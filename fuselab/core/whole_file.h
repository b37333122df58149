// Writing files so that a reader, or a crash at any moment, sees the old file or all of the new one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fuselab {

/// How the name of a file ends that is being written; what a crash leaves of it may be removed.
inline constexpr const char* kWholeFileAside = ".part";

/// Writes the pieces one after the other beside `path`, syncs and renames. Throws Error("file.write") with the reason; nothing of
/// the attempt stays behind. Several threads and processes may write the same path: one of them wins. A link is followed; what is
/// no regular file (/dev/stdout, a pipe) is written as it is.
void write_whole(const std::string& path, const std::vector<std::string_view>& pieces);

}  // namespace fuselab
