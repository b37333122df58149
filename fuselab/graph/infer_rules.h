// The parts of infer(), one file each. Included by fuselab/graph/infer*.cpp only.
#pragma once
#include <string>
#include <vector>

#include "fuselab/core/error.h"
#include "fuselab/graph/graph.h"
#include "fuselab/graph/strides.h"

namespace fuselab::infer_rules {

/// The type of argument i; nullptr when it is a number or absent.
const Type* tensor(const Graph& g, const Node& n, std::size_t i);
/// The first argument that is a tensor; Error("graph.arity") when there is none.
const Type& first_tensor(const Graph& g, const Node& n);
std::string list_text(const Exprs& xs);  ///< `[B, 4]`

// Attributes after normalize_attrs: present and of the row's type.
bool attr_bool(const Node& n, const char* name);
std::int64_t attr_int(const Node& n, const char* name);
Expr attr_expr(const Node& n, const char* name);
Exprs attr_list(const Node& n, const char* name);
bool has_attr(const Node& n, const char* name);

/// Checks and converts attributes to the row's types and fills defaults (infer_attrs.cpp).
void normalize_attrs(Node& n);

// infer_dtype.cpp
DType common_type(const Graph& g, const Node& n, std::size_t from,
                  std::size_t to);  ///< PyTorch promotion of arguments [from, to)
DType result_dtype(const Graph& g, const Node& n, ops::TypeRule rule);
void check_dtypes(const Graph& g, const Node& n);

// infer_pointwise.cpp
Exprs broadcast_sizes(const Graph& g, const Node& n);
Exprs pointwise_strides(const Graph& g, const Node& n, const Exprs& sizes);

// infer_reduce.cpp
Exprs reduced_sizes(const Graph& g, const Node& n);
Exprs row_sizes(const Graph& g, const Node& n);
Exprs same_strides(const Graph& g, const Node& n, const Exprs& sizes);
/// The other arguments of a ShapeRule::same or reduce operator must fit the first: per channel, per row or broadcast to it.
void check_companions(const Graph& g, const Node& n);
bool has_channel_argument(const ops::Op& op);
bool needs_elements(const ops::Op& op);              ///< has no result for no elements: amax, argmin, batch_norm_training, ...
void refuse_nothing(const Graph& g, const Node& n);  ///< Error("graph.shape") when such an operator reduces over a size of 0

// infer_view.cpp
Type view_type(const Graph& g, const Node& n);
/// A dimension counted from the end when negative; Error("graph.shape") when it is none of the rank's.
int wrap_dim(const Node& n, std::int64_t dim, int rank);

}  // namespace fuselab::infer_rules
