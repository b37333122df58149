// The primitives of kernel IR: what recipes may call and code generation knows how to print.
#pragma once
#include <cstdint>
#include <string_view>

namespace fuselab::kernel {

enum class ResultType : std::uint8_t { same, boolean };

struct Primitive {
  std::string_view name;
  int args;
  ResultType result;  ///< same: type of the arguments (of the last ones for select)
  int cost;           ///< rough cycles per 16 lanes: decides whether a value is kept or computed again
};

/// nullptr when unknown.
const Primitive* find_primitive(std::string_view name);

}  // namespace fuselab::kernel
