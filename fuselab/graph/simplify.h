// Graph passes that change no bit of any result (R11). Each entry is tested, exhaustively for 16-bit types.
//
//   dead_nodes    table operators that no output needs go; extern calls stay (random numbers)
//   identity_cast cast(x, dtype of x) is x                                      every bit, NaN payloads too: a copy
//   cast_pair     cast(cast(x, wide), dtype of x) is x for integers and bool, where wide holds every value of x's dtype.
//                 Not for floats: widening makes a signalling NaN quiet.
//   neutral       x + 0, x - 0, x * 1, x & -1, x | 0, x ^ 0 on integers, with a number literal. Not for floats: x * 1.0 makes a
//   signalling NaN
//                 quiet, -0.0 + 0 is +0.0.
//   double_not    logical_not twice on bool, bitwise_not twice
//   fold_views    reshape of a view of row-major data that only names sizes; permute of permute; views that change nothing
//   cse           equal operators on equal operands with equal attributes are one
//
// A value whose storage the caller can see (graph/rewrite.h: reaches_caller) is never replaced by another one: two results of a
// model stay two tensors. A replacement needs the same type, strides included.
#pragma once
#include <string>
#include <vector>

#include "fuselab/graph/graph.h"

namespace fuselab {

struct SimplifyOptions {
  int opt_level = 1;                     ///< 0: nothing but dead_nodes
  std::vector<std::string> skip_passes;  ///< names above; others are ignored (they may name kernel passes)
};

struct PassDump {
  std::string pass;
  Graph graph;  ///< after the pass
};

/// The passes' names in the order they run.
const std::vector<std::string>& simplify_pass_names();

/// Runs the passes until nothing changes (at most 8 rounds); `dumps`, when given, gets the graph after each pass that changed it.
Graph simplify(const Graph& g, const SimplifyOptions& options = {}, std::vector<PassDump>* dumps = nullptr);

}  // namespace fuselab
