// The helper that reads 16 x 16 elements which lie the other way round in memory: one text of helpers.cpp's list.
#pragma once

#include <string_view>

namespace fuselab::codegen::cpp {

inline constexpr std::string_view kTileText =
    R"(// Within each quarter of four vectors of 4-byte elements: element l of r[k] is what element k of t[l] was.
template <typename V> FL_INLINE void fl_turn_quarters(const V* t, V* r) {
  const V a = __builtin_shufflevector(t[0], t[1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
  const V b = __builtin_shufflevector(t[0], t[1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  const V c = __builtin_shufflevector(t[2], t[3], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
  const V d = __builtin_shufflevector(t[2], t[3], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  r[0] = __builtin_shufflevector(a, c, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  r[1] = __builtin_shufflevector(a, c, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  r[2] = __builtin_shufflevector(b, d, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  r[3] = __builtin_shufflevector(b, d, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}
// 16 x 16 elements turned: lane l of t[k] is what lane k of t[l] was.
template <typename V> FL_INLINE void fl_transpose(V* t) {
  V u[16];
  if constexpr (sizeof(V) == 64) {  // 4-byte elements: within quarters of a vector first, because that is cheap, then the quarters
#pragma clang loop unroll(full)
    for (i32 g = 0; g < 16; g += 4) fl_turn_quarters(t + g, u + g);
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
// t[k], k < rows: elements k of `lanes` runs of memory that begin `stride` apart. R: the number of rows, 0 if it is not known
// before; 8 or 4 need only parts of vectors.
template <typename V, typename T, i32 R> FL_INLINE void fl_load_tile(const T* p, i64 stride, i32 lanes, i32 rows, V* t) {
  if constexpr (R == 4 && sizeof(V) == 64)
    if (lanes == 16) {
      V z[4];
#pragma clang loop unroll(full)
      for (i32 r = 0; r < 4; ++r) {
        z[r].lo.lo = fl_load<decltype(V().lo.lo)>(p + r * stride);
        z[r].lo.hi = fl_load<decltype(V().lo.lo)>(p + (r + 4) * stride);
        z[r].hi.lo = fl_load<decltype(V().lo.lo)>(p + (r + 8) * stride);
        z[r].hi.hi = fl_load<decltype(V().lo.lo)>(p + (r + 12) * stride);
      }
      fl_turn_quarters(z, t);
      return;
    }
  if (lanes == 16 && (R == 4 || R == 8 || rows == 16)) {
#pragma clang loop unroll(full)
    for (i32 l = 0; l < 16; ++l) {
      if constexpr (R == 8) {
        t[l] = (V)(T)0;
        t[l].lo = fl_load<decltype(V().lo)>(p + l * stride);
      } else if constexpr (R == 4) {
        t[l] = (V)(T)0;
        t[l].lo.lo = fl_load<decltype(V().lo.lo)>(p + l * stride);
      } else {
        t[l] = fl_load<V>(p + l * stride);
      }
    }
    fl_transpose(t);
    return;
  }
  for (i32 k = 0; k < rows; ++k) {
    V v = (V)(T)0;
    for (i32 l = 0; l < lanes; ++l) v[l] = p[l * stride + k];
    t[k] = v;
  }
}
// The way back.
template <typename V, typename T, i32 R> FL_INLINE void fl_store_tile(T* p, i64 stride, i32 lanes, i32 rows, V* t) {
  if constexpr (R == 4 && sizeof(V) == 64)
    if (lanes == 16) {
      V z[4];
      fl_turn_quarters(t, z);
#pragma clang loop unroll(full)
      for (i32 r = 0; r < 4; ++r) {
        fl_store<decltype(V().lo.lo)>(p + r * stride, z[r].lo.lo);
        fl_store<decltype(V().lo.lo)>(p + (r + 4) * stride, z[r].lo.hi);
        fl_store<decltype(V().lo.lo)>(p + (r + 8) * stride, z[r].hi.lo);
        fl_store<decltype(V().lo.lo)>(p + (r + 12) * stride, z[r].hi.hi);
      }
      return;
    }
  if (lanes == 16 && (R == 4 || R == 8 || rows == 16)) {
    fl_transpose(t);
#pragma clang loop unroll(full)
    for (i32 l = 0; l < 16; ++l) {
      if constexpr (R == 8)
        fl_store<decltype(V().lo)>(p + l * stride, t[l].lo);
      else if constexpr (R == 4)
        fl_store<decltype(V().lo.lo)>(p + l * stride, t[l].lo.lo);
      else
        fl_store<V>(p + l * stride, t[l]);
    }
    return;
  }
  for (i32 k = 0; k < rows; ++k)
    for (i32 l = 0; l < lanes; ++l) p[l * stride + k] = t[k][l];
}
)";

}  // namespace fuselab::codegen::cpp
