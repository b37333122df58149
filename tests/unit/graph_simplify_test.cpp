#include "fuselab/graph/simplify.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fuselab/core/float16.h"
#include "fuselab/graph/text.h"
#include "fuselab/graph/verify.h"
#include "tests/unit/random_graph.h"

namespace fuselab {
namespace {

std::string simplified(const std::string& body, const SimplifyOptions& options = {}) {
  const Graph g =
      simplify(parse_graph("graph g(x: f16[4, 2], i: i16[4, 2], p: bool[4, 2], u: u8[4, 2]) {\n" + body + "\n}"), options);
  verify(g);
  std::string ops;
  for (const Node& n : g.nodes) ops += (ops.empty() ? "" : " ") + (n.op ? n.op->name : n.target);
  return ops;
}

TEST(Simplify, EachPassAndItsLimits) {
  EXPECT_EQ(simplified("a = exp(x) b = exp(x) c = add(a, b) return c"), "exp add");
  EXPECT_EQ(simplified("a = exp(x) b = exp(x) return a, b"), "exp exp");  // two results stay two tensors
  EXPECT_EQ(simplified("a = mul(x, 0.0) b = mul(x, -0.0) c = add(a, b) return c"), "mul mul add");
  EXPECT_EQ(simplified("a = exp(x) b = neg(x) return b"), "neg");
  EXPECT_EQ(simplified("a = cast(x, dtype=f16) b = exp(a) return b"), "exp");
  EXPECT_EQ(simplified("a = cast(x, dtype=f16) return a"), "cast");
  EXPECT_EQ(simplified("a = cast(x, dtype=f32) b = cast(a, dtype=f16) c = exp(b) return c"), "cast cast exp");
  EXPECT_EQ(simplified("a = cast(i, dtype=i32) b = cast(a, dtype=i16) c = neg(b) return c"), "neg");
  EXPECT_EQ(simplified("a = add(i, 0) b = mul(1, a) c = neg(b) return c"), "neg");
  EXPECT_EQ(simplified("a = add(0, i, alpha=2) c = neg(a) return c"), "add neg");
  EXPECT_EQ(simplified("a = sub(0, i) c = abs(a) return c"), "sub abs");
  EXPECT_EQ(simplified("a = add(x, 0) b = mul(x, 1) d = mul(x, 1.0) c = add(a, b) e = add(c, d) return e"),
            "add mul mul add add");
  EXPECT_EQ(simplified("a = logical_not(p) c = logical_not(a) d = where(c, x, 0.0) return d"), "where");
  EXPECT_EQ(simplified("a = logical_not(i) c = logical_not(a) d = where(c, x, 0.0) return d"), "logical_not logical_not where");
  EXPECT_EQ(simplified("a = permute(x, dims=[1, 0]) c = permute(a, dims=[1, 0]) d = exp(c) return d"), "exp");
  EXPECT_EQ(simplified("a = reshape(x, shape=[8]) c = reshape(a, shape=[2, 4]) d = exp(c) return d"), "reshape exp");
  EXPECT_EQ(simplified("r: f16[4] = extern(x, target=\"aten.rand\", call=0) s: f16[4] = extern(x, target=\"aten.rand\", call=0) "
                       "t = add(r, s) return t"),
            "aten.rand aten.rand add");
}

TEST(Simplify, PassesCanBeSkipped) {
  const std::string body = "a = exp(x) b = exp(x) c = add(a, b) d = neg(a) return c";
  EXPECT_EQ(simplified(body, {1, {"cse"}}), "exp exp add");
  EXPECT_EQ(simplified(body, {1, {"dead_nodes"}}), "exp add neg");
  EXPECT_EQ(simplified(body, {0, {}}), "exp exp add");
  std::vector<PassDump> dumps;
  simplify(parse_graph("graph g(x: f16[2]) {\n a = exp(x) b = exp(x) c = add(a, b) d = neg(a) return c }"), {}, &dumps);
  ASSERT_EQ(dumps.size(), 2u);
  EXPECT_EQ(dumps[0].pass, "dead_nodes");
  EXPECT_EQ(dumps[1].pass, "cse");
}

/// Values of an integer type through another type and back, by C++'s own conversions.
template <typename Narrow, typename Through>
bool survives() {
  for (std::int64_t v = std::numeric_limits<Narrow>::min(); v <= std::numeric_limits<Narrow>::max(); ++v) {
    const Through wide = static_cast<Through>(static_cast<Narrow>(v));
    if constexpr (std::is_floating_point_v<Through>) {
      if (static_cast<double>(wide) != static_cast<double>(v)) return false;
    }
    if (static_cast<Narrow>(wide) != static_cast<Narrow>(v)) return false;
  }
  return true;
}

template <typename Narrow>
bool survives_half(DType through) {
  for (std::int64_t v = std::numeric_limits<Narrow>::min(); v <= std::numeric_limits<Narrow>::max(); ++v) {
    if (round_to(through, static_cast<double>(v)) != static_cast<double>(v)) return false;
  }
  return true;
}

bool removed(DType narrow, DType wide) {
  const std::string n(name(narrow)), w(name(wide));
  const Graph g = simplify(parse_graph("graph g(x: " + n + "[4]) {\n a = cast(x, dtype=" + w + ") b = cast(a, dtype=" + n +
                                       ") c = eq(b, 1) return c }"));
  return g.nodes.size() == 1;
}

// Every value of the 8- and 16-bit types: the pair of casts goes only where no value changes on the way.
TEST(Simplify, CastPairsKeepEveryValue) {
  const auto check = [](DType narrow, DType wide, bool exact) {
    if (removed(narrow, wide)) EXPECT_TRUE(exact) << name(narrow) << " through " << name(wide);
  };
  check(DType::i16, DType::i8, survives<std::int16_t, std::int8_t>());
  check(DType::i16, DType::u8, survives<std::int16_t, std::uint8_t>());
  check(DType::i16, DType::f16, survives_half<std::int16_t>(DType::f16));
  check(DType::i16, DType::bf16, survives_half<std::int16_t>(DType::bf16));
  check(DType::i8, DType::u8, false);  // -1 becomes 255 on the way: equal bits, but not the value's own place
  check(DType::u8, DType::i8, false);
  check(DType::i16, DType::boolean, false);
  for (const auto& [wide, exact] :
       {std::pair(DType::i32, survives<std::int16_t, std::int32_t>()),
        std::pair(DType::i64, survives<std::int16_t, std::int64_t>()), std::pair(DType::f32, survives<std::int16_t, float>()),
        std::pair(DType::f64, survives<std::int16_t, double>())}) {
    EXPECT_TRUE(exact);
    EXPECT_TRUE(removed(DType::i16, wide)) << name(wide);
  }
  EXPECT_TRUE(survives_half<std::int8_t>(DType::f16) && survives_half<std::int8_t>(DType::bf16) &&
              removed(DType::i8, DType::bf16));
  EXPECT_TRUE(survives_half<std::uint8_t>(DType::f16) && survives_half<std::uint8_t>(DType::bf16) &&
              removed(DType::u8, DType::bf16));
  EXPECT_TRUE(removed(DType::boolean, DType::f16));
  // Floats stay: f16 0x7d00 is a signalling NaN, which arithmetic conversion turns into 0x7f00.
  for (const DType narrow : {DType::f16, DType::bf16, DType::f32}) {
    EXPECT_FALSE(removed(narrow, DType::f64));
  }
}

// The neutral elements over every 16-bit value, by the table's exact meaning.
TEST(Simplify, NeutralElementsKeepEveryValue) {
  struct Case {
    const char* op;
    std::int64_t element;
  };
  for (const Case& c :
       {Case{"add", 0}, Case{"sub", 0}, Case{"mul", 1}, Case{"bitwise_and", -1}, Case{"bitwise_or", 0}, Case{"bitwise_xor", 0}}) {
    const ops::Op* op = ops::find(c.op);
    ASSERT_NE(op, nullptr) << c.op;
    ASSERT_NE(op->exact, nullptr) << c.op;
    Attrs attrs;
    for (const auto& a : op->attrs) attrs.emplace(a.name, *a.fallback);
    for (std::int64_t v = INT16_MIN; v <= INT16_MAX; ++v) {
      const std::vector<std::int64_t> args = {v, c.element};
      ASSERT_EQ(static_cast<std::int16_t>(op->exact(args, attrs, DType::i16)), v) << c.op;
    }
  }
}

TEST(SimplifyProperty, RandomGraphsStayValidAndSettle) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const Graph g = test::RandomGraph(seed).make(15);
    const Graph once = simplify(g);
    ASSERT_NO_THROW(verify(once)) << "seed " << seed << "\n" << print_graph(g);
    ASSERT_EQ(once.outputs.size(), g.outputs.size());
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      ASSERT_EQ(once.values[once.outputs[i]].type.str(), g.values[g.outputs[i]].type.str()) << "seed " << seed;
    }
    ASSERT_EQ(print_graph(simplify(once)), print_graph(once)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace fuselab
