// Loading kernels: each text at most once per process, from the cache folder when it is there, several at a time.
#include "fuselab/jit/jit.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "fuselab/core/error.h"
#include "fuselab/jit/cache.h"
#include "fuselab/jit/compile.h"
#include "fuselab/jit/loader.h"

namespace fuselab::jit {
namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

bool may_read_cache(const Options& options) {
  return options.read_cache && !is_set("FUSELAB_FORCE_DISABLE_CACHES") && !is_set("TORCHINDUCTOR_FORCE_DISABLE_CACHES");
}

Kernel link(const codegen::Source& source, const std::vector<char>& object) {
  const Clock::time_point begin = Clock::now();
  Kernel kernel;
  kernel.name = source.name;
  auto code = load_object(object, source.name, {source.name + "_tiling_bytes", source.name + "_tile", source.name + "_run"});
  kernel.tiling_bytes = *static_cast<const std::int64_t*>(code->address(0));
  kernel.tile = reinterpret_cast<decltype(kernel.tile)>(code->address(1));
  kernel.run = reinterpret_cast<decltype(kernel.run)>(code->address(2));
  kernel.keep = code;
  kernel.load_ms = ms_since(begin);
  return kernel;
}

Kernel make(const codegen::Source& source, const std::string& text, const std::string& key, const Target& target,
            const Options& options) {
  const Cache cache(Cache::default_folder());
  if (may_read_cache(options)) {
    if (auto object = cache.get(key)) {
      // A checked entry that does not link was written by something else under our key: compile as if it were not there.
      try {
        Kernel kernel = link(source, *object);
        kernel.from_cache = true;
        return kernel;
      } catch (const Error&) {
      }
    }
  }
  const Clock::time_point begin = Clock::now();
  const std::vector<char> object = compile(text, source.name + ".cpp", target).bytes;
  const double compile_ms = ms_since(begin);
  Kernel kernel = link(source, object);
  kernel.compile_ms = compile_ms;
  cache.put(key, object);
  return kernel;
}

/// The kernels this process has, by key: those loaded, those being made, and weak pointers to code.
class Loaded {
 public:
  static Loaded& get() {
    static Loaded* loaded = new Loaded;  // never destroyed
    return *loaded;
  }

  Kernel find_or_make(const codegen::Source& source, const Target& target, const Options& options) {
    const std::string text = source.text();
    const std::string key = cache_key(text, target);
    std::shared_ptr<Making> mine;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (may_read_cache(options)) {
        if (auto at = ready_.find(key); at != ready_.end()) {
          if (auto keep = at->second.code.lock()) {
            Kernel kernel = at->second.kernel;
            kernel.keep = std::move(keep);
            return as_found(std::move(kernel));
          }
          ready_.erase(at);
        }
      }
      if (auto at = making_.find(key); at != making_.end()) {
        const std::shared_ptr<Making> other = at->second;
        lock.unlock();
        return as_found(other->result.get());  // throws what the maker threw
      }
      mine = std::make_shared<Making>();
      mine->result = mine->promise.get_future().share();
      making_[key] = mine;
    }
    try {
      Kernel kernel = make(source, text, key, target, options);
      std::lock_guard<std::mutex> lock(mutex_);
      Ready& ready = ready_[key];
      ready.code = kernel.keep;
      ready.kernel = kernel;
      ready.kernel.keep.reset();
      making_.erase(key);
      mine->promise.set_value(kernel);
      return kernel;
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex_);
      making_.erase(key);
      mine->promise.set_exception(std::current_exception());
      throw;
    }
  }

 private:
  struct Making {
    std::promise<Kernel> promise;
    std::shared_future<Kernel> result;
  };
  struct Ready {
    Kernel kernel;  // without keep
    std::weak_ptr<void> code;
  };
  static Kernel as_found(Kernel kernel) {
    kernel.from_cache = true;
    kernel.compile_ms = kernel.load_ms = 0;
    return kernel;
  }

  // A fork while another thread holds the lock would leave it locked in the child for ever, and what was being made there is
  // never finished.
  Loaded() {
    for_fork_ = this;
    pthread_atfork([] { for_fork_->mutex_.lock(); }, [] { for_fork_->mutex_.unlock(); },
                   [] {
                     for_fork_->making_.clear();
                     for_fork_->mutex_.unlock();
                   });
  }
  static inline Loaded* for_fork_ = nullptr;

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Making>> making_;
  std::map<std::string, Ready> ready_;
};

}  // namespace

Kernel load(const codegen::Source& source, const Target& target, const Options& options) {
  return Loaded::get().find_or_make(source, target, options);
}

std::vector<Kernel> load_all(const std::vector<codegen::Source>& sources, const Target& target, int threads,
                             const Options& options) {
  std::vector<Kernel> kernels(sources.size());
  std::vector<std::exception_ptr> errors(sources.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next.fetch_add(1)) < sources.size();) {
      try {
        kernels[i] = load(sources[i], target, options);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  const std::size_t helpers = std::min<std::size_t>(threads > 1 ? threads : 1, sources.size());
  std::vector<std::thread> pool;
  for (std::size_t i = 1; i < helpers; ++i) {
    try {
      pool.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // fewer threads, same result
    }
  }
  work();
  for (std::thread& t : pool) t.join();
  // The first in the order given, so that the same input always gives the same error.
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return kernels;
}

}  // namespace fuselab::jit
