// A compiled graph: graph -> plan -> kernels -> a flat program that is called with tensors.
//
// One call: check the inputs, find the numbers for their sizes (Binding), take the work space and the results from the
// pool, run the steps, hand the results over. Nothing is allocated per kernel. The same object may be called from several
// threads.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "fuselab/codegen/codegen.h"
#include "fuselab/core/tensor.h"
#include "fuselab/fuse/fuse.h"
#include "fuselab/graph/simplify.h"
#include "fuselab/jit/jit.h"
#include "fuselab/runtime/binding.h"
#include "fuselab/runtime/storage.h"

namespace fuselab::runtime {

struct Options {
  fuse::Options fuse;
  codegen::Options codegen;  ///< opt_level and skip_passes hold for the graph passes too
  jit::Options jit;
  bool dumps = false;  ///< keep the graph after each graph pass that changed it (for the debug folder)
  int poison = -1;     ///< 0..255: results and work space are filled with this byte before kernels run, so that a check sees what
                       ///< was not written
  int threads = 0;     ///< threads a call may use; 0: what the process's thread pool says at each call
  int compile_threads = 0;  ///< threads for code generation and compiling; 0: the machine's
};

/// Milliseconds of each phase from graph to callable, and of the first call.
struct Timing {
  double simplify = 0, fuse = 0, codegen = 0, compile = 0, load = 0, first_run = 0;
  double total = 0;  ///< wall clock from graph to callable
};

/// A tensor as the caller has it. `strides` null: row-major.
struct InputView {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  const std::int64_t* sizes = nullptr;
  const std::int64_t* strides = nullptr;
};

/// What a slot holds during a call. References are owned, except `object` of an input the call does not own.
struct Live {
  char* data = nullptr;        ///< first element
  Storage* storage = nullptr;  ///< what keeps it alive, if memory of ours or borrowed
  void* object = nullptr;      ///< the host framework's tensor, if there is one
};

class CompiledGraph;
class Call;
class DataWatcher;

/// The framework around a compiled graph: runs extern calls and owns tensor objects. The default has neither.
class Host {
 public:
  virtual ~Host() = default;
  /// Runs step `step`: reads `args`' slots, fills `live` of its result slots (data and object). Throws on failure.
  virtual void call_extern(Call& call, int step);
  virtual void drop_object(void* object) noexcept;
  /// Around long kernels: gives an interpreter lock away and takes it back.
  virtual void* suspend() noexcept { return nullptr; }
  virtual void resume(void*) noexcept {}

  DataWatcher* watcher = nullptr;  ///< sees the data of kernels (runtime/observe.h); null: nobody does
};

/// One call in progress. Drops what is still held when it goes out of scope.
class Call {
 public:
  Call(const CompiledGraph& graph, Host& host);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Checks the inputs and finds their numbers. Throws Error("call.count" | "call.dtype" | "call.shape" | "call.symbol").
  void bind(std::span<const std::int64_t> size_args, std::span<const InputView> inputs);
  /// Runs all steps. Throws Error("call.division_by_zero" | "call.index_range" | "runtime.out_of_memory") and what the host
  /// throws.
  void run();

  const CompiledGraph& graph;
  Host& host;
  const Binding* binding = nullptr;
  Live* live = nullptr;      ///< per slot
  bool owns_inputs = false;  ///< input objects are dropped after their last use

  /// What keeps `binding` alive.
  const std::shared_ptr<const Binding>& binding_owner() const { return hold_; }
  /// The storage behind a slot (an alias has its root's); null when only an object holds it.
  Storage* storage_of(int slot) const;
  /// A pool block with the element bits of a slot moved into its expected layout; used when an extern call or a caller has
  /// another one.
  void relayout(int slot, const std::int64_t* strides);

 private:
  void launch(int step);
  void fail_kernel(int step, std::int64_t status) const;
  static constexpr int kInline = 48;
  Live inline_[kInline];
  std::unique_ptr<Live[]> many_;
  std::shared_ptr<const Binding> hold_;
  char* arena_ = nullptr;
  StorageRef arena_block_;
};

class CompiledGraph {
 public:
  /// Fuses, generates, compiles and loads. Throws what those rooms throw.
  explicit CompiledGraph(Graph graph, Options options = {});
  /// From texts made elsewhere (an edited kernel, a test): one source per distinct kernel of the plan, in order of first use.
  CompiledGraph(Graph graph, fuse::Plan plan, std::vector<codegen::Generated> sources, Options options = {});

  const Graph& original() const { return original_; }  ///< as given
  const Graph& graph() const { return graph_; }        ///< after the graph passes: what the plan's ids mean
  const std::vector<PassDump>& graph_dumps() const { return graph_dumps_; }
  const fuse::Plan& plan() const { return plan_; }
  const Program& program() const { return program_; }
  const Options& options() const { return options_; }
  const std::vector<codegen::Generated>& generated() const { return generated_; }  ///< per distinct kernel
  const std::vector<jit::Kernel>& kernels() const { return kernels_; }
  Timing timing() const;
  /// Kernel launches and extern calls of one call.
  int kernel_steps() const { return kernel_steps_; }
  int extern_steps() const { return extern_steps_; }
  std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  std::size_t bindings() const;  ///< distinct sets of sizes seen so far

  /// For the program and tests: tensors in, tensors out, no host framework. `size_args` gives the `B: size` parameters.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, const std::vector<std::int64_t>& size_args = {}) const;
  std::vector<Tensor> operator()(Host& host, const std::vector<Tensor>& inputs,
                                 const std::vector<std::int64_t>& size_args = {}) const;

 private:
  friend class Call;
  void prepare();
  void compile(const std::vector<codegen::Source>& sources);
  std::shared_ptr<const Binding> find_binding(std::span<const std::int64_t> size_args, std::span<const InputView> inputs) const;

  /// Where a symbol's value comes from at a call: a size argument, a dimension or stride of an input, or (slow) an equation.
  struct SymbolSource {
    int size_arg = -1, input = -1, dim = -1;
    bool stride = false;
  };

  Graph original_, graph_;
  std::vector<PassDump> graph_dumps_;
  Options options_;
  fuse::Plan plan_;
  Program program_;
  std::vector<codegen::Generated> generated_;
  std::vector<jit::Kernel> kernels_;
  std::vector<KernelSizes> kernel_sizes_;
  std::vector<SymbolSource> sources_;  // per program symbol
  bool plain_sources_ = true;
  int kernel_steps_ = 0, extern_steps_ = 0;
  Timing timing_;                             // all but first_run
  mutable std::atomic<double> first_run_{0};  // written by the first call, while others may ask for timing()
  mutable std::atomic<std::uint64_t> calls_{0};
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Binding> last_;                                           // guarded by mutex_
  mutable std::map<std::vector<std::int64_t>, std::shared_ptr<const Binding>> bindings_;  // guarded by mutex_
};

/// The plan that runs a whole fragment as one kernel of this name: for texts made elsewhere.
fuse::Plan one_kernel_plan(const Graph& fragment, const std::string& kernel_name);

/// Counts over the process.
struct Counts {
  std::uint64_t graphs = 0, kernels = 0, fallbacks = 0, compiled = 0, from_cache = 0, relayouts = 0;
};
Counts counts();
void reset_counts();

}  // namespace fuselab::runtime
