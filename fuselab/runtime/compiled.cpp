#include "fuselab/runtime/compiled.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "fuselab/core/error.h"
#include "fuselab/core/threads.h"
#include "fuselab/graph/reshape_copies.h"
#include "fuselab/graph/text.h"
#include "fuselab/runtime/layout.h"
#include "fuselab/runtime/pool.h"

namespace fuselab::runtime {
namespace {

using Kind = fuse::Step::Kind;
using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point t) { return std::chrono::duration<double, std::milli>(Clock::now() - t).count(); }

struct Counters {
  std::atomic<std::uint64_t> graphs{0}, kernels{0}, fallbacks{0}, compiled{0}, from_cache{0}, relayouts{0};
};
Counters counters;

int machine_threads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace

Counts counts() {
  return {counters.graphs, counters.kernels, counters.fallbacks, counters.compiled, counters.from_cache, counters.relayouts};
}
void reset_counts() {
  for (auto* c :
       {&counters.graphs, &counters.kernels, &counters.fallbacks, &counters.compiled, &counters.from_cache, &counters.relayouts})
    *c = 0;
}
void count_relayout() { counters.relayouts.fetch_add(1, std::memory_order_relaxed); }

namespace {

/// The kernel's text. A kernel without a form is an error that names the value it makes, so that a front end can leave just
/// that operator to its framework.
codegen::Generated generate(const DistinctKernel& k, const codegen::Options& options) {
  try {
    return codegen::generate(k.fragment, k.name, options);
  } catch (const Error& e) {
    if (e.code() != "kernel.unsupported") throw;
    fail("kernel.unsupported", "value '{}' has no kernel: {}", k.fragment.values[k.fragment.outputs.at(0)].name, e.what());
  }
}

}  // namespace

CompiledGraph::CompiledGraph(Graph graph, Options options) : original_(std::move(graph)), options_(std::move(options)) {
  const auto start = Clock::now();
  graph_ =
      simplify(original_, {options_.codegen.opt_level, options_.codegen.skip_passes}, options_.dumps ? &graph_dumps_ : nullptr);
  graph_ = copy_before_reshape(graph_);
  timing_.simplify = ms_since(start);

  const auto fuse_start = Clock::now();
  // A block without a kernel form is cut into smaller ones; the texts made while asking are the ones that are used.
  std::map<std::string, codegen::Generated> made;
  double asked_ms = 0;
  fuse::Options fuse_options = options_.fuse;
  if (!fuse_options.accept) {
    fuse_options.accept = [&](const Graph& fragment, const std::string& name) -> std::string {
      const auto asked = Clock::now();
      std::string why;
      try {
        const std::string key = print_graph(fragment);
        if (made.count(key) == 0) made.emplace(key, codegen::generate(fragment, name, options_.codegen));
      } catch (const Error& e) {
        if (e.code() != "kernel.unsupported") throw;
        why = e.what();
      }
      asked_ms += ms_since(asked);
      return why;
    };
  }
  plan_ = fuse::fuse(graph_, fuse_options);
  program_ = flatten(graph_, plan_);
  timing_.fuse = ms_since(fuse_start) - asked_ms;

  const auto codegen_start = Clock::now();
  std::vector<codegen::Source> sources;
  for (const DistinctKernel& k : program_.kernels) {
    const auto it = made.find(print_graph(k.fragment));
    generated_.push_back(it != made.end() ? std::move(it->second) : generate(k, options_.codegen));
    sources.push_back(generated_.back().source);
  }
  timing_.codegen = ms_since(codegen_start) + asked_ms;
  compile(sources);
  prepare();
  timing_.total = ms_since(start);
}

CompiledGraph::CompiledGraph(Graph graph, fuse::Plan plan, std::vector<codegen::Generated> sources, Options options)
    : original_(graph),
      graph_(std::move(graph)),
      options_(std::move(options)),
      plan_(std::move(plan)),
      generated_(std::move(sources)) {
  const auto start = Clock::now();
  program_ = flatten(graph_, plan_);
  if (generated_.size() != program_.kernels.size())
    fail("runtime.bad_plan", "graph {} has {} distinct kernels, {} sources are given", graph_.name, program_.kernels.size(),
         generated_.size());
  std::vector<codegen::Source> texts;
  for (const auto& g : generated_) texts.push_back(g.source);
  compile(texts);
  prepare();
  timing_.total = ms_since(start);
}

fuse::Plan one_kernel_plan(const Graph& fragment, const std::string& kernel_name) {
  fuse::Step step;
  step.kind = Kind::kernel;
  step.name = kernel_name;
  step.block_kind = "elemwise";
  step.fragment = fragment;
  step.inputs = fragment.inputs;
  step.outputs = fragment.outputs;
  for (const Node& n : fragment.nodes) step.nodes.push_back(n.id);
  fuse::Plan plan;
  plan.reasons.assign(fragment.nodes.size(), "block " + kernel_name);
  plan.steps.push_back(std::move(step));
  return plan;
}

void CompiledGraph::compile(const std::vector<codegen::Source>& sources) {
  const auto start = Clock::now();
  if (!sources.empty()) {
    const int threads = options_.compile_threads > 0 ? options_.compile_threads : machine_threads();
    kernels_ = jit::load_all(sources, jit::Target::host(), threads, options_.jit);
  }
  const double wall = ms_since(start);
  double compile_ms = 0, load_ms = 0;
  for (const jit::Kernel& k : kernels_) {
    compile_ms += k.compile_ms;
    load_ms += k.load_ms;
    (k.from_cache ? counters.from_cache : counters.compiled).fetch_add(1, std::memory_order_relaxed);
  }
  // Kernels compile side by side: the wall clock is shared out by what each phase took.
  const double both = compile_ms + load_ms;
  timing_.compile = both > 0 ? wall * compile_ms / both : wall;
  timing_.load = both > 0 ? wall * load_ms / both : 0;
}

void CompiledGraph::prepare() {
  for (const auto& g : generated_) {
    KernelSizes sizes;
    for (const std::string& text : g.source.sizes) sizes.tiling.push_back(Expr::parse(text));
    sizes.bounds = g.bounds;
    kernel_sizes_.push_back(std::move(sizes));
  }
  for (const ProgramStep& s : program_.steps) {
    kernel_steps_ += s.kind == Kind::kernel;
    extern_steps_ += s.kind == Kind::extern_call;
  }
  for (const std::string& symbol : program_.symbols) {
    SymbolSource source;
    const auto named = std::find(program_.size_params.begin(), program_.size_params.end(), symbol);
    if (named != program_.size_params.end()) source.size_arg = static_cast<int>(named - program_.size_params.begin());
    for (const bool stride : {false, true}) {
      for (int i = 0; i < program_.inputs && source.size_arg < 0 && source.input < 0; ++i) {
        const Type& t = program_.slots[i].type;
        const std::vector<Expr>& list = stride ? t.strides : t.sizes;
        for (int d = 0; d < static_cast<int>(list.size()); ++d)
          if (list[d].is_symbol() && list[d].str() == symbol) {
            source = {-1, i, d, stride};
            break;
          }
      }
    }
    plain_sources_ = plain_sources_ && (source.size_arg >= 0 || source.input >= 0);
    sources_.push_back(source);
  }
  if (program_.symbols.empty()) {
    const int threads = options_.threads > 0 ? options_.threads : max_threads();
    last_ = bind_program(program_, kernels_, kernel_sizes_, {}, threads);
  }
  counters.graphs.fetch_add(1, std::memory_order_relaxed);
  counters.kernels.fetch_add(static_cast<std::uint64_t>(kernel_steps_), std::memory_order_relaxed);
  counters.fallbacks.fetch_add(static_cast<std::uint64_t>(extern_steps_), std::memory_order_relaxed);
}

Timing CompiledGraph::timing() const {
  Timing t = timing_;
  t.first_run = first_run_.load(std::memory_order_relaxed);
  return t;
}

std::size_t CompiledGraph::bindings() const {
  const std::lock_guard lock(mutex_);
  return std::max<std::size_t>(bindings_.size(), last_ ? 1 : 0);
}

std::shared_ptr<const Binding> CompiledGraph::find_binding(std::span<const std::int64_t> size_args,
                                                           std::span<const InputView> inputs) const {
  const int threads = options_.threads > 0 ? options_.threads : max_threads();
  const std::size_t n = program_.symbols.size();
  std::int64_t few[16];
  std::vector<std::int64_t> many(n + 1 > std::size(few) ? n + 1 : 0);
  const std::span<std::int64_t> key(many.empty() ? few : many.data(), n + 1);
  key[n] = threads;
  if (plain_sources_) {
    for (std::size_t i = 0; i < n; ++i) {
      const SymbolSource& s = sources_[i];
      if (s.size_arg >= 0) {
        key[i] = size_args[s.size_arg];
      } else {
        const InputView& in = inputs[s.input];
        if (s.dim >= in.rank)
          fail("call.shape", "input '{}' of graph {} has {} dimensions, the graph expects {}",
               graph_.values[program_.slots[s.input].value].name, graph_.name, in.rank, program_.slots[s.input].type.str());
        if (!s.stride)
          key[i] = in.sizes[s.dim];
        else if (in.strides)
          key[i] = in.strides[s.dim];
        else
          key[i] = count({in.sizes + s.dim + 1, static_cast<std::size_t>(in.rank - s.dim - 1)});
      }
      if (key[i] < 0)
        fail("call.symbol", "size '{}' of graph {} is {}: sizes are not negative", program_.symbols[i], graph_.name, key[i]);
    }
  } else {
    std::vector<Expr> exprs;
    std::vector<std::int64_t> values;
    SymbolValues known;
    for (std::size_t i = 0; i < program_.size_params.size(); ++i) known[program_.size_params[i]] = size_args[i];
    for (int i = 0; i < program_.inputs; ++i) {
      const Type& t = program_.slots[i].type;
      if (inputs[i].rank != static_cast<int>(t.sizes.size())) continue;  // reported when the inputs are checked
      std::int64_t row = 1;
      for (int d = inputs[i].rank - 1; d >= 0; --d) {
        exprs.push_back(t.sizes[d]);
        values.push_back(inputs[i].sizes[d]);
        const std::int64_t stride = inputs[i].strides ? inputs[i].strides[d] : row;
        if (inputs[i].sizes[d] > 1) {
          exprs.push_back(t.strides[d]);
          values.push_back(stride);
        }
        row *= inputs[i].sizes[d];
      }
    }
    solve_symbols(exprs, values, known);
    for (std::size_t i = 0; i < n; ++i) {
      const auto it = known.find(program_.symbols[i]);
      if (it == known.end())
        fail("call.symbol", "no input of graph {} tells the size '{}': add the parameter `{}: size`", graph_.name,
             program_.symbols[i], program_.symbols[i]);
      key[i] = it->second;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    if (last_ && std::equal(key.begin(), key.end(), last_->key.begin())) return last_;
    const auto it = bindings_.find({key.begin(), key.end()});
    if (it != bindings_.end()) return last_ = it->second;
  }
  SymbolValues values;
  for (std::size_t i = 0; i < n; ++i) values[program_.symbols[i]] = key[i];
  std::shared_ptr<const Binding> made = bind_program(program_, kernels_, kernel_sizes_, values, threads);
  const std::lock_guard lock(mutex_);
  constexpr std::size_t kMostBindings = 1024;  // a stream of ever new sizes must not fill the memory
  if (bindings_.size() >= kMostBindings) bindings_.clear();
  bindings_.emplace(made->key, made);
  return last_ = made;
}

namespace {

/// Tensors of the core: results are wrapped with a shared pointer that drops the storage.
Tensor to_tensor(const Call& call, int slot) {
  const Slot& s = call.graph.program().slots[slot];
  const SlotNumbers& n = call.binding->slots[slot];
  Storage* storage = call.storage_of(slot);
  std::shared_ptr<void> keep;
  if (storage) {
    retain(storage);
    keep = std::shared_ptr<void>(storage, [](void* p) { drop(static_cast<Storage*>(p)); });
  }
  return Tensor::view_of(s.type.dtype, {n.sizes, n.sizes + n.rank}, {n.strides, n.strides + n.rank}, call.live[slot].data,
                         std::move(keep));
}

}  // namespace

std::vector<Tensor> CompiledGraph::operator()(const std::vector<Tensor>& inputs,
                                              const std::vector<std::int64_t>& size_args) const {
  Host plain;
  return (*this)(plain, inputs, size_args);
}

std::vector<Tensor> CompiledGraph::operator()(Host& host, const std::vector<Tensor>& inputs,
                                              const std::vector<std::int64_t>& size_args) const {
  std::vector<InputView> views;
  for (const Tensor& t : inputs) views.push_back({t.data(), t.dtype(), t.rank(), t.sizes().data(), t.strides().data()});
  Call call(*this, host);
  call.bind(size_args, views);
  call.run();
  std::vector<Tensor> results;
  for (const int s : program_.outputs) {
    const int root = program_.slots[s].root;
    if (s == root && program_.slots[s].home == Home::input && !call.live[s].storage) {
      results.push_back(inputs[s]);
      continue;
    }
    Tensor t = to_tensor(call, s);
    if (program_.slots[root].home == Home::input && !call.live[root].storage)  // a view of the caller's own memory
      t = Tensor::view_of(t.dtype(), t.sizes(), t.strides(), t.data(), inputs[root].storage());
    results.push_back(std::move(t));
  }
  return results;
}

}  // namespace fuselab::runtime
