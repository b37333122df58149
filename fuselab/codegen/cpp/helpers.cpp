#include "fuselab/codegen/cpp/helpers.h"

#include <array>
#include <string_view>

#include "fuselab/codegen/cpp/tile_text.h"
#include "fuselab/core/error.h"

namespace fuselab::codegen::cpp {
namespace {

struct Helper {
  std::string_view name;
  std::string_view text;
};

constexpr std::string_view kTypes = R"(typedef _Float16 f16;
typedef f16 f16x16 __attribute__((ext_vector_type(16)));
typedef i8 i8x16 __attribute__((ext_vector_type(16)));
typedef u8 u8x16 __attribute__((ext_vector_type(16)));
typedef i16 i16x16 __attribute__((ext_vector_type(16)));
typedef u16 u16x16 __attribute__((ext_vector_type(16)));
// A vector at an address that is only as aligned as its elements.
template <typename V> struct fl_any_place { V v; } __attribute__((packed, aligned(1), may_alias));
template <typename V> FL_INLINE V fl_load(const void* p) { return ((const fl_any_place<V>*)p)->v; }
template <typename V> FL_INLINE void fl_store(void* p, V v) { ((fl_any_place<V>*)p)->v = v; }
)";

constexpr std::array kHelpers = {
    Helper{
        "lanes",
        R"(FL_INLINE i32x16 fl_lanes(i32 m) { return (i32x16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (i32x16)(m); }
)"},
    Helper{
        "iota",
        R"(FL_INLINE i64x16 fl_iota(i64 first) { return (i64x16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + (i64x16)(first); }
)"},
    Helper{"part", R"(// The first m lanes from memory, 0 in the others: nothing past them is touched.
template <typename V, typename T> FL_INLINE V fl_load_part(const T* p, i32 m) {
  if (m >= 16) return fl_load<V>(p);
  V v = (V)(T)0;
  for (i32 l = 0; l < m; ++l) v[l] = p[l];
  return v;
}
template <typename V, typename T> FL_INLINE void fl_store_part(T* p, V v, i32 m) {
  if (m >= 16) return fl_store<V>(p, v);
  for (i32 l = 0; l < m; ++l) p[l] = v[l];
}
#ifdef __AVX512BW__
typedef float fl_16f __attribute__((vector_size(64)));
typedef int fl_16i __attribute__((vector_size(64)));
typedef short fl_16h __attribute__((vector_size(32)));
typedef char fl_16c __attribute__((vector_size(16)));
FL_INLINE u16 fl_bitmask(i32 m) { return (u16)((1u << m) - 1u); }
template <> FL_INLINE f32x16 fl_load_part<f32x16, f32>(const f32* p, i32 m) {
  return __builtin_bit_cast(f32x16, __builtin_ia32_loadups512_mask((const float*)p, fl_16f{}, fl_bitmask(m)));
}
template <> FL_INLINE void fl_store_part<f32x16, f32>(f32* p, f32x16 v, i32 m) {
  __builtin_ia32_storeups512_mask((float*)p, __builtin_bit_cast(fl_16f, v), fl_bitmask(m));
}
template <> FL_INLINE i32x16 fl_load_part<i32x16, i32>(const i32* p, i32 m) {
  return __builtin_bit_cast(i32x16, __builtin_ia32_loaddqusi512_mask((const int*)p, fl_16i{}, fl_bitmask(m)));
}
template <> FL_INLINE void fl_store_part<i32x16, i32>(i32* p, i32x16 v, i32 m) {
  __builtin_ia32_storedqusi512_mask((int*)p, __builtin_bit_cast(fl_16i, v), fl_bitmask(m));
}
template <> FL_INLINE u16x16 fl_load_part<u16x16, u16>(const u16* p, i32 m) {
  return __builtin_bit_cast(u16x16, __builtin_ia32_loaddquhi256_mask((const fl_16h*)p, fl_16h{}, fl_bitmask(m)));
}
template <> FL_INLINE void fl_store_part<u16x16, u16>(u16* p, u16x16 v, i32 m) {
  __builtin_ia32_storedquhi256_mask((fl_16h*)p, __builtin_bit_cast(fl_16h, v), fl_bitmask(m));
}
template <> FL_INLINE f16x16 fl_load_part<f16x16, f16>(const f16* p, i32 m) {
  return __builtin_bit_cast(f16x16, __builtin_ia32_loaddquhi256_mask((const fl_16h*)p, fl_16h{}, fl_bitmask(m)));
}
template <> FL_INLINE void fl_store_part<f16x16, f16>(f16* p, f16x16 v, i32 m) {
  __builtin_ia32_storedquhi256_mask((fl_16h*)p, __builtin_bit_cast(fl_16h, v), fl_bitmask(m));
}
template <> FL_INLINE u8x16 fl_load_part<u8x16, u8>(const u8* p, i32 m) {
  return __builtin_bit_cast(u8x16, __builtin_ia32_loaddquqi128_mask((const fl_16c*)p, fl_16c{}, fl_bitmask(m)));
}
template <> FL_INLINE void fl_store_part<u8x16, u8>(u8* p, u8x16 v, i32 m) {
  __builtin_ia32_storedquqi128_mask((fl_16c*)p, __builtin_bit_cast(fl_16c, v), fl_bitmask(m));
}
#endif
)"},
    Helper{"stream", R"(// Past the cache: the result is larger than the cache and nobody reads it soon.
template <typename V, typename T> FL_INLINE void fl_stream(T* p, V v) {
  if (((u64)p & (sizeof(V) - 1)) == 0)
    __builtin_nontemporal_store(v, (V*)p);
  else
    fl_store(p, v);
}
)"},
    Helper{"strided", R"(template <typename V, typename T> FL_INLINE V fl_load_strided(const T* p, i64 stride, i32 m) {
  V v = (V)(T)0;
  for (i32 l = 0; l < m; ++l) v[l] = p[l * stride];
  return v;
}
template <typename V, typename T> FL_INLINE void fl_store_strided(T* p, i64 stride, V v, i32 m) {
  for (i32 l = 0; l < m; ++l) p[l * stride] = v[l];
}
)"},
    Helper{"tile", kTileText},
    Helper{"f16", R"(// The barrier keeps the optimiser from moving arithmetic to f16, which these machines do lane by lane.
FL_INLINE f32x16 fl_f32_from_f16(f16x16 v) {
  f32x16 r = __builtin_convertvector(v, f32x16);
#if defined(__AVX512F__)
  __asm__("" : "+v"(r));
#elif defined(__AVX2__)
  typedef f32 f32x8 __attribute__((ext_vector_type(8)));
  f32x8 low = __builtin_shufflevector(r, r, 0, 1, 2, 3, 4, 5, 6, 7), high = __builtin_shufflevector(r, r, 8, 9, 10, 11, 12, 13, 14, 15);
  __asm__("" : "+x"(low));
  __asm__("" : "+x"(high));
  r = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#endif
  return r;
}
)"},
    Helper{
        "bf16",
        R"(FL_INLINE f32x16 fl_f32_from_bf16(u16x16 v) { return __builtin_bit_cast(f32x16, __builtin_convertvector(v, u32x16) << 16); }
FL_INLINE u16x16 fl_bf16_from_f32(f32x16 v) {
  const u32x16 b = __builtin_bit_cast(u32x16, v);
  const u32x16 r = (b + ((b >> 16) & 1u) + 0x7fffu) >> 16;  // nearest, ties to even
  return __builtin_convertvector(v != v ? (u32x16)(0x7fc0u) : r, u16x16);
}
)"},
    Helper{"to_int", R"(FL_INLINE i32x16 fl_to_i32(f32x16 v) {
  const i32x16 fits = (v >= -2147483648.0f) & (v < 2147483648.0f);
  return fits ? __builtin_convertvector(fits ? v : (f32x16)(0.0f), i32x16) : (i32x16)(-2147483647 - 1);
}
FL_INLINE i32x16 fl_to_i32(f64x16 v) {
  const i64x16 fits = (v > -2147483649.0) & (v < 2147483648.0);
  return __builtin_convertvector(fits ? __builtin_convertvector(fits ? v : (f64x16)(0.0), i64x16) : (i64x16)(-2147483648l), i32x16);
}
FL_INLINE i64x16 fl_to_i64(f64x16 v) {
  const i64x16 fits = (v >= -9223372036854775808.0) & (v < 9223372036854775808.0);
  return fits ? __builtin_convertvector(fits ? v : (f64x16)(0.0), i64x16) : (i64x16)(-9223372036854775807l - 1);
}
FL_INLINE i64x16 fl_to_i64(f32x16 v) { return fl_to_i64(__builtin_convertvector(v, f64x16)); }
)"},
    Helper{"minmax", R"(// NaN wins, -0 is below +0.
FL_INLINE f32x16 fl_max(f32x16 a, f32x16 b) {
  const f32x16 m = a > b ? a : b;
  const f32x16 z = a == b ? fl_float(fl_bits(a) & fl_bits(b)) : m;
  return a != a ? a : z;
}
FL_INLINE f32x16 fl_min(f32x16 a, f32x16 b) {
  const f32x16 m = a < b ? a : b;
  const f32x16 z = a == b ? fl_float(fl_bits(a) | fl_bits(b)) : m;
  return a != a ? a : z;
}
FL_INLINE f64x16 fl_max(f64x16 a, f64x16 b) {
  const f64x16 m = a > b ? a : b;
  const f64x16 z = a == b ? fl_float(fl_bits(a) & fl_bits(b)) : m;
  return a != a ? a : z;
}
FL_INLINE f64x16 fl_min(f64x16 a, f64x16 b) {
  const f64x16 m = a < b ? a : b;
  const f64x16 z = a == b ? fl_float(fl_bits(a) | fl_bits(b)) : m;
  return a != a ? a : z;
}
template <typename V> FL_INLINE V fl_max(V a, V b) { return a > b ? a : b; }
template <typename V> FL_INLINE V fl_min(V a, V b) { return a < b ? a : b; }
)"},
    Helper{
        "fold",
        R"(// Maximum and minimum of a reduction: NaN wins; which of -0 and +0 stands for zero is left to the order, as in eager.
template <typename V> FL_INLINE V fl_fold_max(V a, V b) {
  const V m = a > b ? a : b;
  return a != a ? a : m;
}
template <typename V> FL_INLINE V fl_fold_min(V a, V b) {
  const V m = a < b ? a : b;
  return a != a ? a : m;
}
)"},
    Helper{"across", R"(// The 16 lanes as one value, in every lane: lane i meets lane i + 8, then + 4, + 2, + 1.
template <typename V, typename F> FL_INLINE V fl_across(V v, F f) {
  const auto a = f(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7), __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
  const auto b = f(__builtin_shufflevector(a, a, 0, 1, 2, 3), __builtin_shufflevector(a, a, 4, 5, 6, 7));
  const auto c = f(__builtin_shufflevector(b, b, 0, 1), __builtin_shufflevector(b, b, 2, 3));
  const auto d = f(c, __builtin_shufflevector(c, c, 1, 0));
  return (V)(d[0]);
}
)"},
    Helper{
        "rotate",
        R"(template <typename V> FL_INLINE V fl_rotate8(V v) { return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7); }
template <typename V> FL_INLINE V fl_rotate4(V v) { return __builtin_shufflevector(v, v, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3); }
template <typename V> FL_INLINE V fl_rotate2(V v) { return __builtin_shufflevector(v, v, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1); }
template <typename V> FL_INLINE V fl_rotate1(V v) { return __builtin_shufflevector(v, v, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0); }
)"},
    Helper{"arg",
           R"(// Keeps the better of (a, ai) and (b, bi) in (a, ai): a NaN before all, then by value, then the smaller index.
template <typename V> FL_INLINE void fl_argmax(V& a, i64x16& ai, V b, i64x16 bi) {
  const auto nan = (b != b) & (a == a), both = (b != b) & (a != a);
  const auto better = nan | ((b > a) & (a == a));
  const auto take = better | ((both | (b == a)) & __builtin_convertvector(bi < ai, decltype(nan)));
  a = take ? b : a;
  ai = __builtin_convertvector(take, i64x16) ? bi : ai;
}
template <typename V> FL_INLINE void fl_argmin(V& a, i64x16& ai, V b, i64x16 bi) {
  const auto nan = (b != b) & (a == a), both = (b != b) & (a != a);
  const auto better = nan | ((b < a) & (a == a));
  const auto take = better | ((both | (b == a)) & __builtin_convertvector(bi < ai, decltype(nan)));
  a = take ? b : a;
  ai = __builtin_convertvector(take, i64x16) ? bi : ai;
}
)"},
    Helper{
        "shift",
        R"(// A shift by the width or more (or less than 0) shifts everything out, as PyTorch has it; to the right the sign is left.
template <typename V> FL_INLINE V fl_shl(V a, V b) {
  const V width = (V)(sizeof(a[0]) * 8);
  const auto out = (b < 0) | (b >= width);
  return out ? (V)(0) : a << (out ? (V)(0) : b);
}
template <typename V> FL_INLINE V fl_shr(V a, V b) {
  const V width = (V)(sizeof(a[0]) * 8);
  const auto out = (b < 0) | (b >= width);
  return out ? (a < 0 ? (V)(-1) : (V)(0)) : a >> (out ? (V)(0) : b);
}
)"},
    Helper{
        "idiv",
        R"(// Integer division one lane after the other. A zero divisor in one of the first m lanes sets the status instead of trapping; the
// smallest value by -1 wraps. kind: quotient towards zero or down, their remainders.
template <typename V> static __attribute__((noinline)) void fl_idiv_lanes(const V* a, const V* b, V* out, i32 m, i32 kind, i64& status) {
  V r = *a;
  for (i32 l = 0; l < m; ++l) {
    const i64 x = (*a)[l], y = (*b)[l];
    if (y == 0) {
      status = 1;
      r[l] = 0;
      continue;
    }
    i64 q, rem;
    if (y == -1) {
      q = (i64)(0ul - (u64)x);
      rem = 0;
    } else {
      q = x / y;
      rem = x - q * y;
    }
    const bool fix = rem != 0 && ((rem < 0) != (y < 0));
    if (kind == 0) r[l] = q;
    if (kind == 1) r[l] = q - (fix ? 1 : 0);
    if (kind == 2) r[l] = rem;
    if (kind == 3) r[l] = rem + (fix ? y : 0);
  }
  *out = r;
}
// The same for all lanes at once, in f64, where every value is below 2^51: a quotient that is no integer is further than half an
// ulp from the next one, so cutting off its fraction is exact, and so is the remainder.
template <typename V> FL_INLINE V fl_idiv(V a, V b, i32 m, i32 kind, i64& status) {
  const i64x16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const i64x16 x = __builtin_convertvector(a, i64x16), y = __builtin_convertvector(b, i64x16);
  i64x16 odd = (y == 0) & (lane < (i64x16)((i64)m));
  if (sizeof(a[0]) == 8) {
    const u64x16 far = (((u64x16)x + (1ul << 51)) >> 52) | (((u64x16)y + (1ul << 51)) >> 52);
    odd |= (i64x16)far;
  }
  if (fl_any(odd)) {
    V r;
    fl_idiv_lanes<V>(&a, &b, &r, m, kind, status);
    return r;
  }
  const f64x16 fx = fl_float(x + 0x4338000000000000l) - 0x1.8p52;
  const f64x16 fy = fl_float((y == 0 ? (i64x16)(1l) : y) + 0x4338000000000000l) - 0x1.8p52;
  const f64x16 q = __builtin_elementwise_trunc(fx / fy);
  const f64x16 rem = fl_fma(-q, fy, fx);
  const i64x16 fix = (rem != 0.0) & ((rem < 0.0) ^ (fy < 0.0));
  const f64x16 r = kind == 0 ? q : kind == 1 ? (fix ? q - 1.0 : q) : kind == 2 ? rem : (fix ? rem + fy : rem);
  return __builtin_convertvector(fl_bits(r + 0x1.8p52) - 0x4338000000000000l, V);
}
)"},
    Helper{"check_index",
           R"(// The indices as they are. One of the first m lanes outside of [0, n) sets the status.
template <typename V> FL_INLINE V fl_check_index(V i, V n, i32 m, i64& status) {
  for (i32 l = 0; l < m; ++l)
    if (i[l] < 0 || i[l] >= n[l]) status = 2;
  return i;
}
)"},
    Helper{"ipow", R"(template <typename V> FL_INLINE V fl_ipow(V a, V b) {
  V r = a;
  for (i32 l = 0; l < 16; ++l) {
    const i64 x = a[l];
    i64 e = b[l];
    u64 p = 1, s = (u64)x;
    if (e < 0) {
      p = x == 1 ? 1 : x == -1 ? ((e & 1) ? ~0ul : 1ul) : 0;
      e = 0;
    }
    for (; e != 0; e >>= 1) {
      if (e & 1) p *= s;
      s *= s;
    }
    r[l] = (i64)p;
  }
  return r;
}
)"},
};

}  // namespace

std::string helper_texts(const Used& used) {
  std::string out(kTypes);
  for (const Helper& h : kHelpers)
    if (used.count(std::string(h.name)) != 0) out += h.text;
  return out;
}

}  // namespace fuselab::codegen::cpp
