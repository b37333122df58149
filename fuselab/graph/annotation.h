// What a written type means for a value whose type is also inferred, and which types can exist at all.
#pragma once
#include "fuselab/graph/graph.h"

namespace fuselab {

/// A type as it was written: strides are empty when no braces were given (row-major, or a view's own).
struct Annotation {
  Type type;
  bool has_strides = false;
};

/// Sizes and strides not negative, and the whole tensor's span in bytes below 2^62 for constant sizes.
/// Throws Error("graph.too_large" | "graph.bad_type"); `what` names the value.
void check_type(const Type& t, const std::string& what);

/// The type of a result that was inferred as `inferred` and annotated. Throws Error("graph.dtype" | "graph.shape" |
/// "graph.strides") when they contradict each other; adds to g.assumptions where sizes are equal only by the annotation's word.
Type apply_annotation(Graph& g, const Node& n, const Type& inferred, const Annotation& written);

}  // namespace fuselab
