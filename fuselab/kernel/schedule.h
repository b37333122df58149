// schedule: how the loops of a kernel run. Last pass; it chooses vector axis, tiles and parallel units and cannot change a bit,
// because the order of every reduction is fixed by Kernel::tree.
//
// Three forms:
//   element   no reduction. Rows of all axes but the vector axis; the vector axis in tiles. Where a load lies the other way
//             round (a transposed argument), 16 rows run together and it is transposed in registers, 16 x 16 elements at once.
//   rows      reduction over the innermost dims: one row is one unit, 16 lanes run along the row. Rows that lie the other way
//             round are turned into scratch before the passes, and results back after them.
//   columns   reduction over outer dims: 16 lanes are 16 neighbouring results, the reduced index is a scalar loop.
// A stage is one pass over the inner axes: stage s computes the reductions that need the results of stages before it. An element
// value that two stages need is kept in a scratch row when it is dear (a transcendental) and the row fits the cache, and computed
// again otherwise.
#pragma once
#include <cstdint>
#include <vector>

#include "fuselab/kernel/ir.h"

namespace fuselab::kernel {

enum class Form : std::uint8_t { element, rows, columns };

struct Schedule {
  Kernel kernel;  ///< with neighbouring axes merged where every access allows it
  Form form = Form::element;
  std::vector<int>
      row_axes;  ///< one unit per point (element: per point and tile; columns: per point and 16 columns), outermost first
  std::vector<int> vector_axes;  ///< the axes 16 lanes run along, outermost first; more than one: merged although accesses differ
  std::vector<std::vector<int>>
      loops;                ///< inner groups looped outside the lanes (rows: all but the last group; columns: all groups)
  std::vector<bool> inner;  ///< per statement: evaluated inside the loops (element: varies along the vector axis)
  std::vector<int> stage;   ///< per statement: stage in which it is computed (reduce, store, element) or known before (row)
  int stages = 1;
  std::vector<bool> keep;    ///< per statement: element value kept in a scratch row for later stages
  std::vector<bool> stream;  ///< per statement: store past the cache (the result is larger than it)
  std::vector<int> cost;     ///< per stage: rough cycles per step
  int tile_axis = -1;       ///< the axis along which `tiled` loads and stores run in memory: a row axis, taken 16 rows at a time,
                            ///< or (rows) one looped outside the lanes
  std::vector<bool> tiled;  ///< per statement: load or store in tiles of 16 x 16 elements, turned in registers
  /// Do 16 rows run together?
  bool strips() const;
};

Schedule schedule(const Kernel& k);

/// The model of a core's local memory that schedule decides by.
struct LocalMemory {
  std::int64_t kept_elements;  ///< a longer row is not kept between passes: it would leave the second-level cache
  std::int64_t turned_bytes;   ///< rows turned at a time
  std::int64_t stream_bytes;   ///< larger results are written past the cache
};
LocalMemory local_memory();

}  // namespace fuselab::kernel
