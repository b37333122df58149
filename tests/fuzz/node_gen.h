// One random node of a given operator: operands from the graph's values (or new inputs), attributes from the row.
#pragma once
#include <string>

#include "fuselab/graph/graph.h"
#include "random.h"

namespace fuselab::fuzz {

/// Appends an input of that type under a fresh name.
ValueId new_input(Graph& g, Type type);

/// May add inputs to `g` (weights, statistics). Throws Error when nothing fits; what it returns need not pass infer().
Node random_node(Graph& g, const ops::Op& op, Random& random);

}  // namespace fuselab::fuzz
