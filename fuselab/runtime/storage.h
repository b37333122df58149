// Memory with a reference count: what results, intermediates and views of them share.
#pragma once
#include <atomic>
#include <cstddef>
#include <utility>

namespace fuselab::runtime {

/// A piece of memory and how to give it back. Any thread may drop the last reference.
struct Storage {
  std::atomic<int> refs{1};
  int size_class = -1;  ///< the pool's business
  void* data = nullptr;
  std::size_t bytes = 0;                         ///< usable bytes
  void (*release)(Storage*) noexcept = nullptr;  ///< called once, at zero references
  void* context = nullptr;                       ///< the owner's business (the host object behind borrowed memory)
};

inline void retain(Storage* s) noexcept { s->refs.fetch_add(1, std::memory_order_relaxed); }
inline void drop(Storage* s) noexcept {
  // A sole owner needs no read-modify-write: nobody else can be changing the count.
  if (s->refs.load(std::memory_order_acquire) == 1 || s->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) s->release(s);
}

/// A counted reference to a Storage.
class StorageRef {
 public:
  StorageRef() = default;
  explicit StorageRef(Storage* adopt) noexcept : s_(adopt) {}
  StorageRef(const StorageRef& o) noexcept : s_(o.s_) {
    if (s_) retain(s_);
  }
  StorageRef(StorageRef&& o) noexcept : s_(std::exchange(o.s_, nullptr)) {}
  StorageRef& operator=(StorageRef o) noexcept {
    std::swap(s_, o.s_);
    return *this;
  }
  ~StorageRef() { reset(); }
  void reset() noexcept {
    if (Storage* s = std::exchange(s_, nullptr)) drop(s);
  }
  Storage* get() const noexcept { return s_; }
  Storage* release() noexcept { return std::exchange(s_, nullptr); }
  Storage* operator->() const noexcept { return s_; }
  explicit operator bool() const noexcept { return s_ != nullptr; }

 private:
  Storage* s_ = nullptr;
};

}  // namespace fuselab::runtime
