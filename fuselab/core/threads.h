// Threads: the OpenMP pool that is already in the process (PyTorch carries a libgomp of its own), else the system's, else none.
//
// Two pools in one process would oversubscribe the cores, so there is never a pool of ours. The thread count is the pool's:
// it follows torch.set_num_threads and OMP_NUM_THREADS.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

namespace fuselab {

/// Threads a parallel_for from the calling thread would use at most; 1 without OpenMP and inside a parallel region.
int max_threads();
/// What torch.set_num_threads does for the calling thread's regions; values below 1 count as 1.
void set_max_threads(int threads);
/// File of the OpenMP runtime in use; "" when there is none.
std::string thread_library();

/// How many threads `units` of work get when one thread should have at least `grain` of them: in [1, max].
int threads_for(std::int64_t units, std::int64_t grain, int max);

using RangeFunction = void (*)(void* context, std::int64_t begin, std::int64_t end, int thread);

/// Runs fn over [0, units), cut into one contiguous range per thread; thread numbers are 0 .. threads-1, each used at most once.
/// The calling thread takes part. `fn` must not throw (the template below carries exceptions across).
/// Called inside a parallel region, or with threads == 1, it runs on the caller. Allocates nothing.
void parallel_ranges(std::int64_t units, int threads, RangeFunction fn, void* context);

namespace detail {
/// Keeps the first exception of any thread; rethrow() gives it to the caller.
class FirstError {
 public:
  FirstError();
  ~FirstError();
  void keep() noexcept;  ///< call inside a catch block
  void rethrow();

 private:
  struct State;
  std::unique_ptr<State> state_;
};
}  // namespace detail

/// fn(begin, end, thread) over [0, units); at least `grain` units per thread. The first exception is thrown in the caller.
template <typename F>
void parallel_for(std::int64_t units, std::int64_t grain, F&& fn) {
  if (units <= 0) return;
  const int threads = threads_for(units, grain, max_threads());
  if (threads == 1) {
    fn(std::int64_t{0}, units, 0);
    return;
  }
  using Function = std::remove_reference_t<F>;
  struct Context {
    Function* fn;
    detail::FirstError error;
  } context{&fn, {}};
  parallel_ranges(
      units, threads,
      [](void* c, std::int64_t begin, std::int64_t end, int thread) {
        Context& context = *static_cast<Context*>(c);
        try {
          (*context.fn)(begin, end, thread);
        } catch (...) {
          context.error.keep();
        }
      },
      &context);
  context.error.rethrow();
}

}  // namespace fuselab
