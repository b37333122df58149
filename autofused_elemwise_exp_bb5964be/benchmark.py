"""The kernel autofused_elemwise_exp_bb5964be on its own: needs fuselab and torch, and no file beside it.

Nodes:
    y: f32[4, 8] = exp(x0)   # y

Modes:
    --profile  (default) compiles and runs the artifact below 11 times, and writes ./profiling
               --check and --bench are not to be had: the graph came as text, so there is no PyTorch fragment; `fuselab repro` checks the kernel
    --e2e      with a mode: makes the artifact anew from KERNEL_IR below, which may be edited

Exit codes: 0 done and held, 1 failed, 2 the call was wrong. docs/repro.md says more.
Made with fuselab 0.1.0.
"""
import os
import sys

# The variables of the process that made this script. What the caller sets wins.
_bench_env = {}
for _name, _value in _bench_env.items():
    if os.environ.setdefault(_name, _value) != _value:
        print(f"WARNING: {_name} is {os.environ[_name]!r} here; it was {_value!r} when this script was made.", file=sys.stderr)
for _name in ("AUTOFUSE_DFX_FLAGS", "TORCH_COMPILE_DEBUG", "FUSELAB_CHECK_KERNELS"):
    os.environ.pop(_name, None)  # a script writes no scripts
os.environ["FUSELAB_BACKEND"] = "cpu"

KERNEL = "autofused_elemwise_exp_bb5964be"
MADE_WITH = {"fuselab": "0.1.0", "torch": ""}
IS_STATIC = True
PRECISION = "block"
SIZE_HINTS = {}
NO_CHECK_REASON = "the graph came as text, so there is no PyTorch fragment; `fuselab repro` checks the kernel"

# What the kernel is called with: sizes by name, tensors by layout.
CALL_ARGUMENTS = [("tensor", "x0")]
PROFILE_BUFFERS = [
    {"name": "x0", "dtype": "f32", "shape": (4, 8), "stride": (8, 1)},
]

FRAGMENT = r'''graph autofused_elemwise_exp_bb5964be(x0: f32[4, 8]) {
  y: f32[4, 8] = exp(x0)
  return y
}
'''

ARTIFACTS = {
    "name": "autofused_elemwise_exp_bb5964be",
    "target": "avx512",
    "sizes": [],
    "vector_core_num": 2,
    "ai_core_num": 2,
    "hash": "43fefc96d9fcfe67",
    "wrapper": r'''// One launch on one thread. buffers: inputs, then outputs; sizes: the values of []; tiling: autofused_elemwise_exp_bb5964be_tiling_bytes bytes;
// scratch and shared: as many bytes as autofused_elemwise_exp_bb5964be_tile() writes into the tiling, 64-byte aligned. 0 when all went well.
extern "C" long autofused_elemwise_exp_bb5964be_launch(void* const* buffers, const long* sizes, void* tiling, char* scratch, char* shared) {
  autofused_elemwise_exp_bb5964be_tile(sizes, 1, tiling);
  const struct autofused_elemwise_exp_bb5964be_tiling* const t = (const struct autofused_elemwise_exp_bb5964be_tiling*)tiling;
  for (long phase = 0; phase < t->phases; ++phase) {
    const long status = autofused_elemwise_exp_bb5964be_run(buffers, tiling, phase, 0, t->units[phase], scratch, shared);
    if (status) return status;
  }
  return 0;
}
''',
    "tiling_def": r'''// Sizes and split of one launch; the first fields are common to all kernels.
struct autofused_elemwise_exp_bb5964be_tiling {
  long phases, units[2], grain[2], scratch_bytes, shared_bytes;
};
extern "C" {
extern const long autofused_elemwise_exp_bb5964be_tiling_bytes;
const long autofused_elemwise_exp_bb5964be_tiling_bytes = sizeof(struct autofused_elemwise_exp_bb5964be_tiling);
}
''',
    "host_impl": r'''extern "C" void autofused_elemwise_exp_bb5964be_tile(const long* sizes, long threads, void* out) {
  struct autofused_elemwise_exp_bb5964be_tiling* const t = (struct autofused_elemwise_exp_bb5964be_tiling*)out;
  (void)sizes;
  (void)threads;
  const long cycles = (2) * 24 + 50;  // of one unit, roughly
  t->phases = 1;
  t->units[0] = (1) * (1) * (1);
  t->units[1] = 0;
  t->grain[0] = 60000 / cycles + 1;
  t->grain[1] = 1;
  t->scratch_bytes = 0;
  t->shared_bytes = 0;
}
''',
    "device_impl": r'''typedef float f32;
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
typedef _Float16 f16;
typedef f16 f16x16 __attribute__((ext_vector_type(16)));
typedef i8 i8x16 __attribute__((ext_vector_type(16)));
typedef u8 u8x16 __attribute__((ext_vector_type(16)));
typedef i16 i16x16 __attribute__((ext_vector_type(16)));
typedef u16 u16x16 __attribute__((ext_vector_type(16)));
// A vector at an address that is only as aligned as its elements.
template <typename V> struct fl_any_place { V v; } __attribute__((packed, aligned(1), may_alias));
template <typename V> FL_INLINE V fl_load(const void* p) { return ((const fl_any_place<V>*)p)->v; }
template <typename V> FL_INLINE void fl_store(void* p, V v) { ((fl_any_place<V>*)p)->v = v; }

FL_INLINE f32x16 fl_exp_head_f32(f32x16 rh, f32x16 rl, f32x16& tl) {
  f32x16 p = fl_fma(rh, fl_f32(0x1.a242f0p-13f), fl_f32(0x1.6d3cd0p-10f));
  p = fl_fma(p, rh, fl_f32(0x1.111004p-7f));
  p = fl_fma(p, rh, fl_f32(0x1.5554f6p-5f));
  p = fl_fma(p, rh, fl_f32(0x1.555556p-3f));
  f32x16 sq = rh * rh;
  f32x16 th = fl_fma(sq, fl_f32(0.5f), rh);
  f32x16 rest = fl_fma(fl_fma(rh, rh, -sq), fl_f32(0.5f), fl_fma(sq, fl_f32(0.5f), rh - th));
  tl = fl_fma(rh * sq, p, rest) + fl_fma(rl, th, rl);
  return th;
}

FL_INLINE f32x16 fl_scale_f32(f32x16 s, f32x16 lo, i32x16 k) {
  return fl_to_f32((fl_to_f64(s) + fl_to_f64(lo)) * fl_float((__builtin_convertvector(k, i64x16) + 1023) << 52));
}

FL_INLINE f32x16 fl_exp_f32(f32x16 x) {
  f32x16 shifted = fl_fma(x, fl_f32(0x1.715476p+0f), fl_f32(0x1.8p23f));
  f32x16 n = shifted - 0x1.8p23f;
  f32x16 rh = fl_fma(n, fl_f32(-0x1.62e430p-1f), x);
  f32x16 rl = n * 0x1.05c610p-29f;
  f32x16 tail;
  f32x16 th = fl_exp_head_f32(rh, rl, tail);
  f32x16 s = 1.0f + th;
  f32x16 lo = (th - (s - 1.0f)) + tail;
  f32x16 y = fl_float(fl_bits(s + lo) + (fl_bits(shifted) << 23));
  if (fl_any(!(fl_abs(x) <= 87.33f))) {
    f32x16 edge = x > 0.0f ? fl_f32(__builtin_inff()) : fl_f32(0.0f);
    f32x16 near = fl_scale_f32(s, lo, fl_abs(x) <= 105.0f ? fl_bits(shifted) - 0x4b400000 : 0);
    y = fl_abs(x) <= 105.0f ? near : x != x ? x : edge;
  }
  return y;
}
extern "C" long autofused_elemwise_exp_bb5964be_run(void* const* bufs, const void* tiling, long phase, long begin, long end_unit, char* scratch, char* shared) {
  const struct autofused_elemwise_exp_bb5964be_tiling* const t = (const struct autofused_elemwise_exp_bb5964be_tiling*)tiling;
  (void)t; (void)phase; (void)scratch; (void)shared;
  i64 status = 0;
  for (i64 unit = begin; unit < end_unit; ++unit) {
    const f32* const x0_0p = (const f32*)bufs[0];
    f32* const y_1p = (f32*)bufs[1];
    const i64 first = 0, last = 32;
    i64 e = first;
    for (; e + 16 <= last; e += 16) {
      const f32x16 x0_0 = fl_load<f32x16>(x0_0p + 0 + e);
      const f32x16 y_1 = fl_exp_f32(x0_0);
      fl_store<f32x16>(y_1p + 0 + e, y_1);
    }
  }
  return status;
}
''',
}

# --e2e compiles this text.
KERNEL_IR = r'''kernel autofused_elemwise_exp_bb5964be {
  in x0: f32  # f32[4, 8]
  out y: f32  # f32[4, 8]
  axis p0: parallel [4]
  axis p1: parallel [8]
  %0 = load x0 [[8]*p0 + p1]: f32  # x0
  %1 = exp %0: f32  # y
  %2 = store y [[8]*p0 + p1] %1: f32  # y
}
'''


if __name__ == "__main__":
    from fuselab.repro.runner import main

    sys.exit(main(globals()))
