// Names of vector types and the text of conversions between them.
#pragma once
#include <set>
#include <string>

#include "fuselab/core/dtype.h"
#include "fuselab/ops/op.h"

namespace fuselab::codegen::cpp {

/// Helper functions a kernel text uses; their texts are emitted once each (helpers.h).
using Used = std::set<std::string>;

/// Scalar type in memory: f32, f16 (_Float16), bf16 and bool as u16 and u8.
std::string memory_type(DType t);
/// 16 lanes as computed with: bool is i32x16 with lanes 0 and -1; f16 and bf16 are only copied and converted.
std::string vector_type(DType t);
/// 16 lanes as stored: as vector_type, but bool is u8x16.
std::string memory_vector(DType t);
/// A literal of type t. Exact: hexadecimal floats, infinities and NaN as builtins.
std::string literal(const Scalar& v, DType t);
/// All lanes the same literal.
std::string splat(const std::string& scalar, DType t);
/// `mask` (i32x16 of 0 and -1) as a mask whose lanes are as wide as those of t.
std::string widen_mask(const std::string& mask, DType t);
/// `c ? a : b` by lanes.
std::string select(const std::string& c, const std::string& a, const std::string& b, DType t);
/// Conversion as PyTorch's `.to()` does it: truncation to integers, nearest even to floats, through f32 for f16 and bf16.
std::string convert(const std::string& v, DType from, DType to, Used& used);

}  // namespace fuselab::codegen::cpp
