// Makes a failing case small: delta debugging on the graph.
#pragma once
#include <functional>

#include "graph_gen.h"

namespace fuselab::fuzz {

/// Tries to drop outputs, replace nodes' results by inputs or by an operand of the same type, and shrink sizes, keeping what
/// still fails, until nothing helps or `budget` calls of `fails` are used up. The result fails.
Case minimise(const Case& failing, const std::function<bool(const Case&)>& fails, int budget = 400);

}  // namespace fuselab::fuzz
