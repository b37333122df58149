#include "fuselab/core/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "fuselab/core/error.h"

namespace fuselab {

void write_whole(const std::string& given, const std::vector<std::string_view>& pieces) {
  // A link stays one, and what it leads to is written; a device or a pipe (/dev/stdout) cannot be renamed over.
  std::error_code ignored;
  const bool special = std::filesystem::exists(given, ignored) && !std::filesystem::is_regular_file(given, ignored);
  const bool link = !special && std::filesystem::is_symlink(given, ignored);
  const std::string path = link ? std::filesystem::weakly_canonical(given, ignored).string() : given;
  // A name that no other writer has: process, thread of execution, moment.
  static std::atomic<std::uint64_t> counter{0};
  const std::string aside =
      special ? path : path + "." + std::to_string(::getpid()) + "." + std::to_string(counter.fetch_add(1)) + kWholeFileAside;
  int file = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (special ? 0 : O_TRUNC), 0666);
  const auto refuse = [&] {
    const int why = errno;
    if (file >= 0) ::close(file);
    if (!special) ::unlink(aside.c_str());
    fail("file.write", "{} cannot be written: {}.", path, std::strerror(why));
  };
  if (file < 0) refuse();
  for (std::string_view rest : pieces) {
    while (!rest.empty()) {
      const ssize_t done = ::write(file, rest.data(), rest.size());
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) refuse();
      rest.remove_prefix(static_cast<std::size_t>(done));
    }
  }
  if (!special && ::fsync(file) != 0) refuse();
  const int closed = ::close(file);
  file = -1;
  if (closed != 0 || (!special && ::rename(aside.c_str(), path.c_str()) != 0)) refuse();
}

}  // namespace fuselab
