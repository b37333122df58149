// Expands a table row's recipe into statements. Used by lower alone.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "fuselab/kernel/ir.h"

namespace fuselab::kernel {

struct RecipeEnv {
  DType compute = DType::f32;            ///< what the node's arguments are converted to
  std::vector<std::optional<int>> args;  ///< statement per argument; empty for a literal or an absent one
  Index linear;                          ///< row-major index of the element (create)
  Expr count = 1;                        ///< elements reduced (`N`)
};

/// Appends the statements of node `n` to `k`; returns one statement per result.
std::vector<int> expand_recipe(Kernel& k, const Graph& g, const Node& n, const RecipeEnv& env);

}  // namespace fuselab::kernel
