// Plans of small graphs, decided by hand: what must be one kernel, what must not.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "fuselab/fuse/fuse.h"
#include "fuselab/graph/text.h"
#include "fuselab/graph/verify.h"

namespace fuselab::fuse {
namespace {

struct Planned {
  Graph graph;
  Plan plan;
  int count(Step::Kind kind) const {
    return static_cast<int>(std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& s) { return s.kind == kind; }));
  }
  int kernels() const { return count(Step::Kind::kernel); }
  const Step& kernel(int i) const {
    for (const Step& s : plan.steps) {
      if (s.kind == Step::Kind::kernel && i-- == 0) return s;
    }
    throw std::out_of_range("kernel");
  }
  std::set<std::string> names(const std::vector<ValueId>& values) const {
    std::set<std::string> out;
    for (ValueId v : values) out.insert(graph.values[v].name);
    return out;
  }
};

// Every plan, whatever the graph: steps read only what is there already, every live node has its place, fragments are well
// formed.
void check_plan(const Graph& g, const Plan& plan) {
  std::set<ValueId> there(g.inputs.begin(), g.inputs.end());
  for (const Step& step : plan.steps) {
    for (ValueId v : step.inputs) EXPECT_TRUE(there.count(v)) << g.values[v].name << " is read before it exists";
    for (ValueId v : step.outputs) EXPECT_TRUE(there.insert(v).second) << g.values[v].name << " is made twice";
    EXPECT_FALSE(step.nodes.empty());
    if (step.kind != Step::Kind::kernel) {
      EXPECT_EQ(step.nodes.size(), 1u);
      continue;
    }
    EXPECT_NO_THROW(verify(step.fragment));
    const std::string text = print_graph(step.fragment);
    EXPECT_EQ(print_graph(parse_graph(text)), text);
    EXPECT_EQ(step.inputs.size(), step.fragment.inputs.size());
    EXPECT_EQ(step.outputs.size(), step.fragment.outputs.size());
    EXPECT_EQ(step.name.rfind("autofused_" + step.block_kind + "_", 0), 0u) << step.name;
    EXPECT_LE(step.name.size(), 100u);
    EXPECT_FALSE(step.outputs.empty());
    for (std::size_t i = 0; i < step.inputs.size(); ++i) {
      EXPECT_EQ(step.fragment.values[step.fragment.inputs[i]].type.str(), g.values[step.inputs[i]].type.str());
    }
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
      EXPECT_EQ(step.fragment.values[step.fragment.outputs[i]].type.str(), g.values[step.outputs[i]].type.str());
    }
  }
  for (ValueId v : g.outputs) EXPECT_TRUE(there.count(v)) << g.values[v].name << " leaves the graph but is never made";
  ASSERT_EQ(plan.reasons.size(), g.nodes.size());
  for (const std::string& reason : plan.reasons) EXPECT_FALSE(reason.empty());
}

Planned plan_of(const std::string& text, const Options& options = {}) {
  Planned p;
  p.graph = parse_graph(text);
  p.plan = fuse(p.graph, options);
  check_plan(p.graph, p.plan);
  return p;
}

TEST(FusePlan, PointwiseChainIsOneKernel) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 32], b: f32[32]) {
    a = add(x, b)
    c = gelu(a)
    d = mul(c, 2.0)
    return d
  })");
  EXPECT_EQ(p.kernels(), 1);
  EXPECT_EQ(p.kernel(0).block_kind, "elemwise");
  EXPECT_EQ(p.kernel(0).nodes.size(), 3u);
  EXPECT_EQ(p.kernel(0).name.rfind("autofused_elemwise_add_gelu_mul_", 0), 0u) << p.kernel(0).name;
}

TEST(FusePlan, IntermediateThatIsAlsoAnOutputStaysOneValue) {
  const Planned p = plan_of(R"(graph g(x: f16[64, 32]) {
    a = exp(x)
    b = mul(a, 3.0)
    return a, b
  })");
  EXPECT_EQ(p.kernels(), 1);
  EXPECT_EQ(p.names(p.kernel(0).outputs), (std::set<std::string>{"a", "b"}));
}

TEST(FusePlan, ResidualAddAndLayerNormAreOneKernelWithTwoOutputs) {
  const Planned p = plan_of(R"(graph g(x: f16[8, 128, 768], h: f16[8, 128, 768], w: f16[768], b: f16[768]) {
    x1 = add(x, h)
    n = layer_norm(x1, w, b, normalized_shape=[768], eps=1e-05)
    m: f16[8, 128, 768] = extern(n, target="aten.mm.default", call=0)
    y = add(x1, m)
    return y
  })");
  EXPECT_EQ(p.kernels(), 2);
  EXPECT_EQ(p.kernel(0).block_kind, "reduce");
  EXPECT_EQ(p.names(p.kernel(0).outputs), (std::set<std::string>{"x1", "n"}));
  EXPECT_EQ(p.names(p.kernel(1).outputs), (std::set<std::string>{"y"}));
}

TEST(FusePlan, StagesOverTheSameRowsAreOneKernel) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 1000]) {
    m = amax(x, dims=[1], keepdim=true)
    d = sub(x, m)
    e = exp(d)
    s = sum(e, dims=[1], keepdim=true)
    y = div(e, s)
    return y
  })");
  EXPECT_EQ(p.kernels(), 1);
  EXPECT_EQ(p.kernel(0).block_kind, "reduce");
  EXPECT_EQ(p.kernel(0).nodes.size(), 5u);
}

TEST(FusePlan, RowsComeBackThroughUnsqueezeAndExpand) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 100]) {
    m = mean(x, dims=[1])
    u = unsqueeze(m, dim=1)
    e = expand(u, shape=[64, 100])
    d = sub(x, e)
    q = square(d)
    v = sum(q, dims=[1])
    r = rsqrt(v)
    return r
  })");
  EXPECT_EQ(p.kernels(), 1);
}

TEST(FusePlan, CompositesJoinTheirNeighbours) {
  const Planned p = plan_of(R"(graph g(q: f32[2, 4, 16, 16], mask: bool[16, 16]) {
    s = mul(q, 0.25)
    k = where(mask, s, -inf)
    p = softmax(k, dim=-1)
    y = cast(p, dtype=f16)
    return y
  })");
  EXPECT_EQ(p.kernels(), 1);
  EXPECT_EQ(p.kernel(0).block_kind, "reduce");
}

TEST(FusePlan, GroupNormWithActivation) {
  const Planned p = plan_of(R"(graph g(x: f32[2, 32, 8, 8], w: f32[32], b: f32[32]) {
    a = relu(x)
    n = group_norm(a, w, b, num_groups=4, eps=1e-05)
    y = silu(n)
    return y
  })");
  EXPECT_EQ(p.kernels(), 1);
}

TEST(FusePlan, DifferentReducedAxesAreTwoKernels) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 32]) {
    a = sum(x, dims=[0])
    b = sum(x, dims=[1])
    return a, b
  })");
  EXPECT_EQ(p.kernels(), 2);
}

TEST(FusePlan, AReductionOfARowEndsTheBlock) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 32]) {
    a = sum(x, dims=[1])
    b = sum(a, dims=[0])
    return b
  })");
  EXPECT_EQ(p.kernels(), 2);
}

TEST(FusePlan, NoCycleThroughAnExternCall) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 32]) {
    a = exp(x)
    h: f32[64, 32] = extern(a, target="aten.mm.default", call=0)
    y = add(a, h)
    return y
  })");
  EXPECT_EQ(p.kernels(), 2);
  EXPECT_EQ(p.count(Step::Kind::extern_call), 1);
  EXPECT_NE(p.plan.reasons[0].find("another step"), std::string::npos) << p.plan.reasons[0];
  EXPECT_NE(p.plan.reasons[1].find("aten.mm.default"), std::string::npos);
}

TEST(FusePlan, SiblingsOfOneInputAreOneKernel) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 32], y: f32[64, 32]) {
    a = exp(x)
    b = mul(x, 2.0)
    m = mean(x, dims=[1])
    c = tanh(y)
    return a, b, m, c
  })");
  EXPECT_EQ(p.kernels(), 2);
  EXPECT_EQ(p.kernel(0).outputs.size(), 3u);
}

TEST(FusePlan, SiblingsOfDifferentExtentStayApart) {
  const Planned p = plan_of(R"(graph g(x: f32[32], y: f32[64, 32], z: f32[128, 32]) {
    a = add(x, y)
    b = add(x, z)
    return a, b
  })");
  EXPECT_EQ(p.kernels(), 2);
}

TEST(FusePlan, CostlyWorkIsNotRepeatedOverABroadcast) {
  const Planned p = plan_of(R"(graph g(s: f32[1, 4096], x: f32[512, 4096]) {
    e = exp(s)
    y = mul(x, e)
    return y
  })");
  EXPECT_EQ(p.kernels(), 2);
  EXPECT_NE(p.plan.reasons[0].find("too costly"), std::string::npos) << p.plan.reasons[0];
}

TEST(FusePlan, CheapWorkIsRepeatedOverABroadcast) {
  const Planned p = plan_of(R"(graph g(s: f32[1, 4096], x: f32[512, 4096]) {
    e = mul(s, 0.5)
    y = mul(x, e)
    return y
  })");
  EXPECT_EQ(p.kernels(), 1);
}

TEST(FusePlan, RowLevelWorkMayBeCostlyInAReduction) {
  const Planned p = plan_of(R"(graph g(x: f32[512, 4096]) {
    s = sum(x, dims=[1], keepdim=true)
    e = exp(s)
    y = mul(x, e)
    return y
  })");
  EXPECT_EQ(p.kernels(), 1);
}

TEST(FusePlan, TransposedUseOfAComputedValueIsNotTheSameLoop) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 64]) {
    a = exp(x)
    t = transpose(a, dim0=0, dim1=1)
    y = add(a, t)
    return y
  })");
  EXPECT_EQ(p.kernels(), 2);
}

TEST(FusePlan, TransposedProducerFusesWhenReadOnce) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 32], b: f32[32, 64]) {
    a = mul(x, 2.0)
    t = permute(a, dims=[1, 0])
    y = add(t, b)
    return y
  })");
  EXPECT_EQ(p.kernels(), 1);
}

TEST(FusePlan, HeadsMergeInsideABlock) {
  const Planned p = plan_of(R"(graph g(x: f32[2, 8, 16, 64]) {
    a = mul(x, 2.0)
    t = permute(a, dims=[0, 2, 1, 3])
    r = reshape(t, shape=[2, 16, 512])
    return r
  })");
  // The reshape copies (no strides say it), and the multiplication is done on the way.
  EXPECT_EQ(p.kernels(), 1);
  EXPECT_EQ(p.names(p.kernel(0).outputs), (std::set<std::string>{"r"}));
}

TEST(FusePlan, ViewsOfInputsAreFree) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 96]) {
    a = slice(x, dim=1, start=0, end=32)
    b = slice(x, dim=1, start=32, end=64)
    c = select(x, dim=1, index=70)
    u = unsqueeze(c, dim=1)
    d = mul(a, b)
    y = add(d, u)
    return y
  })");
  EXPECT_EQ(p.kernels(), 1);
  EXPECT_EQ(p.count(Step::Kind::view), 0);
  EXPECT_EQ(p.kernel(0).inputs.size(), 1u);
}

TEST(FusePlan, AnAliasThatLeavesTheGraphIsStored) {
  const Planned p = plan_of(R"(graph g(x: f32[64]) {
    a = exp(x)
    b = alias(a)
    c = mul(b, 2.0)
    return b, c
  })");
  EXPECT_EQ(p.kernels(), 1);
  EXPECT_EQ(p.names(p.kernel(0).outputs), (std::set<std::string>{"a", "c"}));
}

TEST(FusePlan, AViewOfAStoredValueIsAStep) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 96]) {
    a = exp(x)
    t = permute(a, dims=[1, 0])
    h: f32[96, 96] = extern(t, a, target="aten.mm.default", call=0)
    return h, t
  })");
  EXPECT_EQ(p.kernels(), 1);
  EXPECT_EQ(p.count(Step::Kind::view), 1);
}

TEST(FusePlan, ComputedChunksOfOneValue) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 128], b: f32[128]) {
    h = add(x, b)
    a = slice(h, dim=1, start=0, end=64)
    c = slice(h, dim=1, start=64, end=128)
    s = silu(a)
    y = mul(s, c)
    return y
  })");
  EXPECT_EQ(p.kernels(), 1);
}

TEST(FusePlan, APartOfAStoredValueIsItsOwnKernel) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 128]) {
    h = exp(x)
    a = slice(h, dim=1, start=0, end=64)
    y = mul(a, 2.0)
    return h, y
  })");
  EXPECT_EQ(p.kernels(), 2);
}

TEST(FusePlan, ConstantsAreRepeatedNotStored) {
  const Planned p = plan_of(R"(graph g(x: f32[64], y: f32[64]) {
    c = full(shape=[64], value=2.0, dtype=f32)
    a = mul(x, c)
    h: f32[64] = extern(a, target="aten.sort.default", call=0)
    b = mul(h, c)
    return b, y
  })");
  EXPECT_EQ(p.kernels(), 2);
  EXPECT_EQ(p.plan.reasons[0].rfind("inlined", 0), 0u);
}

TEST(FusePlan, EqualBlocksHaveEqualTextAndName) {
  const Planned p = plan_of(R"(graph g(x: f32[64, 32], w: f32[64, 32]) {
    add_1 = add(x, w)
    mul_7 = mul(add_1, 2.0)
    h: f32[64, 32] = extern(mul_7, target="aten.mm.default", call=0)
    add_2 = add(h, x)
    mul_8 = mul(add_2, 2.0)
    return mul_8
  })");
  ASSERT_EQ(p.kernels(), 2);
  EXPECT_EQ(p.kernel(0).name, p.kernel(1).name);
  EXPECT_EQ(print_graph(p.kernel(0).fragment), print_graph(p.kernel(1).fragment));
}

TEST(FusePlan, SymbolicSizesFuse) {
  const Planned p = plan_of(R"(graph g(x: f16[B, T, 768], w: f16[768], b: f16[768]) {
    n = layer_norm(x, w, b, normalized_shape=[768], eps=1e-05)
    g = gelu(n)
    r = reshape(g, shape=[B*T, 768])
    y = mul(r, 2.0)
    return y
  })");
  EXPECT_EQ(p.kernels(), 1);
}

TEST(FusePlan, UnusedNodesAreNotRun) {
  const Planned p = plan_of(R"(graph g(x: f32[64]) {
    a = exp(x)
    b = mul(x, 2.0)
    return b
  })");
  EXPECT_EQ(p.kernels(), 1);
  EXPECT_EQ(p.plan.reasons[0].rfind("unused", 0), 0u);
}

TEST(FusePlan, MaxFusionSizeLimitsABlock) {
  Options options;
  options.max_fusion_size = 2;
  const std::string text = R"(graph g(x: f32[64]) {
    a = exp(x)
    b = mul(a, 2.0)
    c = add(b, 1.0)
    d = neg(c)
    return d
  })";
  EXPECT_EQ(plan_of(text, options).kernels(), 2);
  options.max_fusion_size = 0;
  EXPECT_EQ(plan_of(text, options).kernels(), 4);
  options = {};
  options.enable = false;
  EXPECT_EQ(plan_of(text, options).kernels(), 4);
}

TEST(FusePlan, ClassesCanBeSwitchedOff) {
  const std::string text = R"(graph g(x: f32[64, 32]) {
    a = exp(x)
    b = mul(a, 2.0)
    c = sum(b, dims=[1])
    return c
  })";
  Options no_reduce;
  no_reduce.reduce = false;
  EXPECT_EQ(plan_of(text, no_reduce).kernels(), 2);
  Options no_elemwise;
  no_elemwise.elemwise = false;
  EXPECT_EQ(plan_of(text, no_elemwise).kernels(), 3);
}

TEST(FusePlan, RecomputationThresholdRepeatsCheapLeaves) {
  const std::string text = R"(graph g(x: f32[64, 32]) {
    a = add(x, 1.0)
    b = sum(a, dims=[1])
    c = sum(a, dims=[0])
    return b, c
  })";
  const Planned stored = plan_of(text);
  EXPECT_EQ(stored.kernels(), 2);
  Options options;
  options.recomputation_threshold = 2;
  const Planned repeated = plan_of(text, options);
  EXPECT_EQ(repeated.kernels(), 2);
  EXPECT_EQ(repeated.plan.reasons[0].rfind("inlined", 0), 0u);
  for (const Step& step : repeated.plan.steps) EXPECT_EQ(repeated.names(step.outputs).count("a"), 0u);
}

TEST(FusePlan, TwoBranchesThatNeedEachOtherDoNotMerge) {
  // u and v read x; v's partner runs behind an extern call that needs u: merging all three would be a cycle.
  const Planned p = plan_of(R"(graph g(x: f32[64, 32]) {
    u = exp(x)
    e: f32[64, 32] = extern(u, target="aten.sort.default", call=0)
    v = mul(x, e)
    w = tanh(x)
    return u, v, w
  })");
  EXPECT_EQ(p.kernels(), 2);
}

TEST(FusePlan, ARefusedBlockIsCutUntilItIsAccepted) {
  Options options;
  options.accept = [](const Graph& fragment, const std::string&) {
    return fragment.nodes.size() > 2 ? std::string("three operators are too many for this test") : std::string();
  };
  const Planned p = plan_of(R"(graph g(x: f32[64], y: f32[64]) {
    a = exp(x)
    b = mul(a, 2.0)
    c = add(b, 1.0)
    d = neg(c)
    e = tanh(y)
    f = neg(e)
    return d, f
  })",
                            options);
  EXPECT_EQ(p.kernels(), 3);
  for (const Step& step : p.plan.steps) EXPECT_EQ(step.fragment.nodes.size(), 2u);
}

TEST(FusePlan, ViewsWithoutAKernelFormBecomeAliases) {
  Options options;
  options.accept = [](const Graph& fragment, const std::string&) {
    return fragment.nodes.size() > 1 ? std::string("no views for this test") : std::string();
  };
  const Planned p = plan_of(R"(graph g(x: f32[4, 6]) {
    a = permute(x, dims=[1, 0])
    b = slice(a, dim=0, start=1)
    y = exp(b)
    return y
  })",
                            options);
  EXPECT_EQ(p.kernels(), 1);
  ASSERT_EQ(p.plan.steps.size(), 3u);  // two aliases, then exp of the second
  EXPECT_EQ(p.plan.steps[0].kind, Step::Kind::view);
  EXPECT_EQ(p.plan.steps[1].kind, Step::Kind::view);
  EXPECT_EQ(p.plan.steps[2].fragment.nodes.size(), 1u);
}

TEST(FusePlan, EmptyAndScalarGraphs) {
  EXPECT_EQ(plan_of("graph g(x: f32[3]) {\n return x\n}").plan.steps.size(), 0u);
  EXPECT_EQ(plan_of("graph g(x: f32[]) {\n a = exp(x)\n b = add(a, 1.0)\n return b\n}").kernels(), 1);
  EXPECT_EQ(plan_of("graph g(x: f32[0, 4]) {\n a = exp(x)\n b = sum(a, dims=[0])\n return b\n}").kernels(), 1);
}

}  // namespace
}  // namespace fuselab::fuse
