// Texts of the elementary functions that generated kernels inline: header-free C++ on 16-lane clang vectors.
//
// Every text uses IEEE operations, explicit fma, integer operations and selects only, so its bits are the same on AVX-512, AVX2
// and baseline targets. docs/vector-math.md has the measured error of each; tests/exhaustive/vecmath_exhaustive.cpp measures it.
// The texts must be compiled without fast-math and with -ffp-contract=off.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuselab/core/dtype.h"

namespace fuselab::codegen::vecmath {

/// One function's text. It defines `static inline V symbol(V x [, V y])`, V = f32x16 or f64x16.
struct Function {
  std::string_view name;                ///< "exp": the kernel primitive's name; helpers begin with '_'
  DType type;                           ///< f32 or f64; f16, bf16: see find()
  int args;                             ///< 1 or 2
  std::string_view symbol;              ///< "fl_exp_f32"
  std::string_view text;                ///< the definition alone; needs prelude() and everything in `needs` before it
  std::vector<std::string_view> needs;  ///< names of functions and helpers it calls, each "exp" (same type) or "exp:f64"
};

/// The function of that name, or nullptr. For f16 (bf16) only the functions exist whose f32 result, rounded to f16, would miss
/// the correctly rounded value for some f16 input: the returned one takes and gives f32x16 like the f32 function, and never
/// misses. Use it where the argument is an f16 value and the result is stored as f16; use the f32 function where this gives
/// nullptr.
const Function* find(std::string_view name, DType type);

/// All functions that a kernel may call (helpers excluded), sorted by type, then name.
std::vector<const Function*> all();

/// Scalar and vector typedefs (f32 f64 i8..i64 u8..u64; f32x16 f64x16 i32x16 u32x16 i64x16 u64x16), the FL_INLINE macro, bit
/// casts, broadcasts (fl_f32, fl_i32, fl_f64, fl_i64), fl_fma. Emitted once, first.
std::string_view prelude();

/// The texts of these functions and of all they need, each once, needs first; order depends on the set only, not on the order
/// given. Throws Error("codegen.no_function") for a pair that does not exist. Does not contain prelude().
std::string texts(std::vector<std::pair<std::string, DType>> functions);

/// Symbols the texts leave undefined, for the JIT to provide. On targets without hardware fma the compiler adds fma and fmaf.
const std::vector<std::string>& external_symbols();

}  // namespace fuselab::codegen::vecmath
