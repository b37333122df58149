// The helper that reads 16 x 16 elements which lie the other way round in memory: one text of helpers.cpp's list.
#pragma once

#include <string_view>

namespace fuselab::codegen::cpp {

inline constexpr std::string_view kTileText =
    R"(// 16 x 16 elements turned: lane l of t[k] is what lane k of t[l] was.
template <typename V> FL_INLINE void fl_transpose(V* t) {
  V u[16];
  if constexpr (sizeof(V) == 64) {  // 4-byte elements: within quarters of a vector first, because that is cheap, then the quarters
#pragma clang loop unroll(full)
    for (i32 g = 0; g < 16; g += 4) {
      const V a = __builtin_shufflevector(t[g], t[g + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
      const V b = __builtin_shufflevector(t[g], t[g + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
      const V c = __builtin_shufflevector(t[g + 2], t[g + 3], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
      const V d = __builtin_shufflevector(t[g + 2], t[g + 3], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
      u[g] = __builtin_shufflevector(a, c, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      u[g + 1] = __builtin_shufflevector(a, c, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
      u[g + 2] = __builtin_shufflevector(b, d, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      u[g + 3] = __builtin_shufflevector(b, d, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
#pragma clang loop unroll(full)
    for (i32 j = 0; j < 4; ++j) {
      const V a = __builtin_shufflevector(u[j], u[j + 4], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
      const V b = __builtin_shufflevector(u[j + 8], u[j + 12], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
      const V c = __builtin_shufflevector(u[j], u[j + 4], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
      const V d = __builtin_shufflevector(u[j + 8], u[j + 12], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
      t[j] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
      t[j + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
      t[j + 8] = __builtin_shufflevector(c, d, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
      t[j + 12] = __builtin_shufflevector(c, d, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    }
    return;
  }
  // Four rounds; each interleaves row i with row i + 8.
#pragma clang loop unroll(full)
  for (i32 round = 0; round < 4; ++round) {
#pragma clang loop unroll(full)
    for (i32 i = 0; i < 8; ++i) {
      u[2 * i] = __builtin_shufflevector(t[i], t[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      u[2 * i + 1] = __builtin_shufflevector(t[i], t[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
#pragma clang loop unroll(full)
    for (i32 i = 0; i < 16; ++i) t[i] = u[i];
  }
}
// t[k], k < rows: elements k of `lanes` runs of memory that begin `stride` apart.
template <typename V, typename T> FL_INLINE void fl_load_tile(const T* p, i64 stride, i32 lanes, i32 rows, V* t) {
  if (lanes == 16 && rows == 16) {
#pragma clang loop unroll(full)
    for (i32 l = 0; l < 16; ++l) t[l] = fl_load<V>(p + l * stride);
    fl_transpose(t);
    return;
  }
  for (i32 k = 0; k < rows; ++k) {
    V v = (V)(T)0;
    for (i32 l = 0; l < lanes; ++l) v[l] = p[l * stride + k];
    t[k] = v;
  }
}
)";

}  // namespace fuselab::codegen::cpp
