// Rows: bits and shifts.
#include "fuselab/ops/rows.h"

namespace fuselab::ops {
namespace {

std::int64_t bits_of(DType t) { return 8 * size_of(t); }

}  // namespace

void add_integer(std::vector<Op>& t) {
  pointwise("bitwise_and", "self, other")
      .lower("-")
      .lower_int("band(self, other)")
      .lower_bool("self & other")
      .exact([](I a, A, DType) { return a[0] & a[1]; })
      .ulp(0)
      .no_low_precision()
      .aten("bitwise_and.Tensor, bitwise_and.Scalar, bitwise_and.Scalar_Tensor")
      .names("BitwiseAnd", "BitwiseAnd", "BitwiseAnd")
      .doc("Bitwise and of integers; logical and of bools.", t);
  pointwise("bitwise_or", "self, other")
      .lower("-")
      .lower_int("bor(self, other)")
      .lower_bool("self | other")
      .exact([](I a, A, DType) { return a[0] | a[1]; })
      .ulp(0)
      .no_low_precision()
      .aten("bitwise_or.Tensor, bitwise_or.Scalar, bitwise_or.Scalar_Tensor")
      .names("BitwiseOr", "BitwiseOr", "BitwiseOr")
      .doc("Bitwise or of integers; logical or of bools.", t);
  pointwise("bitwise_xor", "self, other")
      .lower("-")
      .lower_int("bxor(self, other)")
      .lower_bool("self != other")
      .exact([](I a, A, DType) { return a[0] ^ a[1]; })
      .ulp(0)
      .no_low_precision()
      .aten("bitwise_xor.Tensor, bitwise_xor.Scalar, bitwise_xor.Scalar_Tensor")
      .names("BitwiseXor", "BitwiseXor", "BitwiseXor")
      .doc("Bitwise exclusive or of integers; logical exclusive or of bools.", t);
  pointwise("bitwise_not", "self")
      .lower("-")
      .lower_int("bnot(self)")
      .lower_bool("!self")
      .exact([](I a, A, DType t) { return is_bool(t) ? std::int64_t{a[0] == 0} : ~a[0]; })
      .ulp(0)
      .no_low_precision()
      .aten("bitwise_not.default")
      .names("BitwiseNot", "Invert", "Invert")
      .doc("Bitwise complement of integers; logical not of bools.", t);
  // PyTorch's shifts: a count outside [0, bits) shifts everything out; to the right that leaves the sign.
  pointwise("bitwise_left_shift", "self, other")
      .lower("-")
      .lower_int("shl(self, other)")
      .lower_bool("-")
      .exact([](I a, A, DType t) {
        const bool inside = a[1] >= 0 && a[1] < bits_of(t);
        return inside ? static_cast<std::int64_t>(static_cast<std::uint64_t>(a[0]) << a[1]) : std::int64_t{0};
      })
      .ulp(0)
      .no_low_precision()
      .aten("bitwise_left_shift.Tensor, bitwise_left_shift.Tensor_Scalar, __lshift__.Scalar, __lshift__.Tensor")
      .names("BitShift", "LeftShift", "LeftShift")
      .doc("Shift to the left; a count below 0 or not below the width gives 0.", t);
  pointwise("bitwise_right_shift", "self, other")
      .lower("-")
      .lower_int("shr(self, other)")
      .lower_bool("-")
      .exact([](I a, A, DType t) {
        const bool inside = a[1] >= 0 && a[1] < bits_of(t);
        return inside ? a[0] >> a[1] : std::int64_t{a[0] < 0 ? -1 : 0};
      })
      .ulp(0)
      .no_low_precision()
      .aten("bitwise_right_shift.Tensor, bitwise_right_shift.Tensor_Scalar, __rshift__.Scalar, __rshift__.Tensor")
      .names("BitShift", "RightShift", "RightShift")
      .doc("Arithmetic shift to the right; a count below 0 or not below the width leaves only the sign.", t);
  // What a look-up checks before it reads: taken apart, nll_loss compares every class with the target and would miss this.
  pointwise("checked_index", "self!, size")
      .lower("-")
      .lower_int("check_index(self, size)")
      .lower_bool("-")
      .exact([](I a, A, DType) { return a[0]; })
      .ulp(0)
      .no_low_precision()
      .aten("fuselab::checked_index.default")
      .doc("The argument; an error if it is negative or not below size.", t);
}

}  // namespace fuselab::ops
