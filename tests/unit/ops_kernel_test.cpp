// The operators as kernels: special values bit by bit, unary functions over every f16 and bf16 value.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fuselab/core/error.h"
#include "fuselab/ops/op.h"
#include "fuselab/runtime/compiled.h"

namespace fuselab::ops {
namespace {

Attrs defaults(const Op& op) {
  Attrs attrs;
  for (const AttrSpec& a : op.attrs) {
    if (a.fallback) attrs[a.name] = *a.fallback;
  }
  return attrs;
}

bool wants_bool(const Op& op, std::size_t arg) {
  return (op.name == "where" && arg == 0) || (op.name == "masked_fill" && arg == 1);
}

/// A graph of one operator over [n, 1] (channels: [1]); the types of all arguments but masks are t.
Graph one_operator(const Op& op, DType t, std::int64_t n) {
  Graph g;
  g.name = "one";
  std::vector<Operand> args;
  for (std::size_t i = 0; i < op.args.size(); ++i) {
    Type type{wants_bool(op, i) ? DType::boolean : t, {Expr(n), Expr(1)}, {}};
    if (op.args[i].channel) type.sizes = {Expr(1)};
    args.emplace_back(g.add_input("x" + std::to_string(i), type));
  }
  g.outputs = {g.add(op.name, args, defaults(op), {"y"})};
  return g;
}

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }

bool exact_in(DType t, double v) {
  Tensor probe(t, {1});
  probe.set(0, v);
  return same(probe.get(0), v);
}

class SpecialValues : public testing::TestWithParam<DType> {};

TEST_P(SpecialValues, AreExactInVectorBodyAndTail) {
  constexpr std::int64_t kCount = 19;  // a full vector of 16 lanes and a tail
  for (const Op& op : table()) {
    if (op.special.empty() || (GetParam() == DType::f64 && op.lower == "-")) continue;
    SCOPED_TRACE(op.name);
    std::unique_ptr<runtime::CompiledGraph> compiled;
    try {
      compiled = std::make_unique<runtime::CompiledGraph>(one_operator(op, GetParam(), kCount));
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
      continue;
    }
    for (const Special& s : op.special) {
      const auto representable = [&](double v) { return exact_in(GetParam(), v); };
      if (!std::all_of(s.in.begin(), s.in.end(), representable) || !std::all_of(s.out.begin(), s.out.end(), representable))
        continue;
      std::vector<Tensor> inputs;
      for (std::size_t i = 0; i < s.in.size(); ++i) {
        const std::int64_t n = op.args[i].channel ? 1 : kCount;
        std::vector<std::int64_t> sizes = {n};
        if (!op.args[i].channel) sizes.push_back(1);
        inputs.push_back(Tensor::of(wants_bool(op, i) ? DType::boolean : GetParam(), sizes,
                                    std::vector<double>(static_cast<std::size_t>(n), s.in[i])));
      }
      const Tensor out = (*compiled)(inputs).at(0);
      for (const std::int64_t at : {std::int64_t{0}, kCount - 1})
        EXPECT_TRUE(same(out.get(at), s.out[0])) << s.note << ": got " << out.get(at) << " at " << at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SpecialValues, testing::Values(DType::f32, DType::f64, DType::f16, DType::bf16),
                         [](const auto& info) { return std::string(name(info.param)); });

class EveryValue : public testing::TestWithParam<DType> {};

/// The f32 result is rounded once more, so a value within the f32 error of a tie may go either way: a handful of the 2^16.
bool nearly_tied(DType t, double got, double exact, double ulp) {
  if (std::isnan(got) || std::isnan(exact)) return false;
  const bool half = t == DType::f16;
  const int exponent = std::max(exact == 0 ? -1000 : std::ilogb(exact), half ? -14 : -126);
  const double spacing = std::ldexp(1.0, exponent - (half ? 10 : 7));
  return std::fabs(got - exact) <= spacing * (0.5 + ulp * (half ? 0x1p-13 : 0x1p-16));
}

/// f16 and bf16 results are the correctly rounded ones, but for ties in f32.
TEST_P(EveryValue, OfAUnaryFunctionIsCorrectlyRounded) {
  Tensor x(GetParam(), {65536, 1});
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    std::memcpy(x.at(i), &bits, 2);
  }
  for (const Op& op : table()) {
    const bool plain =
        op.kind == Kind::pointwise && op.args.size() == 1 && op.lower != "-" && op.name != "cast" && op.name != "threshold";
    if (!plain) continue;
    SCOPED_TRACE(op.name);
    Tensor y;
    try {
      y = runtime::CompiledGraph(one_operator(op, GetParam(), 65536))({x}).at(0);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
      continue;
    }
    int wrong = 0, tied = 0;
    double first = 0, got = 0, wanted = 0;
    for (int i = 0; i < 65536; ++i) {
      const double argument = x.get(i);
      Tensor want(y.dtype(), {1});
      const double exact = op.fp64(std::span<const double>(&argument, 1), defaults(op));
      want.set(0, exact);
      if (same(y.get(i), want.get(0))) continue;
      if (is_float(y.dtype()) && nearly_tied(y.dtype(), y.get(i), exact, op.ulp)) {
        // Not counted: the sign of a result that underflows in f32 already, and the two sides of what is a tie in fp64 (gelu of
        // subnormals; tests/python/test_every_16_bit_value.py knows the exact side).
        tied += std::fabs(y.get(i) - exact) != std::fabs(want.get(0) - exact) ? 1 : 0;
        continue;
      }
      if (wrong++ == 0) first = argument, got = y.get(i), wanted = want.get(0);
    }
    EXPECT_EQ(wrong, 0) << "first at " << first << ": " << got << ", should be " << wanted;
    EXPECT_LE(tied, 12);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, EveryValue, testing::Values(DType::f16, DType::bf16),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace fuselab::ops
