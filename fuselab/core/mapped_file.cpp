#include "fuselab/core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "fuselab/core/error.h"

namespace fuselab {

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto refuse = [&](const char* why) {
    if (file >= 0) ::close(file);
    fail("file.unreadable", "{} cannot be read: {}.", path, why);
  };
  if (file < 0) refuse(std::strerror(errno));
  struct stat about{};
  if (::fstat(file, &about) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(about.st_mode)) refuse("it is not a regular file");
  size_ = static_cast<std::size_t>(about.st_size);
  if (size_ > 0) {
    void* at = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) refuse(std::strerror(errno));
    data_ = static_cast<const char*>(at);
    ::madvise(at, size_, MADV_SEQUENTIAL);
  }
  ::close(file);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<char*>(data_), size_);
}

void MappedFile::forget(const void* begin, std::size_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto from = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
  const auto to = (reinterpret_cast<std::uintptr_t>(begin) + bytes) / page * page;
  if (to > from) ::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

}  // namespace fuselab
