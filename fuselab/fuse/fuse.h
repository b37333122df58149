// Graph -> plan: which nodes become one kernel, which run in the host framework, and why.
//
// A block is a graph of its own (the fragment), so everything below (kernel, codegen, debug folder, script) needs only
// that. Fragments use canonical names (add, add_1, x0, ...: the front-end names without their running numbers), so equal blocks
// of one model have equal text and compile once.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fuselab/graph/graph.h"

namespace fuselab::fuse {

struct Options {
  bool enable = true;  ///< --enable_autofuse; false: every table operator is its own kernel (`unfused`)
  bool elemwise = true, reduce = true, concat = true, slice = true, gather = true, transpose = true;
  int max_fusion_size = 64;  ///< nodes per block; 0 = no fusion
  int recomputation_threshold = 1;
  /// Asked for every block of more than one operator, views counted: empty when the room below has a kernel form for the
  /// fragment, otherwise why not. A refused block is cut into smaller ones; a single operator reads aliases in memory instead of
  /// through its views. Called from the thread that called fuse(); may be empty.
  std::function<std::string(const Graph& fragment, const std::string& name)> accept;
};

struct Step {
  enum class Kind : std::uint8_t { kernel, extern_call, view };
  Kind kind = Kind::kernel;
  // kernel
  std::string name;        ///< autofused_<kind>_<ops>_<hash>
  std::string block_kind;  ///< "elemwise", "reduce"
  Graph fragment;
  std::vector<ValueId> inputs;   ///< outer values, in the order of fragment.inputs
  std::vector<ValueId> outputs;  ///< outer values, in the order of fragment.outputs
  // extern_call and view: the outer node. A view step makes an alias of a materialised value with the result's type.
  std::vector<NodeId> nodes;  ///< kernel: all outer nodes fused; otherwise exactly one
};

struct Plan {
  std::vector<Step> steps;           ///< topological
  std::vector<std::string> reasons;  ///< one per outer node: "block autofused_...", "extern: ...", "alone: ..."
};

Plan fuse(const Graph& g, const Options& options);

}  // namespace fuselab::fuse
