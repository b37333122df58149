#include "fuselab/graph/graph.h"

#include <algorithm>
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/graph/infer.h"
#include "fuselab/graph/strides.h"

namespace fuselab {

bool Type::contiguous() const { return is_contiguous(sizes, strides); }

std::string Type::str() const {
  const auto list = [](const std::vector<Expr>& xs) {
    std::string s;
    for (const Expr& x : xs) s += (s.empty() ? "" : ", ") + x.str();
    return s;
  };
  std::string s = std::string(fuselab::name(dtype)) + "[" + list(sizes) + "]";
  if (strides != contiguous_strides(sizes)) s += "{" + list(strides) + "}";
  return s;
}

ValueId Graph::add_input(std::string name, Type type) {
  if (type.strides.empty()) type.strides = contiguous_strides(type.sizes);
  if (type.strides.size() != type.sizes.size()) {
    fail("graph.bad_type", "input '{}' has {} sizes and {} strides; give one stride per size", name, type.sizes.size(),
         type.strides.size());
  }
  for (const Value& v : values) {
    if (v.name == name) fail("graph.name", "the name '{}' is given twice; value names are unique", name);
  }
  const ValueId id = static_cast<ValueId>(values.size());
  values.push_back(Value{id, std::move(name), std::move(type), -1, 0});
  inputs.push_back(id);
  return id;
}

ValueId Graph::add(const std::string& op, std::vector<Operand> args, Attrs attrs, std::vector<std::string> result_names) {
  Node n;
  n.op = ops::find(op);
  if (n.op == nullptr) fail("graph.unknown_op", "unknown operator '{}'; `fuselab ops` lists what exists", op);
  n.args = std::move(args);
  n.attrs = std::move(attrs);
  const std::vector<Type> types = infer(*this, n);
  if (result_names.empty()) {
    // Names of one node must differ from each other too, so they are taken one by one against what was chosen before.
    std::set<std::string> taken;
    for (std::size_t i = 0; i < types.size(); ++i) {
      std::string name = unique_name(op);
      for (int k = 1; taken.count(name) != 0; ++k) name = unique_name(op + "_" + std::to_string(k));
      taken.insert(name);
      result_names.push_back(name);
    }
  }
  return add_node(std::move(n), types, result_names).results.front();
}

Node& Graph::add_node(Node node, const std::vector<Type>& types, const std::vector<std::string>& names) {
  if (types.size() != names.size()) {
    fail("graph.arity", "{} names for {} results of '{}'", names.size(), types.size(), node.op ? node.op->name : node.target);
  }
  node.id = static_cast<NodeId>(nodes.size());
  node.results.clear();
  for (std::size_t i = 0; i < types.size(); ++i) {
    const ValueId id = static_cast<ValueId>(values.size());
    values.push_back(Value{id, names[i], types[i], node.id, static_cast<int>(i)});
    node.results.push_back(id);
  }
  nodes.push_back(std::move(node));
  return nodes.back();
}

std::vector<std::vector<NodeId>> Graph::users() const {
  std::vector<std::vector<NodeId>> all(values.size());
  for (const Node& n : nodes) {
    for (const Operand& a : n.args) {
      if (const auto* v = std::get_if<ValueId>(&a); v != nullptr && (all[*v].empty() || all[*v].back() != n.id)) {
        all[*v].push_back(n.id);
      }
    }
  }
  return all;
}

std::string Graph::unique_name(const std::string& base) const {
  std::set<std::string_view> taken;
  for (const Value& v : values) taken.insert(v.name);
  if (taken.count(base) == 0) return base;
  for (int k = 1;; ++k) {
    std::string name = base + "_" + std::to_string(k);
    if (taken.count(name) == 0) return name;
  }
}

}  // namespace fuselab
