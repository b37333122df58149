// A file seen as memory, read only. Pages are read when they are touched and can be let go, so a file larger than the memory
// is no problem.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

namespace fuselab {

class MappedFile {
 public:
  /// Throws Error("file.unreadable") naming the path and the reason.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  const char* data() const { return data_; }
  std::size_t size() const { return size_; }

  /// Pages wholly inside the range leave the resident memory; touched again, they are read again.
  static void forget(const void* begin, std::size_t bytes);

 private:
  std::string path_;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace fuselab
