// Warnings: what the user should know though the work goes on. The library never prints; whoever embeds it says where they go.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <string>
#include <utility>

namespace fuselab {

/// Called with a stable code ("cache.damaged") and one sentence. May be called from any thread; calls do not overlap.
using WarningHandler = std::function<void(const std::string& code, const std::string& message)>;

/// Installs the handler and returns the one before. Until one is installed, warnings go nowhere.
WarningHandler set_warning_handler(WarningHandler handler);

/// Gives a warning to the handler. An exception from the handler is passed on to the caller (Python turns warnings into errors
/// so).
void warn_text(const char* code, const std::string& message);

/// The same, but only the first time in this process that `once_key` is seen with this code.
void warn_once_text(const char* code, const std::string& once_key, const std::string& message);

template <typename... Args>
void warn(const char* code, fmt::format_string<Args...> text, Args&&... args) {
  warn_text(code, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace fuselab
