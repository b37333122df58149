// Files of named tensors: .npy, .npz, .safetensors, PyTorch's .pt/.pth (read without running anything in them), and folders of
// these. Data stays in the file (memory-mapped) until it is looked at, except compressed members, which are unpacked.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fuselab/core/tensor.h"

namespace fuselab::numerics {

/// One tensor of a file. `problem` says why it cannot be loaded (a dtype that is not ours, a damaged member): then load is empty.
struct NamedTensor {
  std::string name;     ///< in a .npy: the file's stem; in a folder: the member's path, then its own name
  std::string problem;  ///< "" when load may be called
  std::function<Tensor()> load;
  bool mapped = false;  ///< the loaded tensor looks into the file: MappedFile::forget may be called on its data
};

/// The tensors of a file or folder in the order of the file (a folder: by name). The format is told by the first bytes, not by
/// the name. Throws Error("file.unreadable" | "npy.malformed" | "safetensors.malformed" | "zip.malformed" | "pickle.malformed" |
/// "file.unknown_format"), each naming the file and what is wrong in it.
std::vector<NamedTensor> open_tensors(const std::string& path);

/// Writes a .safetensors file: aside, synced, renamed, so that a crash leaves the old file or the new one.
/// Throws Error("file.write").
void write_safetensors(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors);

namespace detail {
/// `bytes` hold a whole .npy file; `keep` owns them. `what` names it in errors.
Tensor parse_npy(const char* bytes, std::size_t size, const std::string& what, const std::shared_ptr<void>& keep);
}  // namespace detail

}  // namespace fuselab::numerics
