#include "fuselab/runtime/layout.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "fuselab/core/error.h"

namespace fuselab::runtime {
namespace {

struct Dim {
  std::int64_t size, from, to;
};

template <int Bytes>
void copy_row(const Dim& d, const char* from, char* to) {
  for (std::int64_t i = 0; i < d.size; ++i) std::memcpy(to + i * d.to * Bytes, from + i * d.from * Bytes, Bytes);
}

}  // namespace

std::int64_t count(std::span<const std::int64_t> sizes) {
  std::int64_t n = 1;
  bool over = false, empty = false;
  for (const std::int64_t s : sizes) {
    if (s < 0) fail("call.size", "a size is negative: {}", list_text(sizes));
    empty = empty || s == 0;
    over = over || __builtin_mul_overflow(n, s == 0 ? 1 : s, &n);
  }
  if (empty) return 0;
  if (over) fail("call.size", "sizes {} hold more elements than 63 bits count", list_text(sizes));
  return n;
}

std::int64_t extent(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, int element_bytes) {
  std::int64_t last = 0;
  bool over = false;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    std::int64_t step = 0;
    over = over || __builtin_mul_overflow(sizes[d] - 1, strides[d], &step) || __builtin_add_overflow(last, step, &last);
  }
  std::int64_t bytes = 0;
  over = over || __builtin_mul_overflow(last + 1, static_cast<std::int64_t>(element_bytes), &bytes);
  if (over) fail("call.size", "sizes {} with strides {} reach past 63 bits of bytes", list_text(sizes), list_text(strides));
  return bytes;
}

bool overlapping(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride, size
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] > 1) dims.emplace_back(strides[d] < 0 ? -strides[d] : strides[d], sizes[d]);
  }
  std::sort(dims.begin(), dims.end());
  std::int64_t reach = 0;  // largest distance the smaller strides cover
  for (const auto& [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

void copy_strided(std::span<const std::int64_t> sizes, int element_bytes, const void* from,
                  std::span<const std::int64_t> from_strides, void* to, std::span<const std::int64_t> to_strides) {
  if (count(sizes) == 0) return;
  std::vector<Dim> dims;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) dims.push_back({sizes[d], from_strides[d], to_strides[d]});
  // Write in address order, and join neighbours that are one run in both layouts.
  std::stable_sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return a.to > b.to; });
  for (std::size_t d = dims.size(); d-- > 1;) {
    Dim &outer = dims[d - 1], &inner = dims[d];
    if (outer.to == inner.to * inner.size && outer.from == inner.from * inner.size) {
      outer = {outer.size * inner.size, inner.from, inner.to};
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(d));
    }
  }
  Dim row{1, 1, 1};
  if (!dims.empty()) {
    row = dims.back();
    dims.pop_back();
  }
  std::vector<std::int64_t> index(dims.size(), 0);
  const char* in = static_cast<const char*>(from);
  char* out = static_cast<char*>(to);
  while (true) {
    if (row.from == 1 && row.to == 1)
      std::memcpy(out, in, static_cast<std::size_t>(row.size * element_bytes));
    else if (element_bytes == 1)
      copy_row<1>(row, in, out);
    else if (element_bytes == 2)
      copy_row<2>(row, in, out);
    else if (element_bytes == 4)
      copy_row<4>(row, in, out);
    else
      copy_row<8>(row, in, out);
    std::size_t d = dims.size();
    while (d > 0) {
      --d;
      in += dims[d].from * element_bytes;
      out += dims[d].to * element_bytes;
      if (++index[d] < dims[d].size) break;
      in -= dims[d].from * dims[d].size * element_bytes;
      out -= dims[d].to * dims[d].size * element_bytes;
      index[d] = 0;
      if (d == 0) return;
    }
    if (dims.empty()) return;
  }
}

bool same_strides(std::span<const std::int64_t> sizes, const std::int64_t* a, const std::int64_t* b) {
  bool same = true;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return true;
    same = same && (sizes[d] == 1 || a[d] == b[d]);
  }
  return same;
}

std::string list_text(std::span<const std::int64_t> xs) {
  std::string out = "[";
  for (const std::int64_t x : xs) out += (out.size() > 1 ? ", " : "") + std::to_string(x);
  return out + "]";
}

}  // namespace fuselab::runtime
