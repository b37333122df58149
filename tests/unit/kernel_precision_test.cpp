// The precision passes, read off the kernel IR (spec: R1-R4, R9, R10; checklist P-16 to P-31).
#include <gtest/gtest.h>

#include <string>

#include "fuselab/codegen/codegen.h"
#include "fuselab/graph/text.h"

namespace fuselab {
namespace {

std::string ir(const std::string& body, const codegen::Options& options = {}) {
  return codegen::generate(parse_graph("graph g(" + body), "k", options).kernel_ir;
}

codegen::Options eager() {
  codegen::Options o;
  o.precision = codegen::Precision::eager;
  return o;
}

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

const char* const kChain =
    "x: f16[8, 64], y: f16[8, 64]) { abs0 = abs(x) add0 = add(abs0, y) mul0 = mul(add0, abs0) sub0 = sub(mul0, y) return sub0 }";

TEST(ImprovePrecision, R1_AbsAddMulSub) {  // P-22
  const std::string t = ir(kChain);
  for (const char* op : {"abs %", "add %", "mul %", "sub %"}) {
    const std::size_t at = t.find(std::string("= ") + op);
    ASSERT_NE(at, std::string::npos) << t;
    EXPECT_NE(t.substr(at, t.find('\n', at) - at).find(": f32"), std::string::npos) << t;
  }
  EXPECT_EQ(count(t, "= cast"), 3) << t;                              // one after each load, one before the store
  EXPECT_EQ(count(t, ": f16\n") + count(t, ": f16  #"), 4 + 3) << t;  // three buffers and the store; two loads, one cast
}

TEST(ImprovePrecision, R1_PassOrder) {  // P-18
  const auto dumps = codegen::generate(parse_graph(std::string("graph g(") + kChain), "k", {}).dumps;
  ASSERT_GE(dumps.size(), 2u);
  EXPECT_EQ(dumps[0].first, "lower");
  EXPECT_EQ(dumps[1].first, "improve_precision");
  EXPECT_EQ(count(dumps[0].second, "= cast"), 0) << dumps[0].second;
}

TEST(ImprovePrecision, R5_MovesUntouched) {  // P-16
  const std::string t = ir("x: f16[8, 64]) { a = permute(x, dims=[1, 0]) b = copy(a) return b }");
  EXPECT_EQ(count(t, "cast"), 0) << t;
  EXPECT_EQ(count(t, "f32"), 0) << t;
}

// torch.full([1], 0.1, dtype=torch.bfloat16).item() is 0.10009765625, torch.full([1], 2049, dtype=torch.float16).item() 2048.
TEST(ImprovePrecision, R4_ACreatedTensorHoldsValuesOfItsDtype) {
  const std::string t = ir("x: f32[8]) { c = full(dtype=bf16, shape=[8], value=0.1) b = mul(x, c) return b }");
  EXPECT_NE(t.find("const 0.10009765625: f32"), std::string::npos) << t;
  EXPECT_NE(ir("x: f32[8]) { c = full(dtype=f16, shape=[8], value=2049) b = mul(x, c) return b }").find("const 2048"),
            std::string::npos);
  // A number beside a tensor is no tensor: it enters in the compute type (R8).
  EXPECT_NE(ir("x: bf16[8]) { b = mul(x, 0.1) return b }").find("const 0.1: f32"), std::string::npos);
  const std::string steps = ir("x: f32[8]) { c = iota(size=8, start=0.1, step=0.3, dtype=bf16) b = mul(x, c) return b }");
  EXPECT_EQ(count(steps, ": bf16"), 1) << steps;
}

TEST(ImprovePrecision, R2_UserCastsStay) {
  const std::string t = ir("x: f32[64]) { a = cast(x, dtype=bf16) b = cast(a, dtype=f32) c = mul(b, 3.0) return c }");
  EXPECT_EQ(count(t, "bf16"), 1) << t;
  EXPECT_EQ(count(t, "= cast"), 2) << t;
}

TEST(ImprovePrecision, R3_DecisionsSeeRoundedValues) {
  const std::string t = ir("x: f16[64], y: f16[64]) { a = mul(x, 0.3) c = eq(a, y) return c }");
  const std::size_t eq = t.find("= eq"), mul = t.find("= mul");
  ASSERT_NE(eq, std::string::npos);
  const std::string between = t.substr(mul, eq - mul);
  EXPECT_NE(between.find(": f16"), std::string::npos) << t;  // rounded to f16 on the way to the comparison
}

TEST(OneValue, R4_StoredAndUsed) {
  const std::string t = ir("x: f16[64]) { a = mul(x, 0.3) b = exp(a) return a, b }");
  const std::size_t mul = t.find("= mul"), exp = t.find("= exp");
  ASSERT_NE(exp, std::string::npos);
  EXPECT_NE(t.substr(mul, exp - mul).find(": f16"), std::string::npos) << t;
}

TEST(ImprovePrecision, R10_EagerRoundsEveryResult) {
  EXPECT_EQ(count(ir(kChain, eager()), ": f16  #") + count(ir(kChain, eager()), ": f16\n"), 3 + 2 + 4 + 1);
  // A composite rounds at its end only.
  const std::string t = ir("x: f16[8, 64]) { a = softmax(x, dim=1) return a }", eager());
  EXPECT_EQ(count(t, "= cast"), 2) << t;
}

TEST(ImprovePrecision, R9_MixedBlocks) {  // P-25
  codegen::Options o;
  o.keep_dtype = {"mul"};
  const std::string t = ir(kChain, o);
  EXPECT_EQ(count(t, "# mul0"), 3) << t;  // the product, its rounding, the way back
  EXPECT_EQ(count(t, "# abs0"), 1) << t;
  EXPECT_EQ(count(t, "# add0"), 1) << t;
}

TEST(ImprovePrecision, R6_SumIsAlwaysPromoted) {  // P-27
  codegen::Options o;
  o.keep_dtype = {"sum"};
  const std::string body = "x: f16[8, 64], y: f16[8]) { a = sum(x, dims=[1]) b = mul(a, y) return b }";
  EXPECT_EQ(ir(body, o), ir(body));
}

TEST(ImprovePrecision, IntegersStayIntegers) {
  const std::string t = ir("x: i32[64], y: i32[64]) { a = add(x, y) c = lt(a, y) return c }");
  EXPECT_EQ(count(t, "f32") + count(t, "f64"), 0) << t;
}

}  // namespace
}  // namespace fuselab
