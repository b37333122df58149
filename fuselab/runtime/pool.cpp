#include "fuselab/runtime/pool.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "fuselab/core/error.h"

#ifdef FUSELAB_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace fuselab::runtime {
namespace {

// AddressSanitizer sees blocks come from the system and go back to it, not what the pool does in between: it is told that an idle
// block must not be touched.
#ifdef FUSELAB_ASAN
void forbid(const Storage* s, std::size_t bytes) { ASAN_POISON_MEMORY_REGION(s->data, bytes); }
void permit(const Storage* s, std::size_t bytes) { ASAN_UNPOISON_MEMORY_REGION(s->data, bytes); }
#else
void forbid(const Storage*, std::size_t) {}
void permit(const Storage*, std::size_t) {}
#endif

constexpr std::size_t kAlign = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kMapFrom = kHugePage;                // from here on blocks are mappings of their own
constexpr std::size_t kLocalUpTo = std::size_t{64} << 10;  // up to here blocks go to the thread's cache
constexpr std::size_t kLocalFrom = std::size_t{64} << 20;  // a limit below this leaves no room for caches per thread
constexpr std::size_t kProbeFrom = std::size_t{64} << 20;  // fresh blocks this large first ask how much memory is left
constexpr std::size_t kLargest = std::size_t{1} << 46;
constexpr int kLocalDepth = 8;

// Classes: multiples of 64 up to 1024, then four per power of two.
constexpr int kLinear = 16;
constexpr int class_of(std::size_t bytes) {
  if (bytes <= kLinear * kAlign) return bytes == 0 ? 0 : static_cast<int>((bytes - 1) / kAlign);
  const int octave = std::bit_width(bytes - 1) - 1;                       // 2^octave < bytes <= 2^(octave+1)
  const int quarter = static_cast<int>((bytes - 1) >> (octave - 2)) & 3;  // which quarter above 2^octave
  return kLinear + (octave - 10) * 4 + quarter;
}
constexpr std::size_t class_bytes(int c) {
  if (c < kLinear) return (static_cast<std::size_t>(c) + 1) * kAlign;
  const int octave = 10 + (c - kLinear) / 4, quarter = (c - kLinear) % 4;
  return (std::size_t{1} << octave) + (static_cast<std::size_t>(quarter) + 1) * (std::size_t{1} << (octave - 2));
}
constexpr int kClasses = class_of(kLargest) + 1;
constexpr int kLocalClasses = class_of(kLocalUpTo) + 1;
static_assert(class_bytes(class_of(1025)) == 1280 && class_bytes(class_of(kHugePage)) == kHugePage &&
              class_bytes(class_of(1024)) == 1024);

std::size_t parse_bytes(const char* text) {
  char* end = nullptr;
  const unsigned long long n = std::strtoull(text, &end, 10);
  int shift = 0;
  if (end != text) {
    if (*end == 'K' || *end == 'k')
      shift = 10, ++end;
    else if (*end == 'M' || *end == 'm')
      shift = 20, ++end;
    else if (*end == 'G' || *end == 'g')
      shift = 30, ++end;
  }
  if (end == text || *end != 0 || text[0] == '-' || n > (~std::size_t{0} >> shift))
    fail("runtime.bad_pool_bytes", "FUSELAB_POOL_BYTES is '{}': write a number of bytes, or one followed by K, M or G", text);
  return static_cast<std::size_t>(n) << shift;
}

std::size_t default_limit() {
  if (const char* text = std::getenv("FUSELAB_POOL_BYTES"); text && *text) return parse_bytes(text);
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::size_t>(pages) / 8 * static_cast<std::size_t>(page) : std::size_t{1} << 30;
}

/// Bytes the system can still hand out without swapping or killing; the largest number when it does not say.
std::size_t available_memory() {
  std::FILE* f = std::fopen("/proc/meminfo", "re");
  if (!f) return ~std::size_t{0};
  char line[128];
  unsigned long long kb = 0;
  bool found = false;
  while (!found && std::fgets(line, sizeof line, f)) found = std::sscanf(line, "MemAvailable: %llu kB", &kb) == 1;
  std::fclose(f);
  return found ? static_cast<std::size_t>(kb) * 1024 : ~std::size_t{0};
}

void* map_aligned(std::size_t bytes) {
  const std::size_t whole = bytes + kHugePage;
  void* raw = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(raw) % kHugePage, tail = whole - head - bytes;
  char* const aligned = static_cast<char*>(raw) + head;
  if (head) munmap(raw, head);
  if (tail) munmap(aligned + bytes, tail);
#ifdef MADV_HUGEPAGE
  madvise(aligned, bytes, MADV_HUGEPAGE);  // only advice: without it the block is slower, not wrong
#endif
  return aligned;
}

struct Central {
  std::mutex mutex;
  std::array<std::vector<Storage*>, kClasses> idle;
  std::size_t idle_bytes = 0;  // guarded by mutex
  std::atomic<std::size_t> mapped{0};
  std::atomic<std::size_t> limit{0};
  std::atomic<std::uint64_t> epoch{1};  // raised by empty_pool(); a thread whose cache is older flushes it
  std::atomic<std::uint64_t> fresh{0};
};

Central& central() {
  // Never destroyed: results may be dropped by other libraries' exit handlers.
  static Central* const c = [] {
    auto* made = new Central;
    try {
      made->limit = default_limit();
    } catch (...) {
      delete made;
      throw;
    }
    pthread_atfork([] { central().mutex.lock(); }, [] { central().mutex.unlock(); }, [] { central().mutex.unlock(); });
    return made;
  }();
  return *c;
}

void destroy(Storage* s) noexcept {
  const std::size_t bytes = class_bytes(s->size_class);
  permit(s, bytes);
  if (bytes >= kMapFrom)
    munmap(s->data, bytes);
  else
    std::free(s->data);
  central().mapped.fetch_sub(bytes, std::memory_order_relaxed);
  delete s;
}

/// Gives idle blocks of the common list back, largest first, until at least `wanted` bytes are gone or none is left.
std::size_t trim(std::size_t wanted) noexcept {
  Central& c = central();
  std::size_t gone = 0;
  for (int k = kClasses - 1; k >= 0 && gone < wanted; --k) {
    while (gone < wanted) {
      Storage* s = nullptr;
      {
        const std::lock_guard lock(c.mutex);
        if (c.idle[k].empty()) break;
        s = c.idle[k].back();
        c.idle[k].pop_back();
        c.idle_bytes -= class_bytes(k);
      }
      gone += class_bytes(k);
      destroy(s);
    }
  }
  return gone;
}

void to_central(Storage* s) noexcept {
  Central& c = central();
  const std::size_t bytes = class_bytes(s->size_class);
  if (c.mapped.load(std::memory_order_relaxed) <= c.limit.load(std::memory_order_relaxed)) {
    const std::lock_guard lock(c.mutex);
    try {
      c.idle[s->size_class].push_back(s);
      c.idle_bytes += bytes;
      return;
    } catch (const std::bad_alloc&) {  // no room for the list: then this block goes
    }
  }
  destroy(s);
}

struct Local {
  std::array<std::array<Storage*, kLocalDepth>, kLocalClasses> items;
  std::array<std::uint8_t, kLocalClasses> count{};
  std::uint64_t epoch = 0;
  void flush() noexcept {
    for (int k = 0; k < kLocalClasses; ++k)
      while (count[k]) to_central(items[k][--count[k]]);
  }
  ~Local();
};
thread_local bool local_gone = false;  // trivially destructible: still readable after `local` is destroyed
thread_local Local local;
Local::~Local() {
  local_gone = true;
  flush();
}

bool use_local(Central& c, int k) {
  return k < kLocalClasses && !local_gone && c.limit.load(std::memory_order_relaxed) >= kLocalFrom;
}

void refresh(Central& c) noexcept {
  const std::uint64_t now = c.epoch.load(std::memory_order_relaxed);
  if (local.epoch == now) return;
  if (local.epoch != 0) {
    for (int k = 0; k < kLocalClasses; ++k)
      while (local.count[k]) destroy(local.items[k][--local.count[k]]);
  }
  local.epoch = now;
}

void give_back(Storage* s) noexcept {
  Central& c = central();
  const int k = s->size_class;
  forbid(s, class_bytes(k));
  if (use_local(c, k)) {
    refresh(c);
    if (local.count[k] < kLocalDepth) {
      local.items[k][local.count[k]++] = s;
      return;
    }
  }
  to_central(s);
}

Storage* fresh_block(Central& c, int k) {
  const std::size_t bytes = class_bytes(k);
  const std::size_t mapped = c.mapped.load(std::memory_order_relaxed), limit = c.limit.load(std::memory_order_relaxed);
  if (mapped + bytes > limit) trim(mapped + bytes - limit);
  if (bytes >= kProbeFrom) {
    std::size_t left = available_memory();
    if (left < bytes) {
      trim(~std::size_t{0});
      left = available_memory();
    }
    if (left < bytes)
      fail("runtime.out_of_memory", "{} bytes are needed for one result, {} are available: use smaller sizes or free memory",
           bytes, left);
  }
  const auto take = [bytes] { return bytes >= kMapFrom ? map_aligned(bytes) : std::aligned_alloc(kAlign, bytes); };
  void* data = take();
  if (!data) {
    trim(~std::size_t{0});
    data = take();
  }
  if (!data) fail("runtime.out_of_memory", "the system has no {} bytes for a result: use smaller sizes or free memory", bytes);
  auto* s = new Storage;
  s->size_class = k;
  s->data = data;
  s->bytes = bytes;
  s->release = give_back;
  c.mapped.fetch_add(bytes, std::memory_order_relaxed);
  c.fresh.fetch_add(1, std::memory_order_relaxed);
  return s;
}

/// An idle block to its one new owner.
StorageRef hand_out(Storage* s) {
  permit(s, class_bytes(s->size_class));
  s->refs.store(1, std::memory_order_relaxed);
  return StorageRef(s);
}

}  // namespace

StorageRef allocate(std::size_t bytes) {
  if (bytes > kLargest)
    fail("runtime.out_of_memory", "{} bytes for one result are more than any machine has: check the sizes", bytes);
  Central& c = central();
  const int k = class_of(bytes);
  if (use_local(c, k)) {
    refresh(c);
    if (local.count[k]) return hand_out(local.items[k][--local.count[k]]);
  }
  {
    const std::lock_guard lock(c.mutex);
    auto& list = c.idle[k];
    if (!list.empty()) {
      Storage* s = list.back();
      list.pop_back();
      c.idle_bytes -= class_bytes(k);
      return hand_out(s);
    }
  }
  return StorageRef(fresh_block(c, k));
}

void empty_pool() {
  Central& c = central();
  c.epoch.fetch_add(1, std::memory_order_relaxed);
  if (!local_gone) refresh(c);
  trim(~std::size_t{0});
}

PoolStats pool_stats() {
  Central& c = central();
  PoolStats out;
  out.mapped = c.mapped.load(std::memory_order_relaxed);
  out.limit = c.limit.load(std::memory_order_relaxed);
  out.fresh = c.fresh.load(std::memory_order_relaxed);
  if (!local_gone)
    for (int k = 0; k < kLocalClasses; ++k) out.idle += local.count[k] * class_bytes(k);
  const std::lock_guard lock(c.mutex);
  out.idle += c.idle_bytes;
  return out;
}

void set_pool_limit(std::size_t bytes) {
  Central& c = central();
  c.limit = bytes;
  empty_pool();
}

}  // namespace fuselab::runtime
