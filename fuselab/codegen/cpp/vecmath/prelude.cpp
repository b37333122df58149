// The types and helpers that every text stands on.
#include "fuselab/codegen/cpp/vecmath/vecmath.h"

namespace fuselab::codegen::vecmath {

std::string_view prelude() {
  // min-legal-vector-width: taking vectors by value in always_inline functions makes the caller use full-width registers.
  return R"fl(typedef float f32;
typedef double f64;
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long i64;
typedef unsigned long u64;
typedef f32 f32x16 __attribute__((ext_vector_type(16)));
typedef f64 f64x16 __attribute__((ext_vector_type(16)));
typedef i32 i32x16 __attribute__((ext_vector_type(16)));
typedef u32 u32x16 __attribute__((ext_vector_type(16)));
typedef i64 i64x16 __attribute__((ext_vector_type(16)));
typedef u64 u64x16 __attribute__((ext_vector_type(16)));
#define FL_INLINE static inline __attribute__((always_inline))
FL_INLINE f32x16 fl_f32(f32 x) { return (f32x16)(x); }
FL_INLINE f64x16 fl_f64(f64 x) { return (f64x16)(x); }
FL_INLINE i32x16 fl_i32(i32 x) { return (i32x16)(x); }
FL_INLINE i64x16 fl_i64(i64 x) { return (i64x16)(x); }
FL_INLINE f32x16 fl_fma(f32x16 a, f32x16 b, f32x16 c) { return __builtin_elementwise_fma(a, b, c); }
FL_INLINE f64x16 fl_fma(f64x16 a, f64x16 b, f64x16 c) { return __builtin_elementwise_fma(a, b, c); }
FL_INLINE i32x16 fl_bits(f32x16 x) { return __builtin_bit_cast(i32x16, x); }
FL_INLINE i64x16 fl_bits(f64x16 x) { return __builtin_bit_cast(i64x16, x); }
FL_INLINE f32x16 fl_float(i32x16 x) { return __builtin_bit_cast(f32x16, x); }
FL_INLINE f64x16 fl_float(i64x16 x) { return __builtin_bit_cast(f64x16, x); }
FL_INLINE f64x16 fl_to_f64(f32x16 x) { return __builtin_convertvector(x, f64x16); }
FL_INLINE f32x16 fl_to_f32(f64x16 x) { return __builtin_convertvector(x, f32x16); }
FL_INLINE f32x16 fl_abs(f32x16 x) { return fl_float(fl_bits(x) & 0x7fffffff); }
FL_INLINE f64x16 fl_abs(f64x16 x) { return fl_float(fl_bits(x) & 0x7fffffffffffffffl); }
// LLVM 19 may fold a select between s and two bit operations that read s into one masked vpternlog with a broadcast constant, and
// exchanges two operands on the way. It cannot look through this.
#ifdef __AVX512F__
typedef i64 i64x8 __attribute__((ext_vector_type(8)));
FL_INLINE i32x16 fl_keep(i32x16 x) {
  __asm__("" : "+v"(x));
  return x;
}
FL_INLINE i64x16 fl_keep(i64x16 x) {
  i64x8 low = x.lo, high = x.hi;
  __asm__("" : "+v"(low));
  __asm__("" : "+v"(high));
  x.lo = low;
  x.hi = high;
  return x;
}
#else
FL_INLINE i32x16 fl_keep(i32x16 x) { return x; }
FL_INLINE i64x16 fl_keep(i64x16 x) { return x; }
#endif
FL_INLINE f32x16 fl_with_sign(f32x16 x, f32x16 s) {
  return fl_float(fl_keep((fl_bits(x) & 0x7fffffff) | (fl_bits(s) & (i32)0x80000000)));
}
FL_INLINE f64x16 fl_with_sign(f64x16 x, f64x16 s) {
  return fl_float(fl_keep((fl_bits(x) & 0x7fffffffffffffffl) | (fl_bits(s) & (i64)0x8000000000000000ul)));
}
FL_INLINE bool fl_any(i32x16 c) { return __builtin_reduce_or(c) != 0; }
FL_INLINE bool fl_any(i64x16 c) { return __builtin_reduce_or(c) != 0; }
)fl";
}

}  // namespace fuselab::codegen::vecmath
