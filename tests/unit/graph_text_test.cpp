#include "fuselab/graph/text.h"

#include <gtest/gtest.h>

#include <functional>

#include "fuselab/core/error.h"
#include "fuselab/graph/verify.h"
#include "tests/unit/random_graph.h"

namespace fuselab {
namespace {

struct Failure {
  std::string code, message;
};

Failure failure(const std::string& text) {
  try {
    parse_graph(text, "f.graph");
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
  return {};
}

TEST(GraphText, HeaderExampleRoundTrips) {
  const Graph g = parse_graph(R"(
    graph ffn(B: size, x: f16[B, 4096], w: f16[4096], r: f32[4, 8]{1, 4}) {   # strides in braces when not contiguous
      n = layer_norm(x, w, none, normalized_shape=[4096], eps=1e-05)
      y: f16[B, 4096] = gelu(n, approximate="tanh")
      v, m = var_mean(x, dims=[1], keepdim=true)
      h: f16[B, 64] = extern(x, w, target="aten.mm.default", call=3, sizes=[B, 2*B + 1])
      return y, v, h, r
    })");
  verify(g);
  const std::string text = print_graph(g);
  EXPECT_EQ(text,
            "graph ffn(B: size, x: f16[B, 4096], w: f16[4096], r: f32[4, 8]{1, 4}) {\n"
            "  n: f16[B, 4096] = layer_norm(x, w, normalized_shape=[4096])\n"
            "  y: f16[B, 4096] = gelu(n, approximate=\"tanh\")\n"
            "  v: f16[B, 1], m: f16[B, 1] = var_mean(x, dims=[1], keepdim=true)\n"
            "  h: f16[B, 64] = extern(x, w, target=\"aten.mm.default\", call=3, sizes=[B, 2*B + 1])\n"
            "  return y, v, h, r\n"
            "}\n");
  EXPECT_EQ(print_graph(parse_graph(text)), text);
}

TEST(GraphText, AnyNameCanBeAValue) {
  const Graph g = parse_graph(
      "graph \"g 1\"(\"return\": f32[2], none_1: f32[2], \"L.0.w\": f32[2], f16: f32[2], extern_1: f32[2], größe: f32[2]) {\n"
      "  \"none\" = add(\"return\", \"L.0.w\")\n  \"a\\\"b\\\\c\\x01\" = mul(\"none\", f16)\n  return \"a\\\"b\\\\c\\x01\", "
      "größe\n}\n");
  EXPECT_EQ(g.values[0].name, "return");
  EXPECT_EQ(g.values.back().name, "a\"b\\c\x01");
  const std::string text = print_graph(g);
  EXPECT_EQ(print_graph(parse_graph(text)), text);
}

TEST(GraphText, NumbersAreExact) {
  const Graph g = parse_graph(
      "graph g(x: f64[2], i: i64[2]) {\n a = mul(x, 0.1)\n b = mul(x, -inf)\n c = mul(x, nan)\n d = add(i, "
      "-9223372036854775808)\n"
      " e = mul(x, -0.0)\n f = mul(x, 1e400)\n g = mul(x, 4.9e-324)\n h = mul(x, 16777217.0)\n k = mul(x, true)\n return a, b, "
      "c, d, e, f, g, h, k\n}");
  const auto number = [&](int node) { return std::get<double>(std::get<Scalar>(g.nodes[node].args[1])); };
  EXPECT_EQ(number(0), 0.1);
  EXPECT_EQ(number(1), -INFINITY);
  EXPECT_TRUE(std::isnan(number(2)));
  EXPECT_EQ(std::get<std::int64_t>(std::get<Scalar>(g.nodes[3].args[1])), INT64_MIN);
  EXPECT_TRUE(number(4) == 0 && std::signbit(number(4)));
  EXPECT_EQ(number(5), INFINITY);
  EXPECT_EQ(number(6), 4.9e-324);
  EXPECT_EQ(number(7), 16777217.0);
  const std::string text = print_graph(g);
  EXPECT_NE(text.find("mul(x, 0.1)"), std::string::npos);
  EXPECT_NE(text.find("mul(x, 5e-324)"), std::string::npos);
  EXPECT_NE(text.find("mul(x, 16777217.0)"), std::string::npos);
  EXPECT_EQ(print_graph(parse_graph(text)), text);
}

TEST(GraphText, ErrorsShowThePlace) {
  const Failure f = failure("graph g(x: f32[4]) {\n  y = gellu(x)\n  return y\n}\n");
  EXPECT_EQ(f.code, "graph.unknown_op");
  EXPECT_EQ(f.message,
            "f.graph:2:7: unknown operator 'gellu'; did you mean 'gelu'?; `fuselab ops` lists what exists\n    y = gellu(x)\n    "
            "    ^");
  EXPECT_EQ(failure("graph g(x: f32[4]) {\n\ty = exp(z)\n return y }").message,
            "f.graph:2:10: there is no value 'z' before this place; did you mean 'x'?\n   y = exp(z)\n           ^");
}

TEST(GraphText, EachMistakeHasItsCode) {
  const std::string head = "graph g(B: size, x: f32[4, 3], y: f32[2, 3], i: i32[4, 3]) {\n";
  const auto code = [&](const std::string& body) { return failure(head + body + "}").code; };
  EXPECT_EQ(code("a = add(x, y) return a"), "graph.shape");
  EXPECT_EQ(code("a = add(x) return a"), "graph.arity");
  EXPECT_EQ(code("a = add(x, x, x, x) return a"), "graph.arity");
  EXPECT_EQ(code("a, b = add(x, x) return a"), "graph.arity");
  EXPECT_EQ(code("a = sum(x, dims=[2]) return a"), "graph.shape");
  EXPECT_EQ(code("a = sum(x, dims=[0, -2]) return a"), "graph.shape");
  EXPECT_EQ(code("a = sum(x, dims=[B]) return a"), "graph.bad_attr");
  EXPECT_EQ(code("a = sum(x, dim=[0]) return a"), "graph.bad_attr");
  EXPECT_EQ(code("a = sum(x, keepdim=1) return a"), "graph.bad_attr");
  EXPECT_EQ(code("a = sum(x, dims=[0], dims=[1]) return a"), "graph.bad_attr");
  EXPECT_EQ(code("a = sum(3) return a"), "graph.arity");
  EXPECT_EQ(code("a: f16[4, 3] = exp(x) return a"), "graph.dtype");
  EXPECT_EQ(code("a: f32[4, 4] = exp(x) return a"), "graph.shape");
  EXPECT_EQ(code("a: f32[4, 3]{0, 1} = exp(x) return a"), "graph.strides");
  EXPECT_EQ(code("a: f32[3, 4]{4, 1} = permute(x, dims=[1, 0]) return a"), "graph.strides");
  EXPECT_EQ(code("a = bitwise_and(x, i) return a"), "graph.dtype");
  EXPECT_EQ(code("a = full(shape=[C], value=1, dtype=f32) return a"), "graph.unknown_size");
  EXPECT_EQ(code("a = full(shape=[4294967296, 4294967296], value=1, dtype=f32) return a"), "graph.too_large");
  EXPECT_EQ(code("a = full(shape=[2147483648, 1073741824], value=1, dtype=f32) return a"), "graph.too_large");
  EXPECT_EQ(code("a = full(shape=[-2], value=1, dtype=f32) return a"), "graph.shape");
  EXPECT_EQ(code("x = exp(x) return x"), "graph.name");
  EXPECT_EQ(code("a = extern(x, call=0) return a"), "graph.bad_attr");
  EXPECT_EQ(code("a = extern(x, target=\"t\", call=0) return a"), "graph.dtype");
  EXPECT_EQ(code("a = exp(x"), "graph.syntax");
  EXPECT_EQ(code("a = exp(x) return"), "");
  EXPECT_EQ(code("a = exp(x)"), "graph.syntax");
  EXPECT_EQ(code("a = exp(x) return a, "), "graph.syntax");
  EXPECT_EQ(code("a = mul(x, 99999999999999999999) return a"), "graph.syntax");
  EXPECT_EQ(code("a = mul(x, 1.2.3) return a"), "graph.syntax");
  EXPECT_EQ(code("a = gelu(x, approximate=\"ta\nnh\") return a"), "graph.syntax");
  EXPECT_EQ(failure("").code, "graph.syntax");
  EXPECT_EQ(failure("graph g(x: f32[2.5]) { return x }").code, "graph.syntax");
  EXPECT_EQ(failure("graph g(x: f7[2]) { return x }").code, "dtype.unknown");
  EXPECT_EQ(failure("graph g(x: f32[2]{1, 1}) { return x }").code, "graph.bad_type");
  EXPECT_EQ(failure("graph g(x: f32[-2]) { return x }").code, "graph.bad_type");
  EXPECT_EQ(failure("graph g(x: f32[4611686018427387904, 4]) { return x }").code, "graph.too_large");
}

TEST(GraphText, HostileTextEndsInAnError) {
  EXPECT_NE(failure("graph g(x: f32[" + std::string(200000, '(') + "4]) { return x }").code, "");
  EXPECT_NE(failure("graph g(x: f32[" + std::string(200000, '-') + "4]) { return x }").code, "");
  std::string list = "1";
  for (int i = 0; i < 100; ++i) list += ", 1";
  EXPECT_EQ(failure("graph g(x: f32[" + list + "]) { return x }").code, "graph.too_large");
  std::string nested = "B";
  for (int i = 0; i < 60; ++i) nested = "(" + nested + " + C)*(B + C)";
  EXPECT_NE(failure("graph g(B: size, C: size, x: f32[" + nested + "]) { return x }").code, "");
}

TEST(GraphText, AnnotationSetsStridesAndAssumptions) {
  const Graph g = parse_graph(
      "graph g(x: f32[B, 4]) {\n  a: f32[B, 4]{1, B} = exp(x)\n  s: f32[2, 4] = slice(x, dim=0, start=0, end=2)\n  return a, "
      "s\n}");
  verify(g);
  EXPECT_EQ(g.values[g.outputs[0]].type.str(), "f32[B, 4]{1, B}");
  ASSERT_EQ(g.assumptions.size(), 1u);
  EXPECT_EQ(g.assumptions[0].first.str(), "min(2, B)");
  EXPECT_TRUE(g.assumptions[0].second.is(2));
  EXPECT_EQ(print_graph(parse_graph(print_graph(g))), print_graph(g));
}

TEST(GraphText, OriginIsKeptOnRequest) {
  const Graph g = parse_graph("graph g(x: f32[4]) { y = exp(x, origin=\"exp_17\") return y }");
  EXPECT_EQ(g.nodes[0].origin, "exp_17");
  EXPECT_EQ(print_graph(g).find("origin"), std::string::npos);
  EXPECT_EQ(parse_graph(print_graph(g, true)).nodes[0].origin, "exp_17");
}

// Properties over random graphs: seeds are fixed so that a failure names its graph.
TEST(GraphTextProperty, PrintedGraphsParseToThemselves) {
  int nodes = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const Graph g = test::RandomGraph(seed).make(12);
    nodes += static_cast<int>(g.nodes.size());
    ASSERT_NO_THROW(verify(g)) << "seed " << seed;
    const std::string text = print_graph(g);
    Graph again;
    ASSERT_NO_THROW(again = parse_graph(text)) << "seed " << seed << "\n" << text;
    ASSERT_EQ(print_graph(again), text) << "seed " << seed;
    ASSERT_NO_THROW(verify(again)) << "seed " << seed << "\n" << text;
  }
  EXPECT_GT(nodes, 2000);
}

TEST(GraphTextProperty, DamagedTextNeverCrashes) {
  std::mt19937 random(7);
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    std::string text = print_graph(test::RandomGraph(seed).make(4));
    for (int k = 0; k < 20; ++k) {
      std::string damaged = text;
      for (int c = 0; c < 3; ++c) {
        const std::size_t at = random() % damaged.size();
        switch (random() % 3) {
          case 0:
            damaged[at] = static_cast<char>(random() % 256);
            break;
          case 1:
            damaged.erase(at, 1 + random() % 5);
            break;
          default:
            damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 8));
            break;
        }
        if (damaged.empty()) damaged = "g";
      }
      try {
        verify(parse_graph(damaged));
      } catch (const Error& e) {
        ASSERT_NE(e.code(), "graph.invalid") << damaged << "\n" << e.what();
      }
    }
  }
}

}  // namespace
}  // namespace fuselab
