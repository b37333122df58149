// The table as data: names, recipes and meanings fit together; special values hold for the fp64 meanings.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/ops/op.h"
#include "fuselab/ops/recipe.h"

namespace fuselab::ops {
namespace {

Attrs defaults(const Op& op) {
  Attrs attrs;
  for (const AttrSpec& a : op.attrs) {
    if (a.fallback)
      attrs[a.name] = *a.fallback;
    else if (a.type == AttrType::dtype)
      attrs[a.name] = DType::f32;
    else if (a.type == AttrType::integer)
      attrs[a.name] = std::int64_t{0};
    else if (a.type == AttrType::scalar)
      attrs[a.name] = 1.0;
  }
  return attrs;
}

/// promote_float turns integers into f32 before the recipe sees them.
bool reached(const Op& op, DType t) { return has_meaning(op, t) && (is_float(t) || op.type != TypeRule::promote_float); }

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b); }

void collect_names(const RecipeNode& n, std::set<std::string>& into) {
  EXPECT_NE(n.kind, RecipeNode::Kind::text);
  if (n.kind == RecipeNode::Kind::name) into.insert(n.word);
  if (n.kind == RecipeNode::Kind::call) {
    EXPECT_NE(n.word, "if");
    EXPECT_NE(n.word, "narrow");
  }
  for (const RecipeNode& a : n.args) collect_names(a, into);
}

TEST(OpTable, NamesAreUniqueAndFound) {
  std::set<std::string> seen;
  for (const Op& op : table()) {
    EXPECT_TRUE(seen.insert(op.name).second) << op.name;
    EXPECT_EQ(find(op.name), &op);
    EXPECT_EQ(static_cast<int>(op.more.size()) + 1, op.results) << op.name;
    EXPECT_FALSE(op.doc.empty()) << op.name;
  }
  EXPECT_GE(table().size(), 120u);
  EXPECT_EQ(find("no_such"), nullptr);
  EXPECT_EQ(find_any_case("realdiv"), find("div"));
  EXPECT_EQ(find_any_case("SOFTMAXV2"), find("softmax"));
  EXPECT_EQ(find_aten("add.Scalar"), find("add"));
  EXPECT_EQ(find_aten_all("clamp.default").size(), 3u);
}

TEST(OpTable, RecipesAreClosedAndMeaningsPresent) {
  for (const Op& op : table()) {
    if (op.kind == Kind::view || op.kind == Kind::extern_) continue;
    for (int i = 0; i < kDTypeCount; ++i) {
      const DType t = static_cast<DType>(i);
      if (is_low_precision(t) || !reached(op, t)) continue;
      SCOPED_TRACE(op.name + " " + std::string(name(t)));
      const bool pointwise = is_float(t) ? op.fp64 != nullptr : op.exact != nullptr;
      const bool row = is_float(t) ? op.fp64_row != nullptr : op.exact_row != nullptr;
      EXPECT_TRUE(op.kind == Kind::pointwise ? pointwise : op.kind == Kind::create || row);
      for (const bool optionals : {false, true}) {
        std::vector<ArgState> args;
        std::set<std::string> known = {"N", "index"};
        for (const ArgSpec& a : op.args) {
          args.push_back({!a.optional || optionals, std::nullopt});
          if (args.back().present) known.insert(a.name);
        }
        const Recipe r = instantiate(op, args, defaults(op), t);
        EXPECT_EQ(static_cast<int>(r.results.size()), op.results);
        std::set<std::string> used;
        for (const RecipeStatement& s : r.statements) {
          std::set<std::string> here;
          collect_names(s.value, here);
          for (const std::string& n : here) EXPECT_TRUE(known.count(n)) << n << " in " << print(r);
          EXPECT_TRUE(known.insert(s.name).second) << s.name << " in " << print(r);
        }
        for (const RecipeNode& n : r.results) collect_names(n, used);
        for (const std::string& n : used) EXPECT_TRUE(known.count(n)) << n << " in " << print(r);
      }
    }
  }
}

TEST(OpTable, SpecialValuesHoldForTheFp64Meaning) {
  int rows = 0;
  for (const Op& op : table()) {
    for (const Special& s : op.special) {
      ASSERT_EQ(s.in.size(), op.args.size()) << op.name << ": " << s.note;
      ASSERT_EQ(s.out.size(), 1u) << op.name << ": " << s.note;
      const double got = op.fp64(s.in, defaults(op));
      EXPECT_TRUE(same(got, s.out[0])) << op.name << ": " << s.note << ", got " << got;
      ++rows;
    }
  }
  EXPECT_GT(rows, 300);
}

TEST(Recipe, PrintsWhatItParsed) {
  for (const Op& op : table()) {
    for (const std::string& text : {op.lower, op.lower_int, op.lower_bool}) {
      if (text.empty() || text == "-") continue;
      const std::string once = print(parse_recipe(text));
      EXPECT_EQ(print(parse_recipe(once)), once) << op.name;
    }
  }
  EXPECT_EQ(print(parse_recipe("a-(b-c)*-d<=2&x|!y")), "a - (b - c) * -d <= 2 & x | !y");
  EXPECT_EQ(print(parse_recipe("m=rmax(x);e = exp(x-m); e/rsum(e), m")), "m = rmax(x); e = exp(x - m); e / rsum(e), m");
}

TEST(Recipe, ErrorsNameTheColumn) {
  for (const char* bad : {"", "a +", "f(a", "(a", "a = b", "1.2.3", "\"x", "a b", "@", "if(", "a;b"}) {
    try {
      parse_recipe(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "ops.recipe");
      EXPECT_NE(std::string(e.what()).find("column"), std::string::npos);
    }
  }
}

TEST(Recipe, InstantiationDecides) {
  const Op& pow = *find("pow");
  const auto text = [&](std::optional<Scalar> exponent, DType t) {
    return print(instantiate(pow, {{true, std::nullopt}, {true, std::move(exponent)}}, {}, t));
  };
  EXPECT_EQ(text(std::int64_t{2}, DType::f32), "self * self");
  EXPECT_EQ(text(0.5, DType::f32), "sqrt(self)");
  EXPECT_EQ(text(-0.5, DType::f64), "rsqrt(self)");
  EXPECT_EQ(text(std::nullopt, DType::f32), "pow(self, exponent)");
  EXPECT_EQ(text(std::int64_t{3}, DType::i32), "ipow(self, exponent)");
  EXPECT_THROW(text(std::nullopt, DType::boolean), Error);
  const Op& var = *find("var");
  EXPECT_EQ(print(instantiate(var, {{}}, defaults(var), DType::f32)),
            "m = rsum64(self) / cast_f64(N); d = self - m; e = d; v = rsum64(e * e) / max(cast_f64(N) - 1, 0.0); cast_f32(v)");
}

}  // namespace
}  // namespace fuselab::ops
