// Errors: one exception type with a stable code. The library throws it and never prints or aborts.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace fuselab {

/// What every failure of the library is. `code()` is stable ("graph.unknown_op", "flags.unknown_option") and may be
/// matched by programs; `what()` is one sentence: what is wrong, where, and what to do.
class Error : public std::runtime_error {
 public:
  Error(std::string code, const std::string& message) : std::runtime_error(message), code_(std::move(code)) {}
  const std::string& code() const noexcept { return code_; }

 private:
  std::string code_;
};

/// Throws Error(code, formatted message).
template <typename... Args>
[[noreturn]] void fail(const char* code, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(code, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace fuselab
