#include "cli/npy.h"

#include <fmt/format.h>

#include <memory>

#include "cli/common.h"
#include "fuselab/core/error.h"
#include "fuselab/numerics/tensor_file.h"

namespace fuselab::cli {
namespace {

const char* descr_of(DType t) {
  static const char* const kNames[] = {"<f2", "|V2", "<f4", "<f8", "|i1", "|u1", "<i2", "<i4", "<i8", "|b1"};
  return kNames[static_cast<int>(t)];
}

}  // namespace

Tensor read_npy(const std::string& path) {
  auto bytes = std::make_shared<std::string>();
  try {
    *bytes = read_file(path);
  } catch (const UsageError& e) {
    fail("npy.unreadable", "{}", e.what());
  }
  return numerics::detail::parse_npy(bytes->data(), bytes->size(), path, bytes);
}

void write_npy(const std::string& path, const Tensor& tensor) {
  std::string shape;
  for (std::int64_t s : tensor.sizes()) shape += std::to_string(s) + ", ";
  if (tensor.rank() > 1) shape.resize(shape.size() - 2);
  if (tensor.rank() == 1) shape.resize(shape.size() - 1);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr_of(tensor.dtype()), shape);
  const std::size_t unpadded = 6 + 2 + 2 + header.size() + 1;
  header += std::string((64 - unpadded % 64) % 64, ' ') + "\n";
  std::string out = "\x93NUMPY";
  out += '\x01';
  out += '\x00';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  const Tensor dense = tensor.contiguous_copy();
  out.append(static_cast<const char*>(dense.data()), static_cast<std::size_t>(dense.numel()) * size_of(dense.dtype()));
  write_file(path, out);
}

}  // namespace fuselab::cli
