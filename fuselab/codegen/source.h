// What code generation hands to the JIT: three texts with one C ABI.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace fuselab::codegen {

/// The texts of one kernel. `text()` is one translation unit of header-free C++.
///
/// ABI, all `extern "C"`, N = name:
///   const int64_t N_tiling_bytes;                             sizeof(struct N_tiling)
///   void    N_tile(const int64_t* sizes, int64_t threads, void* tiling);   sizes: values of `sizes`, in that order
///   int64_t N_run(void* const* bufs, const void* tiling, int64_t phase, int64_t begin, int64_t end, char* scratch, char*
///   shared);
/// Every tiling struct begins with the fields of TilingHead. bufs: inputs then outputs, pointers to element [0,...,0]
/// (strides are in the kernel text or among `sizes`). N_run does units [begin, end) of a phase; units of a phase are independent,
/// phases run one after another. It returns a Status. Results never depend on `threads` or on how units are split.
struct Source {
  std::string name, tiling_def, host_impl, device_impl;
  std::vector<std::string> sizes;  ///< expressions (Expr text) over the graph's symbols whose values N_tile reads
  std::string hash;                ///< of the three texts, 16 hex digits
  std::string text() const { return tiling_def + host_impl + device_impl; }
};

struct TilingHead {
  std::int64_t phases;         ///< 1 or 2
  std::int64_t units[2];       ///< independent work units of each phase
  std::int64_t grain[2];       ///< least units worth a thread of their own
  std::int64_t scratch_bytes;  ///< per thread, 64-byte aligned
  std::int64_t shared_bytes;   ///< for all threads of a launch, 64-byte aligned
};

enum Status : std::int64_t { kOk = 0, kDivisionByZero = 1, kIndexOutOfRange = 2 };

}  // namespace fuselab::codegen
