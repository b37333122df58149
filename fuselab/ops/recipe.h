// Recipes (Op::lower) as trees: parsing, and deciding what is known before a kernel is made.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuselab/ops/op.h"

namespace fuselab::ops {

/// A node of a recipe's expression tree.
struct RecipeNode {
  enum class Kind : std::uint8_t { number, name, text, unary, binary, call };
  Kind kind = Kind::number;
  std::string word;                     ///< name; string literal's text; operator ("+", "<=", "!"); called primitive
  double number = 0;                    ///< Kind::number; 1 and 0 for true and false
  std::optional<std::int64_t> integer;  ///< Kind::number written without point or exponent: its exact value
  bool boolean = false;                 ///< Kind::number that was `true` or `false`
  std::vector<RecipeNode> args;         ///< operands
};

struct RecipeStatement {
  std::string name;
  RecipeNode value;
};

struct Recipe {
  std::vector<RecipeStatement> statements;
  std::vector<RecipeNode> results;
};

/// Throws Error("ops.recipe") with the column. `parse_recipe(print(r))` gives r.
Recipe parse_recipe(std::string_view text);
std::string print(const RecipeNode& node);
std::string print(const Recipe& recipe);

/// What is known of an argument when a recipe is instantiated.
struct ArgState {
  bool present = true;
  std::optional<Scalar> literal;  ///< the number, when it is one
};

/// The recipe of `op` for one use: picks lower, lower_int or lower_bool by the compute type, decides every `if`, puts attribute
/// values in place of their names (except symbolic sizes, which stay names), resolves `narrow` and `cast`, and drops statements
/// nothing reads. What is left: numbers, names (arguments, statements, N, index, symbolic attributes), unary, binary and calls
/// of primitives and reductions. Throws Error("ops.no_meaning") when the operator has none in that type.
Recipe instantiate(const Op& op, const std::vector<ArgState>& args, const Attrs& attrs, DType compute);

}  // namespace fuselab::ops
