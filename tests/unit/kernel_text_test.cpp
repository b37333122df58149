// Kernel IR: text form, verification, lowering of views and reductions, and what has no kernel form.
#include "fuselab/kernel/ir.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "fuselab/codegen/codegen.h"
#include "fuselab/core/error.h"
#include "fuselab/graph/text.h"
#include "fuselab/jit/jit.h"
#include "fuselab/kernel/describe.h"

namespace fuselab {
namespace {

codegen::Generated make(const std::string& body) { return codegen::generate(parse_graph("graph g(" + body), "k", {}); }

std::string code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return "none";
}

const char* const kGraphs[] = {
    "x: f32[8, 64]) { a = softmax(x, dim=1) return a }",
    "B: size, x: bf16[B, 64], w: bf16[64]) { a = layer_norm(x, w, normalized_shape=[64]) b = gelu(a) return b, a }",
    "x: f32[4, 6, 5]) { a = sum(x, dims=[0, 2]) return a }",
    "x: f32[4, 6, 5]) { a = argmax(x, dims=[1]) return a }",
    "x: i32[7], y: i32[7]) { a = div_floor(x, y) return a }",
    "x: f64[3, 5]) { v, m = var_mean(x, dims=[1]) return v, m }",
    "x: f32[2, 8, 3, 3], w: f32[8]) { a = group_norm(x, w, num_groups=4) return a }",
    "B: size) { a = iota(size=B, dtype=i64) return a }",
};

TEST(KernelText, RoundTrips) {
  for (const char* g : kGraphs) {
    SCOPED_TRACE(g);
    const auto first = make(g);
    const auto again = codegen::generate_from_ir(first.kernel_ir, "kernel.ir");
    EXPECT_EQ(again.kernel_ir, first.kernel_ir);
    EXPECT_EQ(again.source.text(), first.source.text());
  }
}

TEST(KernelText, EveryDamagedLineIsAnErrorOrAKernel) {
  for (const char* g : kGraphs) {
    const std::string text = make(g).kernel_ir;
    for (std::size_t i = 0; i < text.size(); i += 3) {
      for (const char c : {'\0', '%', '[', '9', 'z', '\n'}) {
        std::string bad = text;
        bad[i] = c;
        const std::string code = code_of([&] { kernel::parse_kernel(bad, "f"); });
        EXPECT_TRUE(code == "none" || code.rfind("kernel.", 0) == 0 || code.rfind("expr.", 0) == 0 ||
                    code.rfind("dtype.", 0) == 0)
            << code << "\n"
            << bad;
      }
    }
  }
}

TEST(KernelText, ErrorsNameTheLine) {
  try {
    kernel::parse_kernel("kernel k {\n  in x: f32\n  %0 = lead x [p0]: f32\n}\n", "kernel.ir");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("kernel.ir:3"), std::string::npos) << e.what();
  }
}

TEST(KernelText, AChunkOfTheTreeCanBeForced) {  // P-11: the order of a sum is part of the IR
  const std::string text = make("x: f32[4, 16384]) { a = sum(x, dims=[1]) return a }").kernel_ir;
  const auto with = [&](const std::string& chunk) {
    std::string edited = text;
    edited.replace(edited.find("tree lanes"), 10, "tree lanes chunk " + chunk);
    return codegen::generate_from_ir(edited, "kernel.ir");
  };
  EXPECT_EQ(with("512").kernel_ir, text);  // the chunk that every kernel has
  const auto wide = with("2048");
  EXPECT_NE(wide.kernel_ir.find("tree lanes chunk 2048 ("), std::string::npos) << wide.kernel_ir;
  EXPECT_EQ(codegen::generate_from_ir(wide.kernel_ir, "kernel.ir").source.text(), wide.source.text());
  EXPECT_NE(wide.source.text(), with("1024").source.text());
  for (const char* bad : {"0", "-512", "500", "32", "1000000000000", "x", "1.5", ""})
    EXPECT_EQ(code_of([&] { with(bad); }), "kernel.syntax") << bad;
}

TEST(Lower, ViewsAreIndexArithmetic) {
  const std::string t = make(
                            "x: f32[4, 6]) { a = abs(x) b = permute(a, dims=[1, 0]) c = slice(b, dim=0, start=1, end=5, step=2) "
                            "d = exp(c) return d }")
                            .kernel_ir;
  EXPECT_NE(t.find("[2]*p0 + [6]*p1 + [1]"), std::string::npos) << t;
  EXPECT_EQ(t.find("permute"), std::string::npos);
}

TEST(Lower, AReshapeBetweenValuesSplitsAxes) {
  const std::string t = make("x: f32[4, 6]) { a = abs(x) b = reshape(a, shape=[24]) c = exp(b) return c }").kernel_ir;
  EXPECT_NE(t.find("= abs"), std::string::npos) << t;
}

TEST(Lower, SoftmaxIsOneKernelWithTwoReductions) {
  const std::string t = make("x: f32[8, 64]) { s = mul(x, 0.5) a = softmax(s, dim=1) b = add(a, 1.0) return b }").kernel_ir;
  EXPECT_NE(t.find("reduce max"), std::string::npos);
  EXPECT_NE(t.find("reduce sum"), std::string::npos);
}

TEST(Lower, TwoExtentsAreNotOneKernel) {
  EXPECT_EQ(code_of([] { make("x: f32[8, 64]) { a = sum(x, dims=[1]) b = sum(a, dims=[0]) return b }"); }), "kernel.unsupported");
}

TEST(Determinism, SameGraphSameText) {  // P-32, P-35
  for (const char* g : kGraphs) EXPECT_EQ(make(g).source.text(), make(g).source.text());
}

TEST(Codegen, SizeNamesMayHoldTheLoopsLetters) {  // a kept row's place was made by replacing the first q, also of a size's name
  const auto g = make(
      "B: size, seq: size, x: f32[B, 300, seq]) { e = exp(x) s = sum(e, dims=[1, 2], keepdim=true) z = div(e, s) return z }");
  EXPECT_NE(g.source.text().find("_kept["), std::string::npos);
  EXPECT_EQ(code_of([&] { jit::compile_object(g.source.text(), "k.cpp", jit::Target::host()); }), "none");
}

TEST(Schedule, LocalMemoryDecidesWhatARowKeeps) {  // P-12
  // exp over a row is needed twice: a row of 1024 is kept (4096 bytes of f32), one of 65536 would leave the second-level cache.
  const auto words = [](int n) {
    const auto made = make(fmt::format("x: f32[8, {}]) {{ a = softmax(x, dim=1) return a }}", n));
    return kernel::describe(kernel::schedule(kernel::parse_kernel(made.kernel_ir, "k")));
  };
  EXPECT_NE(words(1024).find("form rows: rows over p0 ([8]), 16 lanes along r0"), std::string::npos) << words(1024);
  EXPECT_NE(words(1024).find(", 4096 bytes of local memory"), std::string::npos) << words(1024);
  EXPECT_NE(words(65536).find("nothing, values are computed again (a row has 65536 elements, local memory holds 49152)"),
            std::string::npos)
      << words(65536);
}

TEST(Simplify, CanBeSkipped) {  // P-43
  codegen::Options o;
  o.skip_passes = {"simplify"};
  const auto graph = parse_graph("graph g(x: f32[8]) { a = add(x, x) b = add(x, x) c = mul(a, b) return c }");
  const std::string with = codegen::generate(graph, "k", {}).kernel_ir, without = codegen::generate(graph, "k", o).kernel_ir;
  EXPECT_LT(with.size(), without.size());
}

// An edited kernel is called with its fragment's tensors: other buffers would lie outside them.
TEST(KernelText, EditedBuffersMustBeTheFragments) {
  const Graph g = parse_graph("graph g(x: f32[8], y: f32[8]) {\n  z = add(x, y)\n  return z\n}\n");
  const std::string ir = codegen::generate(g, "autofused_elemwise_add_0", {}).kernel_ir;
  EXPECT_NO_THROW(codegen::generate_from_ir(ir, "kernel.ir", &g));
  for (const char* other : {"graph g(x: f32[8]) {\n  z = add(x, x)\n  return z\n}\n",
                            "graph g(x: f32[8], y: f16[8]) {\n  z = add(x, y)\n  return z\n}\n",
                            "graph g(x: f32[8], y: f32[8]) {\n  z = add(x, y)\n  return z, z\n}\n"}) {
    const Graph fragment = parse_graph(other);
    try {
      codegen::generate_from_ir(ir, "kernel.ir", &fragment);
      ADD_FAILURE() << other;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "kernel.invalid");
      EXPECT_NE(std::string(e.what()).find("kernel.ir"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace fuselab
