// 1/x and 1/sqrt(x): IEEE division and square root, no estimate instructions.
#include "fuselab/codegen/cpp/vecmath/groups.h"

namespace fuselab::codegen::vecmath {

const Group& roots() {
  static const Group group = {
      {"recip", DType::f32, 1, "fl_recip_f32", "\nFL_INLINE f32x16 fl_recip_f32(f32x16 x) { return 1.0f / x; }\n", {}},
      {"recip", DType::f64, 1, "fl_recip_f64", "\nFL_INLINE f64x16 fl_recip_f64(f64x16 x) { return 1.0 / x; }\n", {}},
      {"rsqrt",
       DType::f32,
       1,
       "fl_rsqrt_f32",
       "\nFL_INLINE f32x16 fl_rsqrt_f32(f32x16 x) { return 1.0f / __builtin_elementwise_sqrt(x); }\n",
       {}},
      {"rsqrt",
       DType::f64,
       1,
       "fl_rsqrt_f64",
       "\nFL_INLINE f64x16 fl_rsqrt_f64(f64x16 x) { return 1.0 / __builtin_elementwise_sqrt(x); }\n",
       {}},
  };
  return group;
}

}  // namespace fuselab::codegen::vecmath
