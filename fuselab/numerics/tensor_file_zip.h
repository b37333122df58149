// Tensor files that are zip archives: NumPy's .npz and PyTorch's .pt.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fuselab/core/mapped_file.h"
#include "fuselab/numerics/tensor_file.h"

namespace fuselab::numerics::detail {

/// A member of an archive: a range of the mapped file when it is stored, its own memory when it was unpacked.
struct Member {
  const char* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<void> keep;
  bool mapped = false;
};

/// An archive's members by name. Throws Error("zip.malformed").
class Archive {
 public:
  explicit Archive(std::shared_ptr<MappedFile> file);
  ~Archive();
  const std::vector<std::string>& names() const { return names_; }
  const std::string& path() const { return file_->path(); }
  bool has(const std::string& name) const;
  /// Throws Error("zip.malformed") also when the member is packed and its checksum is wrong, or by a method other than deflate.
  Member read(const std::string& name) const;

 private:
  struct State;
  std::shared_ptr<MappedFile> file_;
  std::unique_ptr<State> state_;
  std::vector<std::string> names_;
};

/// The tensors of an .npz, or of a .pt whose objects are dictionaries, lists and tuples of tensors (nested names joined by '.').
std::vector<NamedTensor> open_zip(const std::shared_ptr<MappedFile>& file);

}  // namespace fuselab::numerics::detail
