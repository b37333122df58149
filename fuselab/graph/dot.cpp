// Graphviz text of a graph.
#include "fuselab/graph/dot.h"

#include <fmt/format.h>

namespace fuselab {
namespace {

std::string escaped(const std::string& text) {
  std::string s;
  for (const char c : text) {
    if (c == '"' || c == '\\') s += '\\';
    s += c == '\n' ? ' ' : c;
  }
  return s;
}

std::string node_line(const Graph& g, const Node& n) {
  std::string label = escaped(n.op ? n.op->name : n.target);
  for (const ValueId r : n.results) label += "\\n" + escaped(g.values[r].name + ": " + g.values[r].type.str());
  return fmt::format("n{} [label=\"{}\"{}];\n", n.id, label, n.op ? "" : ", style=dashed");
}

}  // namespace

std::string to_dot(const Graph& g, const Blocks& blocks) {
  const auto block_of = [&](NodeId n) { return static_cast<std::size_t>(n) < blocks.of_node.size() ? blocks.of_node[n] : -1; };
  std::string s = fmt::format("digraph \"{}\" {{\n  node [shape=box, fontname=\"monospace\", fontsize=10];\n", escaped(g.name));
  for (const ValueId i : g.inputs) {
    s += fmt::format("  v{} [shape=ellipse, label=\"{}\"];\n", i, escaped(g.values[i].name + ": " + g.values[i].type.str()));
  }
  for (std::size_t b = 0; b < blocks.names.size(); ++b) {
    s += fmt::format("  subgraph cluster_{} {{\n    label=\"{}\"; style=filled; color=\"#dde8f5\";\n", b,
                     escaped(blocks.names[b]));
    for (const Node& n : g.nodes) {
      if (block_of(n.id) == static_cast<int>(b)) s += "    " + node_line(g, n);
    }
    s += "  }\n";
  }
  for (const Node& n : g.nodes) {
    const int b = block_of(n.id);
    if (b < 0 || b >= static_cast<int>(blocks.names.size())) s += "  " + node_line(g, n);
  }
  const auto source = [&](ValueId v) {
    return g.values[v].producer < 0 ? fmt::format("v{}", v) : fmt::format("n{}", g.values[v].producer);
  };
  for (const Node& n : g.nodes) {
    for (const Operand& a : n.args) {
      if (const auto* v = std::get_if<ValueId>(&a)) s += fmt::format("  {} -> n{};\n", source(*v), n.id);
    }
  }
  for (std::size_t o = 0; o < g.outputs.size(); ++o) {
    s += fmt::format("  o{} [shape=ellipse, style=bold, label=\"{}\"];\n  {} -> o{};\n", o,
                     escaped("return " + g.values[g.outputs[o]].name), source(g.outputs[o]), o);
  }
  return s + "}\n";
}

}  // namespace fuselab
