// The memory pool: where results and intermediates come from.
//
// Why it exists: a fresh page costs more than the work done on it. Writing fresh memory runs at a quarter of the rate of
// writing memory that was used before, and huge pages are worth another third. So blocks are kept and reused, and large
// ones are aligned to huge pages and advised. Blocks are 64-byte aligned. Size classes are at most a quarter apart.
//
// Thread safe. A block may be dropped by any thread; small blocks go to that thread's own cache, large ones to a common
// list. A forked child keeps all its memory and may go on using the pool.
#pragma once
#include <cstddef>
#include <cstdint>

#include "fuselab/runtime/storage.h"

namespace fuselab::runtime {

struct PoolStats {
  std::size_t mapped = 0;   ///< bytes of all blocks, in use or idle
  std::size_t idle = 0;     ///< bytes of idle blocks in the common list and this thread's cache
  std::size_t limit = 0;    ///< idle blocks are kept while `mapped` stays below this
  std::uint64_t fresh = 0;  ///< blocks ever taken from the system
};

/// A block of at least `bytes` bytes (one byte for zero). Throws Error("runtime.out_of_memory") naming the size.
StorageRef allocate(std::size_t bytes);

/// Gives every idle block back to the system (this thread's now, other threads' when they next use the pool).
void empty_pool();

PoolStats pool_stats();

/// Bytes up to which idle blocks are kept. From FUSELAB_POOL_BYTES (plain bytes, or with K, M, G), else an eighth of the RAM.
/// Blocks in use never fail because of it. Throws Error("runtime.bad_pool_bytes") for a malformed variable, when first used.
void set_pool_limit(std::size_t bytes);

}  // namespace fuselab::runtime
