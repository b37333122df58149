#include "fuselab/core/tensor.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "fuselab/core/error.h"

namespace fuselab {
namespace {

template <typename T>
T load_as(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <typename T>
void store_as(void* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

bool is_row_major(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides, std::int64_t numel) {
  if (numel == 0) return true;
  std::int64_t expect = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expect) return false;
    expect *= sizes[i];
  }
  return true;
}

std::shared_ptr<void> allocate(std::int64_t bytes) {
  const std::size_t rounded = (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
  void* memory = std::aligned_alloc(64, rounded == 0 ? 64 : rounded);
  if (!memory) fail("tensor.memory", "no memory for a tensor of {} bytes; use smaller sizes", bytes);
  std::memset(memory, 0, rounded);
  return {memory, std::free};
}

// Elements from the first to behind the last one.
std::int64_t extent(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides, std::int64_t numel) {
  if (numel == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t step = 0;
    if (strides[i] < 0 || __builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last)) {
      fail("tensor.size", "stride {} of dimension {} (size {}) is negative or too large", strides[i], i, sizes[i]);
    }
  }
  return last + 1;
}

void check_bytes(DType t, std::int64_t elements) {
  if (elements > (std::int64_t{1} << 62) / size_of(t)) fail("tensor.size", "a tensor of {} elements is too large", elements);
}

}  // namespace

double load_double(DType t, const void* at) {
  switch (t) {
    case DType::f16:
      return from_f16(load_as<std::uint16_t>(at));
    case DType::bf16:
      return from_bf16(load_as<std::uint16_t>(at));
    case DType::f32:
      return load_as<float>(at);
    case DType::f64:
      return load_as<double>(at);
    default:
      return static_cast<double>(load_int(t, at));
  }
}

void store_double(DType t, void* at, double value) {
  switch (t) {
    case DType::f16:
      return store_as(at, to_f16(value));
    case DType::bf16:
      return store_as(at, to_bf16(value));
    case DType::f32:
      return store_as(at, static_cast<float>(value));
    case DType::f64:
      return store_as(at, value);
    case DType::boolean:
      return store_as(at, static_cast<std::uint8_t>(value != 0));
    default:
      return store_int(t, at, truncate_to_int(value));
  }
}

std::int64_t load_int(DType t, const void* at) {
  switch (t) {
    case DType::i8:
      return load_as<std::int8_t>(at);
    case DType::u8:
      return load_as<std::uint8_t>(at);
    case DType::i16:
      return load_as<std::int16_t>(at);
    case DType::i32:
      return load_as<std::int32_t>(at);
    case DType::i64:
      return load_as<std::int64_t>(at);
    case DType::boolean:
      return load_as<std::uint8_t>(at) != 0;
    default:
      return truncate_to_int(load_double(t, at));
  }
}

void store_int(DType t, void* at, std::int64_t value) {
  switch (t) {
    case DType::i8:
      return store_as(at, static_cast<std::int8_t>(value));
    case DType::u8:
      return store_as(at, static_cast<std::uint8_t>(value));
    case DType::i16:
      return store_as(at, static_cast<std::int16_t>(value));
    case DType::i32:
      return store_as(at, static_cast<std::int32_t>(value));
    case DType::i64:
      return store_as(at, value);
    case DType::boolean:
      return store_as(at, static_cast<std::uint8_t>(value != 0));
    case DType::f64:
      return store_as(at, static_cast<double>(value));
    default:
      return store_double(t, at, static_cast<float>(value));  // through f32, as eager does for f16 and bf16
  }
}

std::int64_t wrap(DType t, std::int64_t value) {
  switch (t) {
    case DType::i8:
      return static_cast<std::int8_t>(value);
    case DType::u8:
      return static_cast<std::uint8_t>(value);
    case DType::i16:
      return static_cast<std::int16_t>(value);
    case DType::i32:
      return static_cast<std::int32_t>(value);
    case DType::boolean:
      return value != 0;
    default:
      return value;
  }
}

std::int64_t truncate_to_int(double value) {
  if (value >= -0x1p63 && value < 0x1p63) return static_cast<std::int64_t>(value);
  return INT64_MIN;
}

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= sizes[i] > 1 ? sizes[i] : 1;
  }
  return strides;
}

std::int64_t element_count(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  bool empty = false;
  for (const std::int64_t size : sizes) {
    if (size < 0) fail("tensor.size", "a dimension has the negative size {}", size);
    empty = empty || size == 0;
    // Overflow is checked with zeros left out: strides of an empty tensor must be representable too.
    if (size > 0 && __builtin_mul_overflow(count, size, &count)) fail("tensor.size", "the sizes' product passes 63 bits");
  }
  return empty ? 0 : count;
}

Tensor::Tensor(DType dtype, std::vector<std::int64_t> sizes)
    : dtype_(dtype), defined_(true), sizes_(std::move(sizes)), numel_(element_count(sizes_)) {
  check_bytes(dtype_, numel_);
  strides_ = fuselab::contiguous_strides(sizes_);
  storage_ = allocate(numel_ * size_of(dtype_));
  data_ = storage_.get();
}

Tensor Tensor::strided(DType dtype, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
  const std::int64_t numel = element_count(sizes);
  if (strides.size() != sizes.size()) fail("tensor.size", "{} sizes but {} strides", sizes.size(), strides.size());
  const std::int64_t elements = extent(sizes, strides, numel);
  check_bytes(dtype, elements);
  std::shared_ptr<void> storage = allocate(elements * size_of(dtype));
  void* data = storage.get();
  return view_of(dtype, std::move(sizes), std::move(strides), data, std::move(storage));
}

Tensor Tensor::view_of(DType dtype, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides, void* data,
                       std::shared_ptr<void> keep) {
  if (strides.size() != sizes.size()) fail("tensor.size", "{} sizes but {} strides", sizes.size(), strides.size());
  Tensor t;
  t.dtype_ = dtype;
  t.defined_ = true;
  t.numel_ = element_count(sizes);
  t.contiguous_ = is_row_major(sizes, strides, t.numel_);
  t.sizes_ = std::move(sizes);
  t.strides_ = std::move(strides);
  t.storage_ = std::move(keep);
  t.data_ = data;
  return t;
}

Tensor Tensor::of(DType dtype, std::vector<std::int64_t> sizes, const std::vector<double>& values) {
  Tensor t(dtype, std::move(sizes));
  if (static_cast<std::int64_t>(values.size()) != t.numel()) {
    fail("tensor.size", "{} values given for {} elements", values.size(), t.numel());
  }
  for (std::int64_t i = 0; i < t.numel(); ++i) t.set(i, values[static_cast<std::size_t>(i)]);
  return t;
}

std::int64_t Tensor::extent_bytes() const { return extent(sizes_, strides_, numel_) * size_of(dtype_); }

std::int64_t Tensor::offset_of(std::int64_t linear) const {
  if (contiguous_) return linear;
  std::int64_t offset = 0;
  for (std::size_t i = sizes_.size(); i-- > 0;) {
    offset += linear % sizes_[i] * strides_[i];
    linear /= sizes_[i];
  }
  return offset;
}

Tensor Tensor::contiguous_copy() const {
  Tensor out(dtype_, sizes_);
  out.copy_bits_from(*this);
  return out;
}

Tensor Tensor::clone() const {
  Tensor out = strided(dtype_, sizes_, strides_);
  if (numel_ > 0) std::memcpy(out.data_, data_, static_cast<std::size_t>(extent_bytes()));
  return out;
}

std::vector<double> Tensor::doubles() const {
  std::vector<double> out(static_cast<std::size_t>(numel_));
  for (std::int64_t i = 0; i < numel_; ++i) out[static_cast<std::size_t>(i)] = get(i);
  return out;
}

std::vector<std::int64_t> Tensor::ints() const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(numel_));
  for (std::int64_t i = 0; i < numel_; ++i) out[static_cast<std::size_t>(i)] = get_int(i);
  return out;
}

void Tensor::copy_bits_from(const Tensor& source) {
  if (source.dtype_ != dtype_ || source.sizes_ != sizes_) fail("tensor.size", "copying needs equal dtypes and sizes");
  const auto width = static_cast<std::size_t>(size_of(dtype_));
  if (contiguous_ && source.contiguous_) {
    if (numel_ > 0) std::memcpy(data_, source.data_, static_cast<std::size_t>(numel_) * width);
    return;
  }
  for (std::int64_t i = 0; i < numel_; ++i) std::memcpy(at(i), source.at(i), width);
}

}  // namespace fuselab
