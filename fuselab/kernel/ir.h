// Kernel IR: one kernel as loops over axes with typed statements. Plain data; every pass takes one and returns one.
//
// Every statement is evaluated once per point of its domain. A value that does not depend on an inner axis belongs to a row (one
// point of the parallel axes); one that does belongs to an element. A `reduce` folds an element value over all inner axes
// into a row value, in the order that `Kernel::tree` fixes. Nothing here says how loops are tiled, vectorised or split
// over threads: the schedule decides that and cannot change a bit.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fuselab/graph/graph.h"

namespace fuselab::kernel {

enum class Role : std::uint8_t { parallel, inner };

struct Axis {
  std::string name;
  Expr extent;
  Role role = Role::parallel;
};

/// An affine form over the axes: sum of coefficient * axis, plus an offset. In elements for loads and stores, a number for
/// `index`.
struct Index {
  std::vector<std::pair<int, Expr>> terms;  ///< axis, coefficient; sorted by axis, no zero coefficients
  Expr offset;
  Expr coefficient(int axis) const;
  void add(int axis, const Expr& coefficient);
  Index plus(const Index& other) const;
  Index times(const Expr& factor) const;
  bool depends_on_inner(const std::vector<Axis>& axes) const;
  std::string str(const std::vector<Axis>& axes) const;  ///< `[4096]*p0 + r0 + [3]`
  friend bool operator==(const Index& a, const Index& b);
};

struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  bool output = false;
  std::string type;  ///< sizes and strides as the graph prints them, for readers
};

enum class StmtKind : std::uint8_t { load, constant, size, index, compute, cast, reduce, store };

struct Stmt {
  StmtKind kind = StmtKind::compute;
  std::string op;  ///< compute: primitive (kernel/primitives.h); reduce: sum prod max min any all argmax argmin firstmax firstmin
  DType type = DType::f32;
  std::vector<int> args;  ///< statement numbers
  int buffer = -1;        ///< load, store
  Index index;            ///< load, store, index
  Scalar value{};         ///< constant
  Expr size;              ///< size: a symbolic size as a number
  std::string name;       ///< from the graph
  bool result = false;    ///< last statement of a graph node, where `eager` precision rounds (R10)
  bool decides = false;   ///< reads values for a decision: arguments are first rounded to their own dtype (R3)
  bool user = false;      ///< cast the user wrote: kept (R2)
  std::string node_op;    ///< the table operator it came from
  int node = -1;          ///< the graph node it came from; not in the text form, only passes before the schedule need it
  /// A reduction that follows the place of its extreme: argmax, argmin give the index, firstmax, firstmin the value there.
  bool finds_first() const { return op == "argmax" || op == "argmin" || op == "firstmax" || op == "firstmin"; }
};

/// How a reduction orders its operands (R6). Elements are numbered row-major over the inner axes of the last group;
/// `lanes`: element e belongs to lane e mod 16 and step e / 16; otherwise lane 0 and step e. Steps go to four chains (step mod
/// 4), `block_steps` steps are a block, a block is (c0 + c1) + (c2 + c3), blocks are combined pairwise (a binary counter), so are
/// the results of earlier groups' points, and last the 16 lanes, halving.
inline constexpr int kLanes = 16, kChains = 4, kBlockSteps = 32;
struct Tree {
  bool lanes = true;
  std::vector<std::vector<int>> groups;  ///< inner axes, outermost group first
  /// Steps of a block. No pass sets it: edited IR does (`tree lanes chunk 1024`), to see what another order of sums gives.
  int block_steps = kBlockSteps;
  int chunk() const { return block_steps * (lanes ? kLanes : 1); }  ///< elements of a block
};

struct Kernel {
  std::string name;
  std::vector<Axis> axes;
  std::vector<Buffer> buffers;  ///< inputs, then outputs
  int inputs = 0;
  std::vector<std::string> symbols;  ///< size symbols, sorted
  Tree tree;
  std::vector<Stmt> stmts;                ///< SSA, in order
  std::vector<bool> inner_stmts() const;  ///< per statement: does it belong to an element
};

std::string print_kernel(const Kernel& k);
/// Throws Error("kernel.syntax") with file:line: and the line.
Kernel parse_kernel(const std::string& text, const std::string& file);
/// Throws Error("kernel.invalid"): order, types, unknown primitive.
void verify(const Kernel& k);

}  // namespace fuselab::kernel
