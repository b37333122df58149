// A fusing plan flattened for execution: numbered slots for the values that exist in memory, and a list of steps that
// read and write slots. Built once per graph; holds no numbers that depend on symbolic sizes (those are in a Binding).
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "fuselab/fuse/fuse.h"
#include "fuselab/graph/bind.h"
#include "fuselab/graph/graph.h"

namespace fuselab::runtime {

/// Where a value lives during a call.
enum class Home : std::uint8_t {
  input,   ///< memory of the caller
  arena,   ///< the call's work space: only kernels see it
  block,   ///< a pool block of its own: it is a result, or an extern call may keep it
  result,  ///< made by an extern call
  alias,   ///< a view of another slot's memory
};

struct Slot {
  ValueId value = -1;
  Type type;
  Home home = Home::arena;
  int root = -1;        ///< alias: the slot whose memory it is; otherwise itself
  Expr offset = 0;      ///< alias: elements from the root's first element
  int first = -1;       ///< step that makes it; -1: an input
  int last = -1;        ///< last step that reads it or a view of it
  bool output = false;  ///< it, or a view of it, is a result of the graph: lives to the end
};

/// An operand of an extern call: a slot, a number, or nothing.
struct ExternArg {
  int slot = -1;
  std::optional<Scalar> number;
};

struct ProgramStep {
  fuse::Step::Kind kind = fuse::Step::Kind::kernel;
  int kernel = -1;              ///< kernel: index of the distinct kernel
  std::vector<int> slots;       ///< kernel: inputs then outputs; extern call: results (-1: nobody reads it); view: the alias
  int inputs = 0;               ///< kernel: how many of `slots` are inputs
  int callee = -1;              ///< extern call: attribute `call`
  std::string label;            ///< kernel name or extern target
  std::vector<ExternArg> args;  ///< extern call
  std::vector<Expr> sizes;      ///< extern call: attribute `sizes`
  std::vector<int> make;        ///< slots that need a pool block before this step
  std::vector<int> done;        ///< root slots nobody needs after this step
};

/// One kernel text, used by one or more steps.
struct DistinctKernel {
  std::string name;
  Graph fragment;
  std::string text;  ///< the fragment's text form: equal text, one kernel
  int uses = 0;
};

struct Program {
  std::string name;
  std::vector<std::string> size_params;
  std::vector<Slot> slots;  ///< the graph's inputs come first, in order
  int inputs = 0;
  std::vector<int> outputs;  ///< slots, may repeat
  std::vector<ProgramStep> steps;
  std::vector<DistinctKernel> kernels;
  std::vector<std::string> symbols;                ///< every symbol of the graph, sorted
  std::vector<std::pair<Expr, Expr>> assumptions;  ///< must be equal for every set of sizes (graph/graph.h)
  std::vector<SizeCheck> checks;                   ///< must hold for every set of sizes (graph/bind.h)
};

/// Throws Error("runtime.bad_plan") when the plan reads a value before a step makes it.
Program flatten(const Graph& g, const fuse::Plan& plan);

/// Elements between the first element of a view's operand and the first element of the view.
Expr view_offset(const Graph& g, const Node& node);

}  // namespace fuselab::runtime
