#include "fuselab/core/warn.h"

#include <mutex>
#include <set>

namespace fuselab {
namespace {

struct State {
  std::recursive_mutex mutex;  // a handler may warn or replace itself
  WarningHandler handler;
  std::set<std::pair<std::string, std::string>> seen;
};

State& state() {
  static State* s = new State;  // never destroyed: threads may warn while the process ends
  return *s;
}

}  // namespace

WarningHandler set_warning_handler(WarningHandler handler) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  std::swap(s.handler, handler);
  return handler;
}

void warn_text(const char* code, const std::string& message) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  if (const WarningHandler handler = s.handler) handler(code, message);
}

void warn_once_text(const char* code, const std::string& once_key, const std::string& message) {
  State& s = state();
  std::lock_guard<std::recursive_mutex> lock(s.mutex);
  if (!s.seen.emplace(code, once_key).second) return;
  warn_text(code, message);
}

}  // namespace fuselab
