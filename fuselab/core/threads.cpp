#include "fuselab/core/threads.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>

#ifdef FUSELAB_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace fuselab {
namespace {

// libgomp is not instrumented: ThreadSanitizer does not see that the pool's threads start after the caller's writes and end
// before its next reads, so it is told.
#ifdef FUSELAB_TSAN
void hand_over(void* region) { __tsan_release(region); }
void take_over(void* region) { __tsan_acquire(region); }
#else
void hand_over(void*) {}
void take_over(void*) {}
#endif

/// The few entry points of libgomp we need. Looked up once, at the first use: by then whoever brings a libgomp has loaded it.
struct OpenMp {
  void (*parallel)(void (*fn)(void*), void* data, unsigned threads, unsigned flags) = nullptr;
  int (*get_max_threads)() = nullptr;
  void (*set_num_threads)(int) = nullptr;
  int (*get_thread_num)() = nullptr;
  int (*get_num_threads)() = nullptr;
  int (*in_parallel)() = nullptr;
  int (*pause_all)(int) = nullptr;
  std::string file;

  bool load(void* handle, const char* path) {
    if (handle == nullptr) return false;
    const auto find = [&](auto& slot, const char* name) {
      slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(dlsym(handle, name));
      return slot != nullptr;
    };
    find(pause_all, "omp_pause_resource_all");  // libgomp 9 and later
    file = path;
    return find(parallel, "GOMP_parallel") && find(get_max_threads, "omp_get_max_threads") &&
           find(set_num_threads, "omp_set_num_threads") && find(get_thread_num, "omp_get_thread_num") &&
           find(get_num_threads, "omp_get_num_threads") && find(in_parallel, "omp_in_parallel");
  }
};

int find_loaded(dl_phdr_info* info, size_t, void* result) {
  const char* name = info->dlpi_name;
  const char* base = name == nullptr ? nullptr : std::strrchr(name, '/');
  // PyTorch's copy may be called libgomp-1a2b3c4d.so.1
  if (base == nullptr || std::strncmp(base, "/libgomp", 8) != 0) return 0;
  *static_cast<std::string*>(result) = name;
  return 1;
}

const OpenMp* openmp();

// A forked child inherits the pool's books but none of its threads, and its next parallel region would wait for them for ever.
// So the pool of the thread that forks is handed back first; it comes again with the next region, in parent and child.
void before_fork() {
  const OpenMp* omp = openmp();
  if (omp != nullptr && omp->pause_all != nullptr && omp->in_parallel() == 0) omp->pause_all(1 /* soft: settings stay */);
}

const OpenMp* openmp() {
  static const OpenMp* found = [] {
    auto* omp = new OpenMp;
    std::string path;
    dl_iterate_phdr(find_loaded, &path);
    bool ok = !path.empty() && omp->load(dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD), path.c_str());
    if (!ok) ok = omp->load(dlopen("libgomp.so.1", RTLD_LAZY), "libgomp.so.1");
    if (!ok) return static_cast<OpenMp*>(nullptr);
    pthread_atfork(before_fork, nullptr, nullptr);
    return omp;
  }();
  return found;
}

struct Region {
  std::int64_t units;
  RangeFunction fn;
  void* context;
};

void run_share(void* data) {
  take_over(data);
  const Region& region = *static_cast<Region*>(data);
  const OpenMp& omp = *openmp();
  // The pool may give fewer threads than asked for; the ranges follow what it gave.
  const std::int64_t count = omp.get_num_threads(), thread = omp.get_thread_num();
  const std::int64_t share = region.units / count, rest = region.units % count;
  const std::int64_t begin = thread * share + std::min(thread, rest);
  const std::int64_t end = begin + share + (thread < rest ? 1 : 0);
  if (begin < end) region.fn(region.context, begin, end, static_cast<int>(thread));
  hand_over(data);
}

}  // namespace

int max_threads() {
  const OpenMp* omp = openmp();
  if (omp == nullptr || omp->in_parallel() != 0) return 1;
  return std::max(1, omp->get_max_threads());
}

void set_max_threads(int threads) {
  if (const OpenMp* omp = openmp()) omp->set_num_threads(std::max(1, threads));
}

std::string thread_library() {
  const OpenMp* omp = openmp();
  return omp == nullptr ? std::string() : omp->file;
}

int threads_for(std::int64_t units, std::int64_t grain, int max) {
  if (units <= 0 || max <= 1) return 1;
  const std::int64_t worth = units / std::max<std::int64_t>(1, grain);
  return static_cast<int>(std::clamp<std::int64_t>(worth, 1, max));
}

void parallel_ranges(std::int64_t units, int threads, RangeFunction fn, void* context) {
  if (units <= 0) return;
  const OpenMp* omp = threads > 1 ? openmp() : nullptr;
  if (omp == nullptr || omp->in_parallel() != 0) {
    fn(context, 0, units, 0);
    return;
  }
  Region region{units, fn, context};
  hand_over(&region);
  omp->parallel(run_share, &region, static_cast<unsigned>(std::min<std::int64_t>(threads, units)), 0);
  take_over(&region);
}

namespace detail {

struct FirstError::State {
  std::mutex mutex;
  std::exception_ptr error;
};

FirstError::FirstError() : state_(std::make_unique<State>()) {}
FirstError::~FirstError() = default;

void FirstError::keep() noexcept {
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->error) state_->error = std::current_exception();
}

void FirstError::rethrow() {
  if (state_->error) std::rethrow_exception(state_->error);
}

}  // namespace detail
}  // namespace fuselab
