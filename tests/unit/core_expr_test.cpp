#include "fuselab/core/expr.h"

#include <gtest/gtest.h>
#ifdef FUSELAB_HAVE_RAPIDCHECK
#include <rapidcheck/gtest.h>
#endif

#include <string>

namespace fuselab {
namespace {

Expr e(const char* text) { return Expr::parse(text); }

std::string code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code();
  }
  return "";
}

TEST(Expr, CanonicalForm) {
  const Expr B = Expr::symbol("B"), C = Expr::symbol("C");
  EXPECT_EQ((B * 4 + B * 4).str(), "8*B");
  EXPECT_EQ((C * B + B * C + 1).str(), "2*B*C + 1");
  EXPECT_EQ((B - B).str(), "0");
  EXPECT_EQ(((B + 1) * (B - 1)).str(), "B*B - 1");
  EXPECT_EQ((B * -1 + 3).str(), "-B + 3");
  EXPECT_EQ(B + C, C + B);
  EXPECT_TRUE(B.is_symbol());
  EXPECT_FALSE((B * 2).is_symbol());
  EXPECT_EQ(product({}).value(), 1);
  EXPECT_EQ(product({B, 2, C}).str(), "2*B*C");
}

TEST(Expr, DivisionSimplifies) {
  EXPECT_EQ(floordiv(e("4*B*C"), e("2*C")).str(), "2*B");
  EXPECT_EQ(floordiv(e("4*B + 3"), 4).str(), "B");
  EXPECT_EQ(floordiv(e("4*B + 7"), 4).str(), "B + 1");
  EXPECT_EQ(floordiv(e("2*B + 2"), 4).str(), "floordiv(B + 1, 2)");
  EXPECT_EQ(floordiv(floordiv(e("B"), 3), 5).str(), "floordiv(B, 15)");
  EXPECT_EQ(floordiv(floordiv(e("B"), e("C")), e("D")).str(), "floordiv(B, C*D)");
  EXPECT_EQ(floordiv(mod(e("B"), 4), 4).str(), "0");
  EXPECT_EQ(mod(e("6*B + 5"), 3).str(), "2");
  EXPECT_EQ(mod(e("5*B + 7"), 4).str(), "mod(B + 3, 4)");
  EXPECT_EQ(mod(e("B*C + D"), e("C")).str(), "mod(D, C)");
  EXPECT_EQ(mod(mod(e("B"), 4), 8).str(), "mod(B, 4)");
  EXPECT_EQ(mod(mod(e("B"), 8), 4).str(), "mod(B, 4)");
  EXPECT_EQ(min(e("B + 3"), e("B")).str(), "B");
  EXPECT_EQ(max(e("B"), e("-2")).str(), "B");
  EXPECT_EQ(min(e("B"), e("4")), min(e("4"), e("B")));
}

TEST(Expr, ExactDivision) {
  Expr q;
  EXPECT_TRUE(exact_div(e("(B + 1)*(C + 2)*3"), e("C + 2"), q));
  EXPECT_EQ(q, e("3*B + 3"));
  EXPECT_TRUE(exact_div(0, e("B"), q));
  EXPECT_TRUE(q.is(0));
  EXPECT_FALSE(exact_div(e("3*B"), 2, q));
  EXPECT_FALSE(exact_div(e("B + 1"), e("B"), q));
  EXPECT_FALSE(exact_div(e("B"), 0, q));
}

TEST(Expr, Errors) {
  EXPECT_EQ(code_of([] { e("B").value(); }), "expr.not_constant");
  EXPECT_EQ(code_of([] { e("B").eval({}); }), "expr.unbound");
  EXPECT_EQ(code_of([] { e("B*B").eval({{"B", INT64_C(1) << 32}}); }), "expr.overflow");
  EXPECT_EQ(code_of([] { e("floordiv(3, B)").eval({{"B", 0}}); }), "expr.div_zero");
  EXPECT_EQ(code_of([] { e("B // 0"); }), "expr.div_zero");
  EXPECT_EQ(code_of([] { Expr(INT64_MAX) + 1; }), "expr.overflow");
  EXPECT_EQ(code_of([] { Expr(INT64_MIN) * -1; }), "expr.overflow");
  EXPECT_EQ(code_of([] { floordiv(Expr(INT64_MIN), -1); }), "expr.overflow");
  EXPECT_EQ(code_of([] { Expr::symbol("2x"); }), "expr.symbol");
  EXPECT_EQ(code_of([] { Expr::symbol("min"); }), "expr.symbol");
  for (const char* text : {"", "B +", "(B", "B)", "1.5", "B/2", "min(B)", "9223372036854775808", "B C", "*", "mod", "--"}) {
    EXPECT_EQ(code_of([&] { e(text); }), "expr.syntax") << text;
  }
  EXPECT_EQ(code_of([] { e((std::string(100000, '(') + "B").c_str()); }), "expr.syntax");
  EXPECT_EQ(code_of([] { e(std::string(100000, '-').c_str()); }), "expr.syntax");
  EXPECT_EQ(e("-9223372036854775808").value(), INT64_MIN);
}

TEST(Expr, GrowthEnds) {
  EXPECT_EQ(code_of([] {
              Expr x = Expr::symbol("a") + Expr::symbol("b") + 1;
              for (int i = 0; i < 40; ++i) x = x * x;
            }),
            "expr.too_large");
  EXPECT_EQ(code_of([] {
              Expr x = Expr::symbol("a");
              for (int i = 0; i < 200; ++i) x = min(floordiv(x * x + 1, 3), mod(x, 7) + 2);
            }),
            "expr.too_large");
}

TEST(Expr, CppText) {
  const auto rename = [](const std::string& s) { return "s_" + s; };
  EXPECT_EQ(e("2*B + 1").cpp(rename), "2 * s_B + 1");
  EXPECT_EQ(e("floordiv(B + 3, 4)").cpp(rename), "((s_B + 3) / (4))");
  EXPECT_EQ(e("B*C - 2*D").cpp(rename), "s_B * s_C + (-2) * s_D");
}

#ifdef FUSELAB_HAVE_RAPIDCHECK
/// A random expression as text, beside what Python's // and % (rounding down) make of it.
struct Case {
  std::string text;
  __int128 value = 0;
  bool defined = true;
};

Case random_case(int depth, const std::map<std::string, std::int64_t>& env) {
  const int kind = depth == 0 ? *rc::gen::inRange(0, 2) : *rc::gen::inRange(0, 9);
  if (kind == 0) {
    const int v = *rc::gen::inRange(-6, 13);
    return {std::to_string(v), v};
  }
  if (kind == 1) {
    const std::string s(1, "abc"[*rc::gen::inRange(0, 3)]);
    return {s, env.at(s)};
  }
  const Case x = random_case(depth - 1, env), y = random_case(depth - 1, env);
  Case r;
  r.defined = x.defined && y.defined;
  const auto text = [&](const char* op) { return "(" + x.text + ")" + op + "(" + y.text + ")"; };
  switch (kind) {
    case 2:
      r.text = text(" + "), r.value = x.value + y.value;
      break;
    case 3:
      r.text = text(" - "), r.value = x.value - y.value;
      break;
    case 4:
    case 5:
      r.text = text(" * "), r.value = x.value * y.value;
      break;
    case 6:
    case 7: {
      r.text = text(kind == 6 ? " // " : " % ");
      if (!r.defined || y.value == 0) {
        r.defined = false;
        break;
      }
      __int128 q = x.value / y.value, m = x.value % y.value;
      if (m != 0 && (m < 0) != (y.value < 0)) --q, m += y.value;
      r.value = kind == 6 ? q : m;
      break;
    }
    default: {
      const bool least = *rc::gen::arbitrary<bool>();
      r.text = (least ? "min(" : "max(") + x.text + ", " + y.text + ")";
      r.value = least ? std::min(x.value, y.value) : std::max(x.value, y.value);
    }
  }
  return r;
}

RC_GTEST_PROP(ExprProperty, ValueAndTextSurvive, ()) {
  // Sizes of at least 1: a divisor is taken to be non-zero, so x // x may have become 1.
  const std::map<std::string, std::int64_t> env = {
      {"a", *rc::gen::inRange(1, 9)}, {"b", *rc::gen::inRange(1, 9)}, {"c", *rc::gen::inRange(1, 100)}};
  const Case c = random_case(4, env);
  RC_PRE(c.defined && c.value < (INT64_C(1) << 40) && c.value > -(INT64_C(1) << 40));
  try {
    const Expr x = Expr::parse(c.text);
    RC_ASSERT(x.eval(env) == static_cast<std::int64_t>(c.value));
    RC_ASSERT(Expr::parse(x.str()).str() == x.str());
    std::map<std::string, Expr> numbers;
    for (const auto& [k, v] : env) numbers.emplace(k, v);
    RC_ASSERT(x.substitute(numbers).value() == static_cast<std::int64_t>(c.value));
    if (x.non_negative()) RC_ASSERT(c.value >= 0);
    if (x.positive()) RC_ASSERT(c.value > 0);
  } catch (const Error& error) {
    // A divisor that is 0 for these sizes cannot be here (c.defined), one that is 0 for all sizes can.
    RC_ASSERT(error.code() == "expr.too_large" || error.code() == "expr.overflow");
  }
}

RC_GTEST_PROP(ExprProperty, NeverCrashesOnText, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab01 +-*/%(),mindoflrx")));
  try {
    Expr::parse(text);
  } catch (const Error&) {
  }
}

#endif  // FUSELAB_HAVE_RAPIDCHECK

}  // namespace
}  // namespace fuselab
