#include "fuselab/graph/rewrite.h"

#include <gtest/gtest.h>

#include "fuselab/core/error.h"
#include "fuselab/graph/dot.h"
#include "fuselab/graph/text.h"
#include "fuselab/graph/verify.h"
#include "tests/unit/random_graph.h"

namespace fuselab {
namespace {

TEST(GraphRewrite, BaseNames) {
  EXPECT_EQ(base_name("add_12"), "add");
  EXPECT_EQ(base_name("layer_norm_1_2"), "layer_norm");
  EXPECT_EQ(base_name("log2"), "log2");
  EXPECT_EQ(base_name("x_a1"), "x_a1");
  EXPECT_EQ(base_name("_1"), "_1");
  EXPECT_EQ(base_name("7"), "7");
}

TEST(GraphRewrite, FragmentHasCanonicalNames) {
  const Graph g = parse_graph(
      "graph m(x: f32[B, 4], y: f32[B, 4]) {\n  e_3 = exp(x)\n  add_7 = add(e_3, y)\n  add_9 = add(add_7, 1)\n  t = "
      "tanh(add_9)\n  return t\n}");
  const Graph f = extract(g, {2, 1}, {2, 1}, {4});
  verify(f);
  EXPECT_EQ(print_graph(f),
            "graph graph(x0: f32[B, 4], x1: f32[B, 4]) {\n  add: f32[B, 4] = add(x0, x1)\n  add_1: f32[B, 4] = add(add, 1)\n  "
            "return add_1\n}\n");
  EXPECT_EQ(f.nodes[0].origin, "add_7");  // the front end's name survives
  EXPECT_THROW(extract(g, {2}, {2, 1}, {4}), Error);
}

TEST(GraphRewrite, SizesWithoutAnInputBecomeParameters) {
  const Graph g = parse_graph("graph m(x: f32[B]) {\n  z = full(shape=[B], value=0, dtype=f32)\n  y = add(z, x)\n  return y\n}");
  const Graph f = extract(g, {0}, {}, {1});
  verify(f);
  EXPECT_EQ(f.size_params, std::vector<std::string>{"B"});
  EXPECT_NO_THROW(parse_graph(print_graph(f)));
}

TEST(GraphRewrite, DeadNodesGoExternsStay) {
  const Graph g = parse_graph(
      "graph m(x: f32[4]) {\n  a = exp(x)\n  b = neg(a)\n  r: f32[4] = extern(x, target=\"aten.rand\", call=0)\n  c = tanh(x)\n  "
      "return c\n}");
  const Graph d = remove_dead(g);
  verify(d);
  ASSERT_EQ(d.nodes.size(), 2u);
  EXPECT_EQ(d.nodes[0].target, "aten.rand");
}

TEST(GraphRewrite, CanonicalTextForgetsNames) {
  const auto text = [](const char* t) { return canonical_text(parse_graph(t)); };
  EXPECT_EQ(text("graph a(x: f32[4]) { e = exp(x) return e }"), text("graph b(y: f32[4]) { exp_9 = exp(y) return exp_9 }"));
  EXPECT_NE(text("graph a(x: f32[4]) { e = exp(x) return e }"), text("graph a(x: f32[5]) { e = exp(x) return e }"));
}

TEST(GraphRewrite, StorageTheCallerSees) {
  const Graph g = parse_graph(
      "graph m(x: f32[4, 2]) {\n  a = exp(x)\n  v = permute(a, dims=[1, 0])\n  b = exp(x)\n  s = neg(b)\n  return v, s\n}");
  EXPECT_EQ(reaches_caller(g), (std::vector<bool>{false, true, true, false, true}));
}

TEST(GraphRewrite, VerifyFindsWhatIsBroken) {
  const Graph good = parse_graph("graph m(x: f32[4]) {\n  a = exp(x)\n  b = neg(a)\n  return b\n}");
  const auto broken = [&](auto&& change) {
    Graph g = good;
    change(g);
    try {
      verify(g);
    } catch (const Error& e) {
      return e.code() == "graph.invalid";
    }
    return false;
  };
  EXPECT_NO_THROW(verify(good));
  EXPECT_TRUE(broken([](Graph& g) { g.values[1].type.sizes = {Expr(5)}; }));
  EXPECT_TRUE(broken([](Graph& g) { g.values[1].type.dtype = DType::f16; }));
  EXPECT_TRUE(broken([](Graph& g) { g.values[1].name = "x"; }));
  EXPECT_TRUE(broken([](Graph& g) { g.nodes[0].args[0] = ValueId{2}; }));
  EXPECT_TRUE(broken([](Graph& g) { g.nodes[0].args[0] = ValueId{77}; }));
  EXPECT_TRUE(broken([](Graph& g) { g.nodes[0].args.clear(); }));
  EXPECT_TRUE(broken([](Graph& g) { g.outputs = {9}; }));
  EXPECT_TRUE(broken([](Graph& g) { g.inputs.clear(); }));
  EXPECT_TRUE(broken([](Graph& g) { g.values[1].producer = 1; }));
  EXPECT_TRUE(broken([](Graph& g) { g.nodes[1].id = 0; }));
  EXPECT_TRUE(broken([](Graph& g) { g.values[2].type.strides = {Expr::symbol("Q")}; }));
}

TEST(GraphRewrite, PicturesOfRandomGraphs) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Graph g = test::RandomGraph(seed).make(10);
    Blocks blocks{std::vector<int>(g.nodes.size(), 0), {"autofused_<&>"}};
    const std::string svg = to_svg(g, blocks), dot = to_dot(g, blocks);
    EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
    EXPECT_NE(svg.find("autofused_&lt;&amp;&gt;"), std::string::npos);
    EXPECT_EQ(dot.rfind("digraph ", 0), 0u);
    EXPECT_EQ(svg, to_svg(g, blocks));
  }
}

}  // namespace
}  // namespace fuselab
