#include "node_gen.h"

#include <algorithm>
#include <numeric>

#include "fuselab/core/error.h"
#include "fuselab/graph/infer.h"

namespace fuselab::fuzz {
namespace {

using ops::AttrType;
using Exprs = std::vector<Expr>;

/// Draws operands and attributes for one node.
class NodeGenerator {
 public:
  NodeGenerator(Graph& g, const ops::Op& op, Random& random) : g_(g), op_(op), random_(random) {}

  Node run() {
    node_.op = &op_;
    if (!op_.args.empty()) first_ = random_value();
    for (const ops::AttrSpec& a : op_.attrs) attribute(a);
    for (std::size_t i = 0; i < op_.args.size(); ++i) node_.args.push_back(operand(i));
    keep_defined();
    keep_integers();
    return std::move(node_);
  }

 private:
  const Type& type_of(ValueId v) const { return g_.values[static_cast<std::size_t>(v)].type; }
  const Exprs& sizes() const {
    static const Exprs kNone;
    return first_ < 0 ? kNone : type_of(first_).sizes;
  }
  /// Later values are drawn more often, so that graphs grow deep.
  ValueId random_value() {
    const std::size_t n = g_.values.size();
    const std::size_t recent = std::min<std::size_t>(n, 6);
    const std::size_t at =
        random_.chance(60) ? n - 1 - static_cast<std::size_t>(random_.below(recent)) : static_cast<std::size_t>(random_.below(n));
    return static_cast<ValueId>(at);
  }
  ValueId value_where(bool (*fits)(const Type&)) {
    for (int i = 0; i < 20; ++i) {
      const ValueId v = random_value();
      if (fits(type_of(v))) return v;
    }
    fail("fuzz.rejected", "no fitting value");
  }

  Operand operand(std::size_t i) {
    const ops::ArgSpec& spec = op_.args[i];
    // The sign of a NaN that an operator makes is not promised, so signs are asked of inputs only.
    const bool asks_sign = op_.lower.find("signbit(self)") == 0 || (op_.lower.find("copysign(self") == 0 && i == 1);
    if (asks_sign) return g_.inputs[static_cast<std::size_t>(random_.below(g_.inputs.size()))];
    if (i == 0 && (op_.type != ops::TypeRule::where_)) return first_;
    if (spec.optional && random_.chance(40)) return std::monostate{};
    const DType float_type = first_ >= 0 && is_float(type_of(first_).dtype) ? type_of(first_).dtype : DType::f32;
    if (spec.channel) {
      if (sizes().size() < 2) fail("fuzz.rejected", "no channels");
      return fresh(float_type, {sizes()[1]});
    }
    if (spec.row) return fresh(float_type, row_sizes());
    if (op_.reduce == ops::ReduceDims::trailing && spec.name == "weight")
      return fresh(float_type, std::get<Exprs>(node_.attrs.at("normalized_shape")));
    if (op_.reduce == ops::ReduceDims::trailing && spec.name == "bias")
      return fresh(float_type, std::get<Exprs>(node_.attrs.at("normalized_shape")));
    if (op_.reduce == ops::ReduceDims::leading && (spec.name == "mean" || spec.name == "rstd"))
      return fresh(float_type, row_sizes());
    if (op_.kind == ops::Kind::reduce) {  // gradients: the same sizes as the first
      for (int k = 0; k < 10; ++k) {
        const ValueId v = random_value();
        if (type_of(v).sizes == sizes() && is_float(type_of(v).dtype)) return v;
      }
      return fresh(float_type, sizes());
    }
    if (spec.name == "condition" || spec.name == "mask") return value_where([](const Type& t) { return is_bool(t.dtype); });
    if (spec.scalar_ok && i > 0 && random_.chance(25)) return literal();
    return random_value();
  }

  ValueId fresh(DType t, const Exprs& shape) { return new_input(g_, Type{t, shape, contiguous_strides(shape)}); }

  Exprs row_sizes() {
    if (sizes().size() < 2 && op_.reduce != ops::ReduceDims::trailing && op_.reduce != ops::ReduceDims::leading) {
      fail("fuzz.rejected", "no channels");
    }
    switch (op_.reduce) {
      case ops::ReduceDims::group:
        return {sizes().at(0), Expr(std::get<std::int64_t>(node_.attrs.at("num_groups")))};
      case ops::ReduceDims::batch:
        return {sizes().at(1)};
      default:
        break;
    }
    Exprs shape = sizes();
    const std::size_t trailing = std::get<Exprs>(node_.attrs.at("normalized_shape")).size();
    for (std::size_t d = shape.size() - trailing; d < shape.size(); ++d) shape[d] = 1;
    return shape;
  }

  Scalar literal() {
    static const std::vector<Scalar> kLiterals = {0.5, -1.5, 2.0, 0.1, std::int64_t{2}, std::int64_t{3}, std::int64_t{1}, true};
    return random_.pick(kLiterals);
  }

  int random_dim() { return random_.below(std::max<std::size_t>(sizes().size(), 1)); }

  void attribute(const ops::AttrSpec& a) {
    if (a.fallback && random_.chance(a.type == AttrType::ints ? 25 : 55)) return;
    switch (a.type) {
      case AttrType::boolean:
        node_.attrs[a.name] = random_.chance(50);
        break;
      case AttrType::string:
        node_.attrs[a.name] = std::string(random_.chance(50) ? "tanh" : "none");
        break;
      case AttrType::dtype:
        node_.attrs[a.name] = result_dtype();
        break;
      case AttrType::real:
        node_.attrs[a.name] = a.name == "momentum" ? 0.25 : random_.chance(50) ? 1e-3 : 1e-5;
        break;
      case AttrType::scalar:
        node_.attrs[a.name] = scalar_attribute(a.name);
        break;
      case AttrType::integer:
        node_.attrs[a.name] = integer_attribute(a.name);
        break;
      case AttrType::expr:
        node_.attrs[a.name] = expr_attribute(a.name);
        break;
      case AttrType::ints:
        node_.attrs[a.name] = list_attribute(a.name);
        break;
    }
  }

  /// A float becomes an integer only where it is an input: there it is in range.
  DType result_dtype() {
    static const std::vector<DType> kAny = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i32,
                                            DType::i64, DType::i16,  DType::i8,  DType::u8,  DType::boolean};
    const DType t = random_.pick(kAny);
    if (first_ < 0 || !is_float(type_of(first_).dtype) || !is_int(t)) return t;
    return t != DType::u8 && g_.values[static_cast<std::size_t>(first_)].producer < 0 ? t : DType::f32;
  }
  Attr scalar_attribute(const std::string& name) {
    if (name == "correction") return Attr(std::int64_t{random_.below(2)});
    if (name == "beta" || name == "scale" || name == "input_scale") return Attr(random_.chance(50) ? 0.5 : 2.0);
    if (name == "lambd") return Attr(0.75);
    if (name == "min_val") return Attr(-0.5);
    if (name == "max_val") return Attr(1.5);
    const Scalar s = literal();
    return std::visit([](auto v) { return Attr(v); }, s);
  }
  std::int64_t integer_attribute(const std::string& name) {
    if (name != "num_groups") return random_dim() - (random_.chance(20) ? static_cast<int>(sizes().size()) : 0);
    if (sizes().size() < 2 || !sizes()[1].is_const()) return 1;
    const std::int64_t channels = sizes()[1].value();
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= std::min<std::int64_t>(channels, 16); ++d) {
      if (channels % d == 0) divisors.push_back(d);
    }
    return divisors.empty() ? 1 : random_.pick(divisors);
  }
  Expr expr_attribute(const std::string& name) {
    if (name == "size")
      return random_.chance(50)                                                              ? Expr(17)
             : sizes().empty() && !g_.inputs.empty() && !type_of(g_.inputs[0]).sizes.empty() ? type_of(g_.inputs[0]).sizes.back()
                                                                                             : Expr(7);
    if (name == "step") return 1 + random_.below(3);
    if (name == "start") return random_.below(4) - (random_.chance(20) ? 3 : 0);
    if (name == "index") return random_.chance(30) ? -1 : 0;
    return 2 + random_.below(16);
  }

  Exprs list_attribute(const std::string& name) {
    const int rank = static_cast<int>(sizes().size());
    if (name == "normalized_shape") {
      if (rank == 0) fail("fuzz.rejected", "no dimensions");
      return Exprs(sizes().end() - 1 - random_.below(static_cast<std::size_t>(rank)), sizes().end());
    }
    if (name == "dims" && op_.name == "permute") {
      std::vector<int> order(static_cast<std::size_t>(rank));
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[static_cast<std::size_t>(random_.below(i))]);
      return Exprs(order.begin(), order.end());
    }
    if (name == "dims") {
      Exprs dims;
      for (int d = 0; d < rank; ++d) {
        if (random_.chance(45)) dims.emplace_back(random_.chance(20) ? d - rank : d);
      }
      return dims;
    }
    if (op_.kind == ops::Kind::create) return random_.chance(30) ? Exprs{} : type_of(random_value()).sizes;
    return op_.name == "expand" ? expanded() : reshaped();
  }
  Exprs expanded() {
    Exprs shape = sizes();
    for (Expr& s : shape) {
      if (s.is(1) && random_.chance(70))
        s = random_.chance(50) ? 7 : 3;
      else if (random_.chance(20))
        s = -1;
    }
    if (random_.chance(30)) shape.insert(shape.begin(), Expr(2));
    return shape;
  }
  Exprs reshaped() {
    Exprs shape = sizes();
    switch (random_.below(4)) {
      case 0:
        return {Expr(-1)};
      case 1:
        if (shape.size() > 1) {
          shape[0] = shape[0] * shape[1];
          shape.erase(shape.begin() + 1);
        }
        return shape;
      case 2:
        if (!shape.empty() && shape.back().is(16)) {
          shape.back() = 4;
          shape.emplace_back(4);
        }
        return shape;
      default:
        shape.insert(shape.begin() + random_.below(shape.size() + 1), Expr(1));
        return shape;
    }
  }

  /// Integer division by a tensor may meet a zero, which is an error by contract: it gets a number instead.
  void keep_defined() {
    const bool divides = op_.lower_int.find("idiv") != std::string::npos || op_.lower_int.find("irem") != std::string::npos ||
                         op_.lower_int.find("imod") != std::string::npos;
    if (!divides || node_.args.size() < 2) return;
    Node probe = node_;
    infer(g_, probe);
    if (!is_float(argument_type(g_, probe))) node_.args[1] = Scalar(std::int64_t{1 + random_.below(5)});
  }

  /// Numbers in attributes of an integer operator are integers, and not negative where it is unsigned.
  void keep_integers() {
    Node probe = node_;
    infer(g_, probe);
    const DType t = argument_type(g_, probe);
    if (is_float(t)) return;
    for (const ops::AttrSpec& a : op_.attrs) {
      if (a.type != AttrType::scalar) continue;
      Attr& value = probe.attrs.at(a.name);
      if (std::holds_alternative<double>(value)) value = static_cast<std::int64_t>(std::get<double>(value));
      const auto* whole = std::get_if<std::int64_t>(&value);
      if (whole != nullptr && *whole < 0 && (t == DType::u8 || is_bool(t))) value = std::int64_t{0};
      node_.attrs[a.name] = value;
    }
  }

  Graph& g_;
  const ops::Op& op_;
  Random& random_;
  Node node_;
  ValueId first_ = -1;
};

}  // namespace

ValueId new_input(Graph& g, Type type) {
  return g.add_input(g.unique_name("in" + std::to_string(g.values.size())), std::move(type));
}

Node random_node(Graph& g, const ops::Op& op, Random& random) { return NodeGenerator(g, op, random).run(); }

}  // namespace fuselab::fuzz
