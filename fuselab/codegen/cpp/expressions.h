// The text of one computed value: primitive -> C++ on 16-lane vectors.
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fuselab/codegen/cpp/types.h"
#include "fuselab/kernel/ir.h"

namespace fuselab::codegen::cpp {

/// What the text of a kernel needs besides itself.
struct Needs {
  Used helpers;
  std::vector<std::pair<std::string, DType>> functions;  ///< vecmath
};

/// The value of compute statement `s` from its operands' texts. `active` is the number of lanes that count (integer division).
std::string compute_text(const kernel::Kernel& k, const kernel::Stmt& s, const std::vector<std::string>& args,
                         const std::string& active, Needs& needs);

/// `a` and `b` folded by reduction `op` (not argmax, argmin).
std::string combine_text(const std::string& op, DType t, const std::string& a, const std::string& b, Needs& needs);
/// The scalar a reduction starts from.
std::string identity_text(const std::string& op, DType t);

}  // namespace fuselab::codegen::cpp
