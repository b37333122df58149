// Source text -> machine code in this process: clang as a library, ORC as the loader, object files in a cache.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fuselab/codegen/source.h"

namespace fuselab::jit {

/// A target: "avx512" (x86-64-v4), "avx2" (x86-64-v3), "generic" (x86-64 or the host's baseline elsewhere).
/// The default is the best of them the CPU has; FUSELAB_ISA overrides it. Text and results are the same for all.
struct Target {
  std::string isa;
  static Target host();  ///< throws Error("jit.bad_isa") for an unknown or unsupported FUSELAB_ISA
};

/// Machine code of one kernel, loaded. Lives as long as the process holds it.
struct Kernel {
  std::string name;
  std::int64_t tiling_bytes = 0;
  void (*tile)(const std::int64_t* sizes, std::int64_t threads, void* tiling) = nullptr;
  std::int64_t (*run)(void* const* bufs, const void* tiling, std::int64_t phase, std::int64_t begin, std::int64_t end,
                      char* scratch, char* shared) = nullptr;
  bool from_cache = false;
  double compile_ms = 0, load_ms = 0;
  std::shared_ptr<void> keep;  ///< owns the code
};

struct Options {
  bool read_cache = true;  ///< false: FUSELAB_FORCE_DISABLE_CACHES / TORCHINDUCTOR_FORCE_DISABLE_CACHES
};

/// Compiles (or loads from the cache) and links. Thread safe. Throws Error("jit.compile") with clang's messages,
/// Error("jit.link").
Kernel load(const codegen::Source& source, const Target& target, const Options& options = {});
/// Several at once on up to `threads` threads; equal hashes are compiled once. Same order as given.
std::vector<Kernel> load_all(const std::vector<codegen::Source>& sources, const Target& target, int threads,
                             const Options& options = {});
/// Any C++ text to an object file's bytes; for `fuselab compile` and tests. Diagnostics are thrown as Error("jit.compile").
std::vector<char> compile_object(const std::string& text, const std::string& file_name, const Target& target);

}  // namespace fuselab::jit
