// Which tensors a PyTorch .pt file holds, read from its pickle without running anything: the few operations of the pickle machine
// that torch.save produces build plain values, every class or function that is not a tensor's stays an opaque mark.
//
// The operations are Python's (https://docs.python.org/3/library/pickletools.html); the layout of a tensor is what
// torch._utils._rebuild_tensor_v2 takes: storage, offset, sizes, strides in elements.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuselab/core/dtype.h"

namespace fuselab::numerics::detail {

struct PickledTensor {
  std::string name;     ///< keys of dictionaries and places in lists on the way to it, joined by '.'
  std::string problem;  ///< why it cannot be loaded, "" when it can
  DType dtype = DType::f32;
  std::string storage;  ///< the member data/<storage> of the archive
  std::int64_t offset = 0;
  std::vector<std::int64_t> sizes, strides;  ///< in elements
};

/// Throws Error("pickle.malformed") naming `path`, the byte and what is wrong there.
std::vector<PickledTensor> read_pickled_tensors(const char* bytes, std::size_t size, const std::string& path);

}  // namespace fuselab::numerics::detail
