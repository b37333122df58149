// Looking at calls from outside: the times of their steps, and the data that kernels read and wrote.
//
// Both cost one test per call when nobody looks.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

namespace fuselab::runtime {

class Call;

/// Nanoseconds of the monotonic clock.
struct StepTime {
  std::int64_t begin = 0, end = 0;
};
std::int64_t now_ns();

/// Sees the steps of every call in the process while it is set. It must outlive the process's last call: a call in progress may
/// still report after the sink was taken away.
class StepSink {
 public:
  virtual ~StepSink() = default;
  /// After a call has run; `times` has an entry per step of its program, views included (begin = end = 0).
  virtual void called(const Call& call, const std::vector<StepTime>& times) noexcept = 0;
};
void set_step_sink(StepSink* sink);
StepSink* step_sink();

/// Sees what kernels of one call read and wrote.
class DataWatcher {
 public:
  virtual ~DataWatcher() = default;
  /// Before and after kernel step `step`; operands are found through call.live. May throw: the call then fails with it.
  virtual void before_kernel(Call& call, int step) = 0;
  virtual void after_kernel(Call& call, int step) = 0;
};

}  // namespace fuselab::runtime
