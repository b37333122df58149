// The text form of a graph: parse and print. What tests, docs and bug reports use; print(parse(t)) is stable.
//
//   graph ffn(B: size, x: f16[B, 4096], w: f16[4096], r: f32[4, 8]{1, 4}) {   # strides in braces when not contiguous
//     n = layer_norm(x, w, none, normalized_shape=[4096], eps=1e-05)
//     y: f16[B, 4096] = gelu(n, approximate="tanh")       # a type annotation is checked; it also sets the strides that
//     v, m = var_mean(x, dims=[1], keepdim=true)          # a materialised value has (a view has its own)
//     h: f16[B, 64] = extern(x, w, target="aten.mm.default", call=3)
//     return y, v, h
//   }
//
// Names that are no identifier, and the words none true false inf nan return extern, stand in double quotes. Sizes in an
// annotation may differ from the inferred ones where a symbol is involved; that adds to Graph::assumptions. Any operator takes
// origin="..." (Node::origin).
#pragma once
#include <string>
#include <string_view>

#include "fuselab/graph/graph.h"

namespace fuselab {

/// Throws Error("graph.syntax" | "graph.unknown_op" | "graph.unknown_value" | "graph.bad_attr" | "graph.shape" | "graph.dtype" |
/// "graph.strides" | "graph.name" | "graph.too_large" ...) whose message begins `file:line:column: ` and ends with the source
/// line and a caret under the place.
Graph parse_graph(std::string_view text, const std::string& file = "<text>");

/// One statement per line, every result with its type, attributes that differ from their defaults. `origins`: print
/// Node::origin too, so that it survives; without, equal computations have equal text.
std::string print_graph(const Graph& g, bool origins = false);
/// One node as print_graph writes it, without indent and line end.
std::string print_node(const Graph& g, const Node& n, bool origins = false);
/// A value name as the text form writes it: quoted when it is no plain word.
std::string quote_name(const std::string& name);

}  // namespace fuselab
