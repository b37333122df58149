// Checks that a graph is well formed; runs after every pass in debug builds.
#pragma once
#include "fuselab/graph/graph.h"

namespace fuselab {

/// Throws Error("graph.invalid") with the node and what is wrong: ids, order, arity, types that infer() would not give, unknown
/// symbols.
void verify(const Graph& g);

}  // namespace fuselab
