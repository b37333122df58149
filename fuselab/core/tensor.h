// A CPU tensor: dtype, sizes, strides and storage it owns, shares or merely looks at. For everything that handles data as
// values (the reference interpreter, checks, the program's files); kernels see raw pointers.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "fuselab/core/dtype.h"
#include "fuselab/core/float16.h"

namespace fuselab {

/// One element read from or written to memory as a double. i64 beyond 2^53 loses bits: use load_int/store_int for integers.
double load_double(DType t, const void* at);
/// Rounds once to the dtype. To integers: truncates, wraps; NaN and values outside i64 become the smallest i64, wrapped. To bool:
/// != 0.
void store_double(DType t, void* at, double value);
/// Integers and bool exactly; a float is truncated as store_double does.
std::int64_t load_int(DType t, const void* at);
/// Wraps to the dtype; to bool: != 0; to f16 and bf16 through f32, as PyTorch.
void store_int(DType t, void* at, std::int64_t value);
/// The value an integer dtype holds after wrapping (`wrap(i8, 150) == -106`); bool: != 0.
std::int64_t wrap(DType t, std::int64_t value);
/// Truncation towards zero; NaN and values outside i64 give the smallest i64.
std::int64_t truncate_to_int(double value);

/// Sizes in elements, strides in elements, any sign-free strides (0 = broadcast). Copies share the storage.
class Tensor {
 public:
  Tensor() = default;
  /// Contiguous, zero-filled, owning. Throws Error("tensor.size") for negative or overflowing sizes, Error("tensor.memory").
  Tensor(DType dtype, std::vector<std::int64_t> sizes);
  /// Owning, zero-filled storage that just covers the given strides.
  static Tensor strided(DType dtype, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides);
  /// Looks at `data`, the address of element [0, ..., 0]; `keep` (optional) is held as long as the tensor lives.
  static Tensor view_of(DType dtype, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides, void* data,
                        std::shared_ptr<void> keep = {});
  /// A contiguous tensor of these values, rounded to the dtype. Throws Error("tensor.size") when the count does not fit.
  static Tensor of(DType dtype, std::vector<std::int64_t> sizes, const std::vector<double>& values);

  bool defined() const { return defined_; }
  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  const std::vector<std::int64_t>& strides() const { return strides_; }
  int rank() const { return static_cast<int>(sizes_.size()); }
  std::int64_t numel() const { return numel_; }
  bool contiguous() const { return contiguous_; }  ///< row-major up to dimensions of size 1; empty tensors are
  void* data() const { return data_; }             ///< element [0, ..., 0]
  const std::shared_ptr<void>& storage() const { return storage_; }
  /// Bytes from the first to behind the last element; 0 when empty. Strides must not be negative.
  std::int64_t extent_bytes() const;

  /// Where the element of that row-major index is, in elements from data().
  std::int64_t offset_of(std::int64_t linear) const;
  void* at(std::int64_t linear) const { return static_cast<char*>(data_) + offset_of(linear) * size_of(dtype_); }
  double get(std::int64_t linear) const { return load_double(dtype_, at(linear)); }
  void set(std::int64_t linear, double value) const { store_double(dtype_, at(linear), value); }
  std::int64_t get_int(std::int64_t linear) const { return load_int(dtype_, at(linear)); }
  void set_int(std::int64_t linear, std::int64_t value) const { store_int(dtype_, at(linear), value); }

  Tensor contiguous_copy() const;       ///< always a fresh, owning copy of the bits in row-major order
  Tensor clone() const;                 ///< a fresh copy with the same strides
  std::vector<double> doubles() const;  ///< all elements in row-major order
  std::vector<std::int64_t> ints() const;
  void copy_bits_from(const Tensor& source);  ///< same dtype and sizes; throws Error("tensor.size") otherwise

 private:
  DType dtype_ = DType::f32;
  bool defined_ = false, contiguous_ = true;
  std::vector<std::int64_t> sizes_, strides_;
  std::int64_t numel_ = 0;
  std::shared_ptr<void> storage_;
  void* data_ = nullptr;
};

/// Row-major strides in elements; a dimension of size 0 or 1 counts as 1.
std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& sizes);
/// Product of sizes; throws Error("tensor.size") for a negative size or past 63 bits.
std::int64_t element_count(const std::vector<std::int64_t>& sizes);

}  // namespace fuselab
