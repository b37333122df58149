#include "graph_gen.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "fuselab/core/error.h"
#include "fuselab/graph/bind.h"
#include "fuselab/graph/infer.h"
#include "node_gen.h"

namespace fuselab::fuzz {
namespace {

const std::vector<std::int64_t> kSizes = {0, 1, 1, 7, 7, 16, 16, 17, 17, 1000};

class Generator {
 public:
  Generator(std::uint64_t seed, const Limits& limits) : random_(seed), limits_(limits) {
    case_.seed = seed;
    case_.graph.name = "fuzz_" + std::to_string(seed);
  }

  Case run() {
    make_shape();
    const int inputs = 1 + random_.below(3);
    for (int i = 0; i < inputs; ++i) add_input();
    const int nodes = limits_.min_nodes + random_.below(static_cast<std::size_t>(limits_.max_nodes - limits_.min_nodes + 1));
    for (int tries = 0; static_cast<int>(case_.graph.nodes.size()) < nodes && tries < 60 * nodes; ++tries) add_node();
    choose_outputs();
    return std::move(case_);
  }

 private:
  /// The sizes that most values share. Most are common ones, so that operators find fitting arguments.
  void make_shape() {
    const int rank = random_.chance(8) ? 0 : 1 + random_.below(4);
    std::int64_t count = 1;
    for (int d = 0; d < rank; ++d) {
      std::int64_t size = random_.pick(kSizes);
      if (size == 0 && !random_.chance(25)) size = 17;
      if (count * size > limits_.max_elements / 8) size = 7;
      if (count * size > limits_.max_elements / 4) size = 1;
      count *= std::max<std::int64_t>(size, 1);
      if (random_.chance(30)) {
        const std::string symbol(1, static_cast<char>('A' + d));
        case_.symbols[symbol] = size;
        shape_.push_back(Expr::symbol(symbol));
      } else {
        shape_.emplace_back(size);
      }
    }
  }

  DType random_dtype() {
    static const std::vector<DType> kTypes = {DType::f32,  DType::f32, DType::f32,    DType::f16, DType::f16,
                                              DType::bf16, DType::f64, DType::i64,    DType::i32, DType::i16,
                                              DType::i8,   DType::u8,  DType::boolean};
    return random_.pick(kTypes);
  }

  void add_input() {
    Type t{random_dtype(), shape_, {}};
    if (!case_.graph.inputs.empty()) {
      for (Expr& s : t.sizes) {
        if (random_.chance(20)) s = 1;
      }
      if (random_.chance(15)) t.sizes.erase(t.sizes.begin(), t.sizes.begin() + random_.below(t.sizes.size() + 1));
    }
    t.strides = contiguous_strides(t.sizes);
    if (random_.chance(35)) restride(t);
    new_input(case_.graph, t);
  }

  /// Permuted, stretched (as a slice leaves them) or repeated (as expand leaves them) strides.
  void restride(Type& t) {
    if (t.sizes.empty()) return;
    std::vector<int> order(t.sizes.size());
    std::iota(order.begin(), order.end(), 0);
    const int kind = random_.below(3);
    if (kind == 0) {
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[static_cast<std::size_t>(random_.below(i))]);
    }
    Expr step = kind == 1 ? 2 : 1;
    for (std::size_t i = order.size(); i-- > 0;) {
      const auto d = static_cast<std::size_t>(order[i]);
      t.strides[d] = step;
      step = step * max(t.sizes[d], Expr(1));
    }
    if (kind == 2) t.strides[static_cast<std::size_t>(random_.below(t.sizes.size()))] = 0;
  }

  /// Every operator but those that fail by contract on most values: an index out of range.
  static const std::vector<const ops::Op*>& operators() {
    static const std::vector<const ops::Op*> kOperators = [] {
      std::vector<const ops::Op*> all;
      for (const ops::Op& op : ops::table())
        if (op.lower_int.find("check_index") == std::string::npos) all.push_back(&op);
      return all;
    }();
    return kOperators;
  }

  void add_node() {
    const ops::Op& op = *random_.pick(operators());
    // The table has many activations and comparisons; views and reductions get their share.
    if (op.kind == ops::Kind::pointwise && random_.chance(35)) return;
    Graph& g = case_.graph;
    const std::size_t inputs_before = g.inputs.size(), values_before = g.values.size();
    try {
      Node node = random_node(g, op, random_);
      const std::vector<Type> types = infer(g, node);
      for (const Type& t : types) {
        if (elements(t, case_.symbols) > limits_.max_elements || t.sizes.size() > 5) fail("fuzz.rejected", "too large");
      }
      std::vector<std::string> names;
      for (std::size_t i = 0; i < types.size(); ++i) names.push_back("v" + std::to_string(g.values.size() + i));
      g.add_node(std::move(node), types, names);
      try {
        check_sizes(size_checks(g), case_.symbols);  // an index or an extreme that the sizes rule out
      } catch (const Error&) {
        g.nodes.pop_back();
        throw;
      }
    } catch (const Error&) {  // not a valid node: inputs made for it go again
      g.inputs.resize(inputs_before);
      g.values.resize(values_before);
    }
  }

  void choose_outputs() {
    Graph& g = case_.graph;
    const auto users = g.users();
    for (const Node& n : g.nodes) {
      for (const ValueId v : n.results) {
        if (users[static_cast<std::size_t>(v)].empty() || random_.chance(12)) g.outputs.push_back(v);
      }
    }
    if (g.outputs.empty()) g.outputs.push_back(g.inputs[0]);
    for (const auto& [symbol, value] : case_.symbols) {
      const auto carries = [&](ValueId v) {
        const auto& sizes = g.values[static_cast<std::size_t>(v)].type.sizes;
        return std::any_of(sizes.begin(), sizes.end(), [&](const Expr& e) { return e == Expr::symbol(symbol); });
      };
      if (std::none_of(g.inputs.begin(), g.inputs.end(), carries)) g.size_params.push_back(symbol);
    }
  }

  Random random_;
  Limits limits_;
  Case case_;
  std::vector<Expr> shape_;
};

double random_value(DType t, Random& random, bool special) {
  if (is_bool(t)) return random.below(2);
  if (is_int(t))
    return random.chance(5) ? (t == DType::u8 ? 250 : -120) : t == DType::u8 ? random.below(9) : random.below(11) - 5;
  static const std::vector<double> kSpecial = {0.0,
                                               -0.0,
                                               std::numeric_limits<double>::infinity(),
                                               -std::numeric_limits<double>::infinity(),
                                               std::numeric_limits<double>::quiet_NaN(),
                                               1e-30,
                                               6e4};
  if (special && random.chance(6)) return random.pick(kSpecial);
  return random.chance(3) ? random.below(5) - 2 : random.uniform(-2.5, 2.5);
}

}  // namespace

Case random_case(std::uint64_t seed, const Limits& limits) { return Generator(seed, limits).run(); }

std::int64_t elements(const Type& t, const std::map<std::string, std::int64_t>& symbols) {
  return product(t.sizes).eval(symbols);
}

std::vector<std::int64_t> size_arguments(const Case& c) {
  std::vector<std::int64_t> values;
  for (const std::string& s : c.graph.size_params) values.push_back(c.symbols.at(s));
  return values;
}

std::vector<Tensor> random_inputs(const Case& c) {
  std::vector<Tensor> tensors;
  for (const ValueId v : c.graph.inputs) {
    const Value& value = c.graph.values[static_cast<std::size_t>(v)];
    std::vector<std::int64_t> sizes, strides;
    for (const Expr& e : value.type.sizes) sizes.push_back(e.eval(c.symbols));
    for (const Expr& e : value.type.strides) strides.push_back(e.eval(c.symbols));
    Tensor t = Tensor::strided(value.type.dtype, sizes, strides);
    Random random(c.seed ^ hash_name(value.name));
    for (std::int64_t i = 0; i < t.numel(); ++i) t.set(i, random_value(value.type.dtype, random, c.seed % 7 == 3));
    tensors.push_back(std::move(t));
  }
  return tensors;
}

}  // namespace fuselab::fuzz
