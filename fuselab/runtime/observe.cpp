#include "fuselab/runtime/observe.h"

#include <chrono>

namespace fuselab::runtime {
namespace {

std::atomic<StepSink*> g_sink{nullptr};

}  // namespace

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void set_step_sink(StepSink* sink) { g_sink.store(sink, std::memory_order_release); }
StepSink* step_sink() { return g_sink.load(std::memory_order_acquire); }

}  // namespace fuselab::runtime
