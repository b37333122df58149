// The numbers of a program for one set of symbolic sizes: sizes and strides of every slot, the memory plan, the tilings.
// A static graph has one; a symbolic graph makes one per distinct set of sizes and keeps it, so a size seen before costs a
// look-up.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fuselab/graph/bind.h"
#include "fuselab/jit/jit.h"
#include "fuselab/kernel/bounds.h"
#include "fuselab/runtime/program.h"

namespace fuselab::runtime {

struct SlotNumbers {
  int rank = 0;
  const std::int64_t* sizes = nullptr;
  const std::int64_t* strides = nullptr;  ///< elements
  std::int64_t elements = 0;
  std::int64_t bytes = 0;  ///< first element to behind the last
  std::int64_t shift = 0;  ///< alias: bytes from the root's first element; arena: bytes from its start
  std::span<const std::int64_t> shape() const { return {sizes, static_cast<std::size_t>(rank)}; }
  std::span<const std::int64_t> steps() const { return {strides, static_cast<std::size_t>(rank)}; }
};

struct Launch {
  const void* tiling = nullptr;
  int phases = 0;
  std::int64_t units[2] = {0, 0};
  int threads[2] = {1, 1};          ///< threads worth using, by the kernel's grain
  std::int64_t shared_offset = 0;   ///< in the arena
  std::int64_t scratch_offset = 0;  ///< in the arena; thread t's part begins at + t * scratch_stride
  std::int64_t scratch_stride = 0;
  bool big = false;  ///< enough work that giving the interpreter's lock away is worth it
};

struct Binding {
  std::vector<std::int64_t> key;  ///< symbol values, then the thread count
  std::vector<SlotNumbers> slots;
  std::vector<Launch> launches;                       ///< per step; empty ones for other kinds
  std::vector<std::vector<std::int64_t>> call_sizes;  ///< per step: an extern call's sizes
  std::int64_t arena_bytes = 0;

  std::vector<std::int64_t> numbers;   ///< what the slots' sizes and strides point into
  std::vector<std::uint64_t> tilings;  ///< what the launches' tilings point into (8-byte aligned)
};

/// Per distinct kernel: the sizes that its tiling reads, and what must hold before it may run (edited kernels only).
struct KernelSizes {
  std::vector<Expr> tiling;
  std::vector<kernel::Bound> bounds;
};

/// Evaluates everything. `symbols` has a value for each of the program's symbols.
std::unique_ptr<Binding> bind_program(const Program& p, const std::vector<jit::Kernel>& kernels,
                                      const std::vector<KernelSizes>& kernel_sizes, const SymbolValues& symbols, int threads);

/// Finds the symbols of `exprs[i] == values[i]` not yet in `known`: plain symbols and a*s + b. Leaves what it cannot find.
void solve_symbols(const std::vector<Expr>& exprs, const std::vector<std::int64_t>& values, SymbolValues& known);

}  // namespace fuselab::runtime
