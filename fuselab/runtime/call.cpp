// One call of a compiled graph. This is the hot path: no allocation except pool blocks, no look-ups by name.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "fuselab/core/error.h"
#include "fuselab/core/threads.h"
#include "fuselab/runtime/compiled.h"
#include "fuselab/runtime/layout.h"
#include "fuselab/runtime/observe.h"
#include "fuselab/runtime/pool.h"

namespace fuselab::runtime {

using Kind = fuse::Step::Kind;

void count_relayout();

void Host::call_extern(Call& call, int step) {
  const Program& p = call.graph.program();
  fail("runtime.no_extern", "graph {}: '{}' runs in the host framework, and there is none here: call the graph from PyTorch",
       p.name, p.steps[step].label);
}
void Host::drop_object(void*) noexcept {}

Call::Call(const CompiledGraph& g, Host& h) : graph(g), host(h) {
  const std::size_t n = g.program_.slots.size();
  if (n <= kInline) {
    live = inline_;
    std::fill_n(inline_, n, Live{});
  } else {
    many_ = std::make_unique<Live[]>(n);
    live = many_.get();
  }
}

Call::~Call() {
  const int n = static_cast<int>(graph.program_.slots.size());
  for (int s = 0; s < n; ++s) {
    if (live[s].storage) drop(live[s].storage);
    if (live[s].object && (owns_inputs || s >= graph.program_.inputs)) host.drop_object(live[s].object);
  }
}

Storage* Call::storage_of(int slot) const { return live[graph.program_.slots[slot].root].storage; }

void Call::bind(std::span<const std::int64_t> size_args, std::span<const InputView> inputs) {
  const Program& p = graph.program_;
  const auto name = [&](int i) -> const std::string& { return graph.graph_.values[p.slots[i].value].name; };
  if (static_cast<int>(inputs.size()) != p.inputs || size_args.size() != p.size_params.size())
    fail("call.count", "graph {} takes {} tensors and {} sizes, {} and {} are given", p.name, p.inputs, p.size_params.size(),
         inputs.size(), size_args.size());
  hold_ = graph.find_binding(size_args, inputs);
  binding = hold_.get();
  for (int i = 0; i < p.inputs; ++i) {
    const InputView& in = inputs[i];
    const SlotNumbers& n = binding->slots[i];
    if (in.dtype != p.slots[i].type.dtype)
      fail("call.dtype", "input '{}' of graph {} is {}, the graph expects {}", name(i), p.name, fuselab::name(in.dtype),
           p.slots[i].type.str());
    if (in.rank != n.rank || !std::equal(in.sizes, in.sizes + in.rank, n.sizes))
      fail("call.shape", "input '{}' of graph {} has sizes {}, the graph expects {} ({})", name(i), p.name,
           list_text({in.sizes, static_cast<std::size_t>(in.rank)}), list_text(n.shape()), p.slots[i].type.str());
    live[i].data = static_cast<char*>(in.data);
    if (n.elements == 0) continue;
    if (in.strides ? same_strides(n.shape(), in.strides, n.strides) : p.slots[i].type.contiguous()) continue;
    // Same values, other layout than the kernels were made for: moved, never misread.
    std::vector<std::int64_t> row_major(static_cast<std::size_t>(in.rank), 1);
    for (int d = in.rank - 2; d >= 0; --d) row_major[d] = row_major[d + 1] * in.sizes[d + 1];
    relayout(i, in.strides ? in.strides : row_major.data());
  }
}

void Call::relayout(int slot, const std::int64_t* strides) {
  const Program& p = graph.program_;
  const SlotNumbers& n = binding->slots[slot];
  const int bytes = size_of(p.slots[slot].type.dtype);
  if (overlapping(n.shape(), n.steps()))
    fail("call.layout",
         "'{}' of graph {} has strides {}, the graph expects {} of sizes {}, and those elements share memory: make it contiguous "
         "first",
         graph.graph_.values[p.slots[slot].value].name, p.name, list_text({strides, static_cast<std::size_t>(n.rank)}),
         list_text(n.steps()), list_text(n.shape()));
  StorageRef block = allocate(static_cast<std::size_t>(n.bytes));
  copy_strided(n.shape(), bytes, live[slot].data, {strides, static_cast<std::size_t>(n.rank)}, block->data, n.steps());
  if (live[slot].storage) drop(live[slot].storage);
  live[slot].data = static_cast<char*>(block->data);
  live[slot].storage = block.release();
  count_relayout();
}

void Call::run() {
  const CompiledGraph& g = graph;
  const Program& p = g.program_;
  const bool first = g.calls_.fetch_add(1, std::memory_order_relaxed) == 0;
  const auto start = first ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
  const int poison = g.options_.poison;
  if (binding->arena_bytes > 0) {
    arena_block_ = allocate(static_cast<std::size_t>(binding->arena_bytes));
    arena_ = static_cast<char*>(arena_block_->data);
    if (poison >= 0) std::memset(arena_, poison, static_cast<std::size_t>(binding->arena_bytes));
  }
  const int steps = static_cast<int>(p.steps.size());
  StepSink* const sink = step_sink();
  DataWatcher* const watcher = host.watcher;
  std::vector<StepTime> times(sink ? static_cast<std::size_t>(steps) : 0);
  for (int i = 0; i < steps; ++i) {
    const ProgramStep& s = p.steps[i];
    for (const int m : s.make) {
      StorageRef block = allocate(static_cast<std::size_t>(binding->slots[m].bytes));
      live[m].data = static_cast<char*>(block->data);
      live[m].storage = block.release();
      if (poison >= 0) std::memset(live[m].data, poison, static_cast<std::size_t>(binding->slots[m].bytes));
    }
    if (sink) times[static_cast<std::size_t>(i)].begin = now_ns();
    if (s.kind == Kind::kernel) {
      if (watcher) watcher->before_kernel(*this, i);
      launch(i);
      if (watcher) watcher->after_kernel(*this, i);
    } else if (s.kind == Kind::extern_call) {
      host.call_extern(*this, i);
    } else {
      const int alias = s.slots[0];
      live[alias].data = live[p.slots[alias].root].data + binding->slots[alias].shift;
    }
    if (sink) times[static_cast<std::size_t>(i)].end = now_ns();
    for (const int d : s.done) {
      if (live[d].storage) {
        drop(live[d].storage);
        live[d].storage = nullptr;
      }
      if (live[d].object && (owns_inputs || d >= p.inputs)) {
        host.drop_object(live[d].object);
        live[d].object = nullptr;
      }
    }
  }
  arena_block_.reset();
  if (sink) sink->called(*this, times);
  if (first) g.first_run_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

namespace {

struct Shares {
  const jit::Kernel* kernel;
  void* const* bufs;
  const void* tiling;
  std::int64_t phase;
  char* scratch;
  std::int64_t scratch_stride;
  char* shared;
  std::atomic<std::int64_t> status;
};

void run_share(void* context, std::int64_t begin, std::int64_t end, int thread) {
  auto& s = *static_cast<Shares*>(context);
  const std::int64_t status =
      s.kernel->run(s.bufs, s.tiling, s.phase, begin, end, s.scratch + thread * s.scratch_stride, s.shared);
  if (status == codegen::kOk) return;
  // Several threads may fail, each in its way: the smallest status is reported, whoever comes first.
  std::int64_t seen = s.status.load(std::memory_order_relaxed);
  while ((seen == codegen::kOk || status < seen) && !s.status.compare_exchange_weak(seen, status, std::memory_order_relaxed)) {
  }
}

}  // namespace

void Call::launch(int step) {
  const Program& p = graph.program_;
  const ProgramStep& s = p.steps[step];
  const Launch& l = binding->launches[step];
  const jit::Kernel& k = graph.kernels_[s.kernel];

  constexpr std::size_t kFew = 32;
  void* few[kFew];
  std::unique_ptr<void*[]> many;
  void** bufs = few;
  if (s.slots.size() > kFew) bufs = (many = std::make_unique<void*[]>(s.slots.size())).get();
  for (std::size_t j = 0; j < s.slots.size(); ++j) {
    const int slot = s.slots[j];
    if (p.slots[slot].home == Home::arena && p.slots[slot].first == step) live[slot].data = arena_ + binding->slots[slot].shift;
    bufs[j] = live[slot].data;
  }
  if (l.phases == 0) return;

  Shares shares{&k, bufs, l.tiling, 0, arena_ + l.scratch_offset, l.scratch_stride, arena_ + l.shared_offset, {codegen::kOk}};
  void* lock = l.big ? host.suspend() : nullptr;
  for (int phase = 0; phase < l.phases; ++phase) {
    shares.phase = phase;
    if (l.units[phase] <= 0) continue;
    if (l.threads[phase] == 1)
      run_share(&shares, 0, l.units[phase], 0);
    else
      parallel_ranges(l.units[phase], l.threads[phase], run_share, &shares);
    if (shares.status.load(std::memory_order_relaxed) != codegen::kOk) break;
  }
  if (l.big) host.resume(lock);
  if (const std::int64_t status = shares.status.load(std::memory_order_relaxed); status != codegen::kOk)
    fail_kernel(step, status);
}

void Call::fail_kernel(int step, std::int64_t status) const {
  const std::string& kernel = graph.program_.steps[step].label;
  if (status == codegen::kDivisionByZero)
    fail("call.division_by_zero", "ZeroDivisionError: integer division by zero in kernel {}", kernel);
  if (status == codegen::kIndexOutOfRange) fail("call.index_range", "an index is out of range in kernel {}", kernel);
  fail("call.kernel", "kernel {} returned the unknown status {}", kernel, status);
}

}  // namespace fuselab::runtime
