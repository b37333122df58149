// Random graphs made from the op table, for property tests: any operator, numbers, absent arguments, odd names, symbols, strides.
#pragma once
#include <cmath>
#include <random>
#include <string>

#include "fuselab/core/error.h"
#include "fuselab/graph/graph.h"

namespace fuselab::test {

class RandomGraph {
 public:
  explicit RandomGraph(std::uint32_t seed) : random_(seed) {}

  Graph make(int nodes) {
    Graph g;
    g.name = pick(3) == 0 ? "a graph \"quoted\"" : "g";
    g.size_params = {"B", "s0"};  // attributes use them even where no input has them
    const int inputs = 1 + pick(4);
    for (int i = 0; i < inputs; ++i) g.add_input(name(g, "x"), type());
    for (int tries = 0; tries < nodes * 6 && static_cast<int>(g.nodes.size()) < nodes; ++tries) {
      try {
        add_node(g);
      } catch (const Error&) {  // the arguments did not fit the operator: another try
      }
    }
    const int outputs = 1 + pick(3);
    for (int i = 0; i < outputs; ++i) g.outputs.push_back(pick(static_cast<int>(g.values.size())));
    return g;
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }

  std::string name(const Graph& g, const std::string& base) {
    static const char* const kOdd[] = {"return",    "none",  "inf", "with space", "quo\"te", "back\\slash",
                                       "tab\there", "größe", "3rd", "f16",        "size",    "L.0.w"};
    return g.unique_name(pick(4) == 0 ? kOdd[pick(12)] : base);
  }

  Expr size() {
    switch (pick(8)) {
      case 0:
        return Expr::symbol("B");
      case 1:
        return Expr::symbol("s0") * 2 + 1;
      case 2:
        return 1;
      case 3:
        return 0;
      default:
        return 1 + pick(5);
    }
  }

  Type type() {
    Type t;
    t.dtype = static_cast<DType>(pick(kDTypeCount));
    for (int d = pick(4); d > 0; --d) t.sizes.push_back(size());
    if (pick(3) == 0) {
      for (std::size_t d = 0; d < t.sizes.size(); ++d) t.strides.emplace_back(pick(30));
    } else {
      t.strides = contiguous_strides(t.sizes);
    }
    return t;
  }

  Scalar number() {
    static constexpr double kReals[] = {0.1, -0.0, 1e300, 1e-310, 3.0, INFINITY, -INFINITY, NAN, 1.0 / 3, 16777217.0};
    switch (pick(3)) {
      case 0:
        return Scalar(pick(2) == 0);
      case 1:
        return Scalar(pick(4) == 0 ? INT64_MIN : std::int64_t{pick(9)} - 4);
      default:
        return Scalar(kReals[pick(10)]);
    }
  }

  Attr attribute(ops::AttrType t) {
    using ops::AttrType;
    switch (t) {
      case AttrType::boolean:
        return Attr(pick(2) == 0);
      case AttrType::integer:
        return Attr(std::int64_t{pick(5) - 2});
      case AttrType::real:
        return Attr(0.125 * pick(20));
      case AttrType::string:
        return Attr(std::string(pick(2) ? "none" : "tanh"));
      case AttrType::dtype:
        return Attr(static_cast<DType>(pick(kDTypeCount)));
      case AttrType::expr:
        return Attr(size());
      case AttrType::scalar:
        return std::visit([](auto v) { return Attr(v); }, number());
      case AttrType::ints:
        break;
    }
    std::vector<Expr> list;
    for (int i = pick(4); i > 0; --i) list.emplace_back(pick(5) - 1);
    return Attr(list);
  }

  void add_node(Graph& g) {
    const ops::Op& op = ops::table()[static_cast<std::size_t>(pick(static_cast<int>(ops::table().size())))];
    std::vector<Operand> args;
    for (const auto& a : op.args) {
      if (a.optional && pick(2) == 0) {
        args.emplace_back();
      } else if (a.scalar_ok && pick(4) == 0) {
        args.emplace_back(number());
      } else {
        args.emplace_back(ValueId{pick(static_cast<int>(g.values.size()))});
      }
    }
    Attrs attrs;
    for (const auto& a : op.attrs) {
      if (!a.fallback || pick(2) == 0) attrs.emplace(a.name, attribute(a.type));
    }
    std::vector<std::string> names;
    if (op.results == 1) names = {name(g, op.name)};
    g.add(op.name, std::move(args), std::move(attrs), std::move(names));
  }

  std::mt19937 random_;
};

}  // namespace fuselab::test
