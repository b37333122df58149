// The tensor graph: SSA values with {dtype, sizes, strides}; sizes may be symbolic. Every front end makes this and
// nothing else; the text form (graph/text.h) round-trips.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fuselab/core/dtype.h"
#include "fuselab/core/expr.h"
#include "fuselab/ops/op.h"

namespace fuselab {

/// Row-major strides in elements; a dimension of size 0 counts as 1.
std::vector<Expr> contiguous_strides(const std::vector<Expr>& sizes);

struct Type {
  DType dtype = DType::f32;
  std::vector<Expr> sizes;
  std::vector<Expr> strides;  ///< elements; always filled, same length as sizes
  bool contiguous() const;    ///< row-major up to dimensions of size 1; always when a size is 0
  std::string str() const;    ///< `f16[B, 4096]`, with `{1, 4}` behind it when not contiguous
};

using ValueId = int;
using NodeId = int;

struct Value {
  ValueId id = -1;
  std::string name;  ///< front-end name; unique in the graph
  Type type;
  NodeId producer = -1;  ///< -1: a graph input
  int result = 0;        ///< which result of the producer
};

/// What a node reads: a value, a number, or nothing (an optional argument left out).
using Operand = std::variant<std::monostate, ValueId, Scalar>;

struct Node {
  NodeId id = -1;
  const ops::Op* op = nullptr;  ///< row of the table; nullptr: an extern call the front end runs (see target)
  std::string target;           ///< extern calls: "aten.mm.default"; table operators: empty
  std::string origin;           ///< front-end node this came from; empty = same as the first result's name
  std::vector<Operand> args;
  Attrs attrs;
  std::vector<ValueId> results;
};

/// A graph in topological order. Plain data: passes build new graphs. Check with verify() (graph/verify.h).
struct Graph {
  std::string name = "graph";
  std::vector<std::string> size_params;  ///< symbols given as explicit `B: size` parameters (may be bound by input sizes too)
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;  ///< may repeat a value, may name an input
  std::vector<Value> values;     ///< index = id
  std::vector<Node> nodes;       ///< topological; index = id
  /// Pairs of sizes that a type annotation says are equal though it does not follow from the inputs' sizes (a slice to 4 of a
  /// size B: min(4, B) == 4). A caller evaluates both at every new binding of the symbols and refuses when they differ.
  std::vector<std::pair<Expr, Expr>> assumptions;

  /// Empty strides: row-major. Throws Error("graph.name") when the name is taken, Error("graph.bad_type").
  ValueId add_input(std::string name, Type type);
  /// Appends a node; the result types come from infer() (graph/infer.h) unless given. Returns its first result.
  ValueId add(const std::string& op, std::vector<Operand> args, Attrs attrs = {}, std::vector<std::string> result_names = {});
  Node& add_node(Node node, const std::vector<Type>& types, const std::vector<std::string>& names);
  std::vector<std::vector<NodeId>> users() const;  ///< per value, each node once, in order
  std::string unique_name(const std::string& base) const;
};

}  // namespace fuselab
