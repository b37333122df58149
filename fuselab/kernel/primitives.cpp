#include "fuselab/kernel/primitives.h"

#include <array>

namespace fuselab::kernel {
namespace {
constexpr auto kSame = ResultType::same;
constexpr auto kBool = ResultType::boolean;
// rsqrt_seed and recip_seed are first guesses for Newton's iteration, from the bits alone: no recipe uses them, edited IR does.
// So it is with relu, whose recipe is a select.
constexpr std::array kPrimitives = {
    Primitive{"add", 2, kSame, 1},        Primitive{"sub", 2, kSame, 1},          Primitive{"mul", 2, kSame, 1},
    Primitive{"div", 2, kSame, 10},       Primitive{"neg", 1, kSame, 1},          Primitive{"abs", 1, kSame, 1},
    Primitive{"fma", 3, kSame, 1},        Primitive{"min", 2, kSame, 4},          Primitive{"max", 2, kSame, 4},
    Primitive{"lt", 2, kBool, 1},         Primitive{"le", 2, kBool, 1},           Primitive{"gt", 2, kBool, 1},
    Primitive{"ge", 2, kBool, 1},         Primitive{"eq", 2, kBool, 1},           Primitive{"ne", 2, kBool, 1},
    Primitive{"and", 2, kBool, 1},        Primitive{"or", 2, kBool, 1},           Primitive{"xor", 2, kBool, 1},
    Primitive{"not", 1, kBool, 1},        Primitive{"band", 2, kSame, 1},         Primitive{"bor", 2, kSame, 1},
    Primitive{"bxor", 2, kSame, 1},       Primitive{"bnot", 1, kSame, 1},         Primitive{"shl", 2, kSame, 3},
    Primitive{"shr", 2, kSame, 3},        Primitive{"select", 3, kSame, 1},       Primitive{"floor", 1, kSame, 1},
    Primitive{"ceil", 1, kSame, 1},       Primitive{"trunc", 1, kSame, 1},        Primitive{"round", 1, kSame, 1},
    Primitive{"sqrt", 1, kSame, 12},      Primitive{"rsqrt", 1, kSame, 22},       Primitive{"recip", 1, kSame, 10},
    Primitive{"exp", 1, kSame, 20},       Primitive{"exp2", 1, kSame, 20},        Primitive{"expm1", 1, kSame, 30},
    Primitive{"log", 1, kSame, 25},       Primitive{"log2", 1, kSame, 25},        Primitive{"log10", 1, kSame, 25},
    Primitive{"log1p", 1, kSame, 30},     Primitive{"sin", 1, kSame, 30},         Primitive{"cos", 1, kSame, 30},
    Primitive{"tan", 1, kSame, 40},       Primitive{"tanh", 1, kSame, 30},        Primitive{"sigmoid", 1, kSame, 30},
    Primitive{"erf", 1, kSame, 35},       Primitive{"erfc", 1, kSame, 50},        Primitive{"atan2", 2, kSame, 40},
    Primitive{"pow", 2, kSame, 80},       Primitive{"isnan", 1, kBool, 1},        Primitive{"isinf", 1, kBool, 1},
    Primitive{"isfinite", 1, kBool, 1},   Primitive{"signbit", 1, kBool, 1},      Primitive{"copysign", 2, kSame, 1},
    Primitive{"fmod", 2, kSame, 60},      Primitive{"idiv_trunc", 2, kSame, 60},  Primitive{"idiv_floor", 2, kSame, 60},
    Primitive{"irem", 2, kSame, 60},      Primitive{"imod_floor", 2, kSame, 60},  Primitive{"ipow", 2, kSame, 60},
    Primitive{"silu", 1, kSame, 30},      Primitive{"gelu", 1, kSame, 40},        Primitive{"gelu_tanh", 1, kSame, 40},
    Primitive{"softplus", 1, kSame, 40},  Primitive{"mish", 1, kSame, 60},        Primitive{"sinh", 1, kSame, 40},
    Primitive{"cosh", 1, kSame, 40},      Primitive{"asin", 1, kSame, 40},        Primitive{"acos", 1, kSame, 40},
    Primitive{"atan", 1, kSame, 40},      Primitive{"asinh", 1, kSame, 50},       Primitive{"acosh", 1, kSame, 50},
    Primitive{"atanh", 1, kSame, 50},     Primitive{"exp_sum", 1, kSame, 14},     Primitive{"quotient", 2, kSame, 4},
    Primitive{"hardswish", 1, kSame, 8},  Primitive{"log_sigmoid", 1, kSame, 40}, Primitive{"check_index", 2, kSame, 3},
    Primitive{"rsqrt_seed", 1, kSame, 3}, Primitive{"recip_seed", 1, kSame, 3},   Primitive{"relu", 1, kSame, 2},
};
}  // namespace

const Primitive* find_primitive(std::string_view name) {
  for (const Primitive& p : kPrimitives)
    if (p.name == name) return &p;
  return nullptr;
}

}  // namespace fuselab::kernel
