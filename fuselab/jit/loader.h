// Object bytes -> code in memory, with ORC and JITLink.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace fuselab::jit {

/// One loaded object file; its code stays valid as long as this lives.
class Code {
 public:
  virtual ~Code() = default;
  /// Address of a symbol named in load_object(); the order is that of `symbols`.
  virtual void* address(std::size_t index) const = 0;
};

/// Loads and links. What the object needs from outside comes from a fixed list only: memcpy, memmove, memset, the C library's
/// mathematics, SLEEF's Sleef_* functions, and the compiler's half-precision conversions. Throws Error("jit.link") naming what is
/// missing or damaged.
std::shared_ptr<Code> load_object(const std::vector<char>& object, const std::string& name,
                                  const std::vector<std::string>& symbols);

}  // namespace fuselab::jit
