#include "fuselab/profile/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <mutex>
#include <unordered_map>

#include "fuselab/core/error.h"
#include "fuselab/runtime/compiled.h"
#include "fuselab/runtime/observe.h"

namespace fuselab::profile {
namespace {

using runtime::StepTime;

/// Spellings of the files' data types.
const char* type_text(DType t) {
  static const char* const kNames[] = {"FLOAT16", "DT_BF16", "FLOAT", "DOUBLE", "INT8",
                                       "UINT8",   "INT16",   "INT32", "INT64",  "BOOL"};
  return kNames[static_cast<int>(t)];
}

std::string kind_of(const std::string& kernel) {  // autofused_<kind>_<ops>_<hash>
  const std::size_t begin = kernel.find('_');
  const std::size_t end = begin == std::string::npos ? begin : kernel.find('_', begin + 1);
  return end == std::string::npos ? "autofused" : kernel.substr(0, end);
}

/// What the rows of one graph at one set of sizes have in common; made when the pair is first seen.
struct Graph {
  std::shared_ptr<const runtime::Binding> binding;  // held, so that its address means this one
  std::vector<KernelRow> rows;                      // per step, without times
  std::vector<std::uint8_t> launched;               // steps that are launches
};

std::vector<OperandInfo> operands(const runtime::Call& call, const std::vector<int>& slots) {
  std::vector<OperandInfo> out;
  for (const int slot : slots) {
    if (slot < 0) continue;
    const runtime::SlotNumbers& n = call.binding->slots[static_cast<std::size_t>(slot)];
    const DType t = call.graph.program().slots[static_cast<std::size_t>(slot)].type.dtype;
    out.push_back({{n.shape().begin(), n.shape().end()}, type_text(t), "ND"});
  }
  return out;
}

Graph describe(const runtime::Call& call) {
  Graph g;
  g.binding = call.binding_owner();
  const runtime::Program& p = call.graph.program();
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const runtime::ProgramStep& s = p.steps[i];
    KernelRow row;
    row.name = s.label;
    row.device = 0;
    row.state = "static";
    row.core = "CPU";
    row.stream = 0;
    if (s.kind == fuse::Step::Kind::kernel) {
      row.type = kind_of(s.label);
      const auto middle = s.slots.begin() + s.inputs;
      row.inputs = operands(call, {s.slots.begin(), middle});
      row.outputs = operands(call, {middle, s.slots.end()});
      row.blocks = std::max(call.binding->launches[i].threads[0], call.binding->launches[i].threads[1]);
    } else if (s.kind == fuse::Step::Kind::extern_call) {
      row.type = s.label;
      std::vector<int> inputs;
      for (const runtime::ExternArg& a : s.args) inputs.push_back(a.slot);
      row.inputs = operands(call, inputs);
      row.outputs = operands(call, s.slots);
    }
    g.launched.push_back(s.kind != fuse::Step::Kind::view);
    g.rows.push_back(std::move(row));
  }
  return g;
}

struct Event {
  const KernelRow* row;  // of a Graph, or of spans_
  std::int64_t step, begin, end;
};

class Recorder final : public runtime::StepSink {
 public:
  void called(const runtime::Call& call, const std::vector<StepTime>& times) noexcept override {
    const std::lock_guard lock(mutex_);
    if (!on_) return;
    try {
      Graph*& g = last_binding_ == call.binding ? last_graph_ : by_binding_[call.binding];
      if (!g) g = &graphs_.emplace_back(describe(call));
      last_binding_ = call.binding;
      last_graph_ = g;
      for (std::size_t i = 0; i < times.size(); ++i) {
        if (g->launched[i]) events_.push_back({&g->rows[i], step_, times[i].begin, times[i].end});
      }
    } catch (...) {  // out of memory: the profile is cut, the program is not
      on_ = false;
    }
  }

  void start() {
    const std::lock_guard lock(mutex_);
    if (on_) fail("profile.running", "A profile is being recorded already; stop it first.");
    clear();
    events_.reserve(1 << 16);
    on_ = true;
    step_ = 0;
    runtime::set_step_sink(this);
  }

  void mark(std::int64_t step) {
    const std::lock_guard lock(mutex_);
    step_ = step;
  }

  void span(const std::string& name, const std::string& type, std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex_);
    if (!on_) return;
    KernelRow row;
    row.name = name;
    row.type = type;
    row.core = "CPU";
    row.device = row.stream = 0;
    events_.push_back({&spans_.emplace_back(std::move(row)), step_, begin, end});
  }

  bool on() {
    const std::lock_guard lock(mutex_);
    return on_;
  }

  std::vector<KernelRow> stop() {
    const std::lock_guard lock(mutex_);
    if (!on_) fail("profile.stopped", "No profile is being recorded.");
    on_ = false;
    runtime::set_step_sink(nullptr);
    const std::int64_t to_system =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count() -
        runtime::now_ns();
    std::stable_sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) { return a.begin < b.begin; });
    std::vector<KernelRow> rows;
    rows.reserve(events_.size());
    std::int64_t before = -1, task = 0;
    for (const Event& e : events_) {
      KernelRow& row = rows.emplace_back(*e.row);
      if (e.step > 0) row.step = e.step;
      row.task = task++;
      row.start_ns = e.begin + to_system;
      row.duration_us = static_cast<double>(e.end - e.begin) / 1000;
      row.wait_us = before < 0 ? 0 : static_cast<double>(std::max<std::int64_t>(0, e.begin - before)) / 1000;
      before = std::max(before, e.end);
    }
    clear();
    return rows;
  }

 private:
  void clear() {
    events_.clear();
    graphs_.clear();
    spans_.clear();
    by_binding_.clear();
    last_binding_ = nullptr;
    last_graph_ = nullptr;
  }

  std::mutex mutex_;
  bool on_ = false;
  std::int64_t step_ = 0;
  std::vector<Event> events_;
  std::deque<Graph> graphs_;
  std::deque<KernelRow> spans_;
  std::unordered_map<const void*, Graph*> by_binding_;
  const void* last_binding_ = nullptr;
  Graph* last_graph_ = nullptr;
};

Recorder& recorder() {
  static auto* const it = new Recorder;  // never destroyed: a call in another thread may still report at exit
  return *it;
}

}  // namespace

void start_recording() { recorder().start(); }
void mark_step(std::int64_t step) { recorder().mark(step); }
void record_span(const std::string& name, const std::string& type, std::int64_t begin_ns, std::int64_t end_ns) {
  recorder().span(name, type, begin_ns, end_ns);
}
bool recording() { return recorder().on(); }
std::vector<KernelRow> stop_recording() { return recorder().stop(); }

void write_profile(const std::string& folder, const std::vector<KernelRow>& rows) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail("file.write", "{} cannot be made: {}.", folder, error.message());
  write_kernel_details(folder + "/kernel_details.csv", rows);
  write_trace(folder + "/trace_view.json", rows);
}

}  // namespace fuselab::profile
