// The rules of docs/precision.md as statements of kernel IR: where values are rounded, and where they are not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fuselab/codegen/codegen.h"
#include "fuselab/graph/text.h"
#include "fuselab/kernel/ir.h"
#include "fuselab/runtime/compiled.h"

namespace fuselab::kernel {
namespace {

/// The kernel that a whole graph becomes, after all passes but the schedule.
Kernel kernel_of(const std::string& graph, codegen::Options options = {}) {
  return parse_kernel(codegen::generate(parse_graph(graph), "k", options).kernel_ir, "k.ir");
}

std::vector<const Stmt*> all(const Kernel& k, StmtKind kind, const std::string& op = "") {
  std::vector<const Stmt*> found;
  for (const Stmt& s : k.stmts) {
    if (s.kind == kind && (op.empty() || s.op == op)) found.push_back(&s);
  }
  return found;
}

const Stmt& only(const Kernel& k, StmtKind kind, const std::string& op = "") {
  const auto found = all(k, kind, op);
  EXPECT_EQ(found.size(), 1u) << print_kernel(k);
  return *found.at(0);
}

const Stmt& argument(const Kernel& k, const Stmt& s, int i = 0) { return k.stmts[s.args.at(i)]; }

bool is_cast(const Stmt& s, DType to) { return s.kind == StmtKind::cast && s.type == to; }

/// Is argument `i` of `s` an f32 that was rounded to `to` and taken back?
bool reads_rounded(const Kernel& k, const Stmt& s, DType to, int i = 0) {
  const Stmt& a = argument(k, s, i);
  if (a.type == to) return true;
  return is_cast(a, DType::f32) && argument(k, a).type == to;
}

TEST(PrecisionPasses, EverythingBetweenLoadAndStoreIsF32) {
  for (const auto& [name, low] : {std::pair{"f16", DType::f16}, std::pair{"bf16", DType::bf16}}) {
    const std::string t = name;
    const Kernel k = kernel_of("graph g(x: " + t + "[8], y: " + t +
                               "[8]) {\n a = abs(x)\n b = add(a, y)\n c = mul(b, y)\n d = sub(c, x)\n return d\n}");
    for (const Stmt* load : all(k, StmtKind::load)) EXPECT_EQ(load->type, low);
    std::vector<std::string> ops;
    for (const Stmt& s : k.stmts) {
      if (s.kind == StmtKind::compute) {
        EXPECT_EQ(s.type, DType::f32) << print_kernel(k);
        ops.push_back(s.op);
      }
      if (s.kind != StmtKind::load && s.kind != StmtKind::store) {
        for (int a : s.args) {
          if (k.stmts[a].kind == StmtKind::load) EXPECT_TRUE(is_cast(s, DType::f32)) << print_kernel(k);
        }
      }
    }
    EXPECT_EQ(ops, (std::vector<std::string>{"abs", "add", "mul", "sub"}));
    EXPECT_TRUE(is_cast(argument(k, only(k, StmtKind::store)), low));
    EXPECT_EQ(all(k, StmtKind::cast).size(), 3u);  // two loads, one store; nothing in between
  }
}

TEST(PrecisionPasses, OtherTypesAreLeftAlone) {
  for (const char* type : {"f32", "f64", "i32", "i64", "u8"}) {
    const std::string t = type;
    const Kernel k = kernel_of("graph g(x: " + t + "[8], y: " + t + "[8]) {\n a = add(x, y)\n b = mul(a, y)\n return b\n}");
    EXPECT_TRUE(all(k, StmtKind::cast).empty()) << print_kernel(k);
    for (const Stmt& s : k.stmts) EXPECT_EQ(name(s.type), t);
  }
  // 2^24 and 2^24 + 1 are one value in f32.
  EXPECT_TRUE(all(kernel_of("graph g(x: i32[8], y: i32[8]) { a = lt(x, y) return a }"), StmtKind::cast).empty());
}

TEST(PrecisionPasses, UserCastsStay) {
  const Kernel k = kernel_of(
      "graph g(x: f32[8]) {\n a = mul(x, x)\n b = cast(a, dtype=bf16)\n c = cast(b, dtype=f32)\n d = add(c, x)\n return d\n}");
  EXPECT_TRUE(reads_rounded(k, only(k, StmtKind::compute, "add"), DType::bf16)) << print_kernel(k);
}

TEST(PrecisionPasses, DecisionsSeeRoundedValues) {
  const std::string head = "graph g(x: f16[4, 8]) {\n a = mul(x, x)\n b = mul(a, x)\n";
  const Kernel compare = kernel_of(head + " c = gt(b, 0.5)\n return c\n}");
  EXPECT_TRUE(reads_rounded(compare, only(compare, StmtKind::compute, "gt"), DType::f16)) << print_kernel(compare);
  const Kernel largest = kernel_of(head + " c = argmax(b, dims=[1])\n return c\n}");
  EXPECT_TRUE(reads_rounded(largest, only(largest, StmtKind::reduce, "argmax"), DType::f16)) << print_kernel(largest);
  const Kernel whole = kernel_of(head + " c = cast(b, dtype=i32)\n return c\n}");
  bool found = false;
  for (const Stmt* s : all(whole, StmtKind::cast))
    found = found || (s->type == DType::i32 && reads_rounded(whole, *s, DType::f16));
  EXPECT_TRUE(found) << print_kernel(whole);
  // The two products are not decisions: nothing is rounded between them.
  for (const Stmt* s : all(compare, StmtKind::compute, "mul")) {
    for (int i : {0, 1}) EXPECT_FALSE(is_cast(argument(compare, *s, i), DType::f16));
  }
}

TEST(PrecisionPasses, AStoredValueIsTheValueUsedInside) {
  const Kernel k = kernel_of("graph g(x: f16[8], y: f16[8]) {\n s = add(x, y)\n t = mul(s, y)\n return s, t\n}");
  const Stmt& stored = argument(k, *all(k, StmtKind::store).at(0));
  ASSERT_TRUE(is_cast(stored, DType::f16)) << print_kernel(k);
  const Stmt& used = argument(k, only(k, StmtKind::compute, "mul"));
  ASSERT_TRUE(is_cast(used, DType::f32)) << print_kernel(k);
  EXPECT_EQ(&argument(k, used), &stored) << print_kernel(k);
}

TEST(PrecisionPasses, MovesStayInTheirOwnType) {
  const Kernel move = kernel_of("graph g(x: f16[4, 8]) {\n t = permute(x, dims=[1, 0])\n c = copy(t)\n return c\n}");
  EXPECT_TRUE(all(move, StmtKind::cast).empty()) << print_kernel(move);
  // Beside arithmetic on the same input: the copy still has no cast.
  const Kernel both = kernel_of("graph g(x: f16[8]) {\n c = copy(x)\n y = add(x, 1)\n return c, y\n}");
  const Stmt& store = *all(both, StmtKind::store).at(0);
  EXPECT_EQ(argument(both, store).kind, StmtKind::load) << print_kernel(both);
}

TEST(PrecisionPasses, ConstantsHaveTheComputeType) {
  EXPECT_EQ(only(kernel_of("graph g(x: f16[8]) { y = mul(x, 0.1) return y }"), StmtKind::constant).type, DType::f32);
  EXPECT_EQ(only(kernel_of("graph g(x: f64[8]) { y = mul(x, 0.1) return y }"), StmtKind::constant).type, DType::f64);
  EXPECT_EQ(only(kernel_of("graph g(x: i64[8]) { y = mul(x, 3) return y }"), StmtKind::constant).type, DType::i64);
  // 10 * 0.1 is 1 in f16 when 0.1 enters as f32, as in PyTorch; 0.1 rounded to f16 first would give 0.99976.
  const runtime::CompiledGraph f(parse_graph("graph g(x: f16[1]) { y = mul(x, 0.1) return y }"));
  Tensor x(DType::f16, {1});
  x.set(0, 10.0);
  EXPECT_EQ(f({x})[0].get(0), 1.0);
}

TEST(PrecisionPasses, KeptOperatorsRoundAfterThemselves) {
  const std::string graph = "graph g(x: f16[8]) {\n a = mul(x, x)\n b = add(a, x)\n c = sub(b, x)\n return c\n}";
  codegen::Options options;
  options.keep_dtype = {"mul"};
  const Kernel k = kernel_of(graph, options);
  EXPECT_TRUE(reads_rounded(k, only(k, StmtKind::compute, "add"), DType::f16)) << print_kernel(k);
  EXPECT_FALSE(reads_rounded(k, only(k, StmtKind::compute, "sub"), DType::f16)) << print_kernel(k);
  // Sums stay promoted, whatever the list says (R6).
  options.keep_dtype = {"all"};
  const Kernel sum = kernel_of("graph g(x: f16[4, 8]) {\n s = sum(x, dims=[1])\n return s\n}", options);
  EXPECT_EQ(only(sum, StmtKind::reduce).type, DType::f32) << print_kernel(sum);
}

TEST(PrecisionPasses, EagerModeRoundsAfterEveryOperator) {
  codegen::Options options;
  options.precision = codegen::Precision::eager;
  const Kernel k = kernel_of("graph g(x: f16[8]) {\n a = mul(x, x)\n b = add(a, x)\n c = sub(b, x)\n return c\n}", options);
  EXPECT_TRUE(reads_rounded(k, only(k, StmtKind::compute, "add"), DType::f16)) << print_kernel(k);
  EXPECT_TRUE(reads_rounded(k, only(k, StmtKind::compute, "sub"), DType::f16)) << print_kernel(k);
}

TEST(PrecisionPasses, SumOfTwoToThe25OnesIsExact) {
  const runtime::CompiledGraph f(
      parse_graph("graph g(x: f32[1]) {\n e = expand(x, shape=[33554432])\n s = sum(e)\n return s\n}"));
  Tensor x(DType::f32, {1});
  x.set(0, 1.0);
  EXPECT_EQ(f({x})[0].get(0), 33554432.0);
}

}  // namespace
}  // namespace fuselab::kernel
