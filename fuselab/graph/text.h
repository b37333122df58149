// The text form of a graph: parse and print. What tests, docs and bug reports use; print(parse(t)) is stable.
//
//   graph ffn(B: size, x: f16[B, 4096], w: f16[4096], r: f32[4, 8]{1, 4}) {   # strides in braces when not contiguous
//     n = layer_norm(x, w, none, normalized_shape=[4096], eps=1e-05)
//     y: f16[B, 4096] = gelu(n, approximate="tanh")       # a type annotation is checked; it also sets the strides that
//     v, m = var_mean(x, dims=[1], keepdim=true)          # a materialised value has
//     h: f16[B, 64] = extern(x, w, target="aten.mm.default", call=3)
//     return y, v, h
//   }
#pragma once
#include <string>
#include <string_view>

#include "fuselab/graph/graph.h"

namespace fuselab {

/// Throws Error("graph.syntax" | "graph.unknown_op" | "graph.unknown_value" | "graph.bad_attr" | "graph.shape" | "graph.dtype" ...)
/// whose message begins `file:line:column: ` and ends with the source line and a caret under the place.
Graph parse_graph(std::string_view text, const std::string& file = "<text>");
std::string print_graph(const Graph& g);

}  // namespace fuselab
