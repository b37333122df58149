// Running error analysis of a reduce operator's recipe (Higham, Accuracy and Stability, ch. 3): the recipe is followed with
// intervals, each primitive widening them by its rounding, each reduction by that of the fixed summation tree. Only widths are
// used; the values come from the table's independent fp64 formula.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fuselab/ops/recipe.h"
#include "fuselab/reference/value.h"

namespace fuselab::reference {

/// Rows of intervals: `per_row` one element for each row, else N for each. `v` is the recipe in plain double.
struct RowBalls {
  bool per_row = false;
  DType type = DType::f32;  ///< f32, f64 or boolean
  std::vector<Ball> at;
};

/// How far the recipe may stray on `rows` rows of `n` elements: per result, intervals around its plain double value.
/// Throws Error("reference.primitive") for a primitive it does not know.
std::vector<RowBalls> follow_recipe(const ops::Recipe& recipe, std::map<std::string, RowBalls> arguments, DType compute,
                                    std::int64_t rows, std::int64_t n);

/// The fixed tree sum in `t` of values[0..n): what it gives, and a bound of its rounding error.
struct TreeSum {
  double value, error;
};
TreeSum tree_sum(DType t, const Ball* values, std::int64_t n);

}  // namespace fuselab::reference
