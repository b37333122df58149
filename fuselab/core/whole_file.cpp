#include "fuselab/core/whole_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fuselab/core/error.h"

namespace fuselab {

void write_whole(const std::string& path, const std::vector<std::string_view>& pieces) {
  const std::string aside = path + "." + std::to_string(::getpid()) + ".new";
  int file = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const auto refuse = [&] {
    const int why = errno;
    if (file >= 0) ::close(file);
    ::unlink(aside.c_str());
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
  if (::fsync(file) != 0) refuse();
  const int closed = ::close(file);
  file = -1;
  if (closed != 0 || ::rename(aside.c_str(), path.c_str()) != 0) refuse();
}

}  // namespace fuselab
