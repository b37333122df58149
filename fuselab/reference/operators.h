// The interpreter's parts, one file each. Included by fuselab/reference/*.cpp only.
#pragma once
#include <vector>

#include "fuselab/graph/graph.h"
#include "fuselab/reference/value.h"

namespace fuselab::reference {

/// One operand of a node: a value's array, or a number. Absent ones have neither.
struct Argument {
  const Array* array = nullptr;
  const Scalar* number = nullptr;
  bool present() const { return array || number; }
};

// `g` has no symbols left (graph/bind.h). Each returns the node's results before rounding at block borders.
std::vector<Array> run_pointwise(const Graph& g, const Node& node, const std::vector<Argument>& args, const Policy& policy);
std::vector<Array> run_reduce(const Graph& g, const Node& node, const std::vector<Argument>& args, const Policy& policy);
std::vector<Array> run_create(const Graph& g, const Node& node, const std::vector<Argument>& args, const Policy& policy);
std::vector<Array> run_view(const Graph& g, const Node& node, const std::vector<Argument>& args);

/// The element as floats of `compute` see it: integers converted, wider floats rounded.
Ball ball_of(const Array& a, std::int64_t i, DType compute);
/// The element as integers of dtype `t` see it: v, lo and hi wrapped; floats truncated, for bool whether not 0.
struct IntBall {
  std::int64_t v, lo, hi;
};
IntBall int_ball_of(const Array& a, std::int64_t i, DType t);
double number_as(const Scalar& s, DType compute);
/// An element of a decision's argument: rounded to its own low-precision dtype first (R3).
void round_for_decision(DType own, Ball& b);
/// Numeric attributes as the compute dtype holds them (R8).
Attrs attributes_in(const Node& node, DType compute);
/// Stores a float result in an array of its dtype: rounds as the policy says, converts to integers and bool.
void store(Builder& out, DType result, std::int64_t i, Ball ball, bool undecided, const Policy& policy);

}  // namespace fuselab::reference
