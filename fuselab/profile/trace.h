// Reading trace files (trace_view.json of torch_npu and of ours, PyTorch's, Chrome's): exact times, and what is left of a file
// that is no JSON.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuselab::profile {

struct TraceEvent {
  std::string name, phase, category;
  std::string process, thread;           ///< as written: numbers or names
  std::optional<std::int64_t> start_ns;  ///< after the first event of the file that has a time; absent: a metadata event
  std::optional<std::int64_t> duration_ns;
  std::map<std::string, std::string> args;  ///< texts, numbers as written; nested values are left out
};

struct Trace {
  std::int64_t base_ns = 0;  ///< of the clock of the file: what start_ns counts from
  std::vector<TraceEvent> events;
  std::int64_t lost = 0;  ///< salvage: pieces of the file that are no event
};

/// An array of events, or an object with `traceEvents`. Times are decimal microseconds, as numbers or texts; read exactly, since
/// a double is off by hundreds of nanoseconds there. Throws Error("trace.malformed"): line, byte and what is wrong; with
/// `salvage` the events around the broken place are read all the same. Error("file.unreadable").
Trace read_trace(const std::string& path, bool salvage = false);
Trace parse_trace(std::string_view text, const std::string& what, bool salvage = false);

}  // namespace fuselab::profile
