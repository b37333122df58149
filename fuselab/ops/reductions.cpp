// Rows: reductions to one element.
#include <algorithm>

#include "fuselab/ops/row_math.h"

namespace fuselab::ops {
namespace {

/// Index of the first element `better` than all before it; the first NaN wins over everything.
template <typename T, typename Better>
std::size_t best(std::span<const T> x, Better better) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] != x[i]) return i;
    if (better(x[i], x[at])) at = i;
  }
  return at;
}
template <typename T>
std::size_t largest(std::span<const T> x) {
  return best(x, [](T a, T b) { return a > b; });
}
template <typename T>
std::size_t smallest(std::span<const T> x) {
  return best(x, [](T a, T b) { return a < b; });
}

/// max.dim and min.dim: the value and its index along one dimension.
Row extreme_with_index(std::string name, const std::string& aten) {
  return Row(std::move(name), Kind::reduce, "self!")
      .type(TypeRule::first)
      .shape(ShapeRule::reduce, ReduceDims::attr_dim)
      .attr("dim", AttrType::integer)
      .attr("keepdim", AttrType::boolean, false)
      .result("indices", TypeRule::index, ShapeRule::reduce)
      .ulp(0)
      .decides()
      .aten(aten);
}

}  // namespace

void add_reductions(std::vector<Op>& t) {
  reduction("sum", "self!")
      .type(TypeRule::int_sum)
      .lower("rsum(self)")
      .fp64_row([](DRows a, DOut r, A) { r[0][0] = sum_of(a[0].size(), [&](std::size_t i) { return a[0][i]; }); })
      .exact_row([](IRows a, IOut r, A) {
        std::int64_t s = 0;
        for (std::int64_t v : a[0]) s = wrap_add(s, v);
        r[0][0] = s;
      })
      .aten("sum.default, sum.dim_IntList, prims::sum.default")
      .names("ReduceSum", "ReduceSum", "ReduceSum")
      .doc("Sum; integers and bool are summed in i64. A fixed pairwise order, so the error grows with log n.", t);
  reduction("mean", "self!")
      .type(TypeRule::promote)
      .lower("rsum(self) / N")
      .lower_int("-")
      .fp64_row([](DRows a, DOut r, A) {
        r[0][0] = sum_of(a[0].size(), [&](std::size_t i) { return a[0][i]; }) / static_cast<double>(a[0].size());
      })
      .ulp(1)
      .aten("mean.default, mean.dim")
      .names("ReduceMean", "ReduceMean", "ReduceMean")
      .doc("Arithmetic mean; NaN for no elements.", t);
  reduction("prod", "self!")
      .type(TypeRule::int_sum)
      .lower("rprod(self)")
      .fp64_row([](DRows a, DOut r, A) {
        long double p = 1;
        for (double v : a[0]) p *= v;
        r[0][0] = static_cast<double>(p);
      })
      .exact_row([](IRows a, IOut r, A) {
        std::int64_t p = 1;
        for (std::int64_t v : a[0]) p = wrap_mul(p, v);
        r[0][0] = p;
      })
      .aten("prod.default, prod.dim_int")
      .names("ReduceProd", "ReduceProd", "ReduceProd")
      .doc("Product; integers and bool are multiplied in i64.", t);
  reduction("amax", "self!")
      .type(TypeRule::first)
      .lower("rmax(self)")
      .lower_bool("rany(self)")
      .fp64_row([](DRows a, DOut r, A) { r[0][0] = at_or(a[0], largest(a[0]), -kInf); })
      .exact_row([](IRows a, IOut r, A) { r[0][0] = a[0].empty() ? 0 : a[0][largest(a[0])]; })
      .ulp(0)
      .monotone()
      .aten("amax.default, max.default")
      .names("ReduceMax", "ReduceMax", "ReduceMax")
      .doc("Largest element; NaN if any is.", t);
  reduction("amin", "self!")
      .type(TypeRule::first)
      .lower("rmin(self)")
      .lower_bool("rall(self)")
      .fp64_row([](DRows a, DOut r, A) { r[0][0] = at_or(a[0], smallest(a[0]), kInf); })
      .exact_row([](IRows a, IOut r, A) { r[0][0] = a[0].empty() ? 0 : a[0][smallest(a[0])]; })
      .ulp(0)
      .monotone()
      .aten("amin.default, min.default")
      .names("ReduceMin", "ReduceMin", "ReduceMin")
      .doc("Smallest element; NaN if any is.", t);
  extreme_with_index("max_dim", "max.dim")
      .lower("rfirstmax(self), rargmax(self)")
      .lower_bool("rany(self), rargmax(cast_u8(self))")
      .fp64_row([](DRows a, DOut r, A) {
        const std::size_t i = largest(a[0]);
        r[0][0] = at_or(a[0], i, kNan);
        r[1][0] = static_cast<double>(i);
      })
      .exact_row([](IRows a, IOut r, A) {
        const std::size_t i = largest(a[0]);
        r[0][0] = a[0].empty() ? 0 : a[0][i];
        r[1][0] = static_cast<std::int64_t>(i);
      })
      .names("", "ArgMaxWithValue", "ArgMaxWithValue")
      .doc("Largest element along a dimension and its index: the first of ties, the first NaN if there is one.", t);
  extreme_with_index("min_dim", "min.dim")
      .lower("rfirstmin(self), rargmin(self)")
      .lower_bool("rall(self), rargmin(cast_u8(self))")
      .fp64_row([](DRows a, DOut r, A) {
        const std::size_t i = smallest(a[0]);
        r[0][0] = at_or(a[0], i, kNan);
        r[1][0] = static_cast<double>(i);
      })
      .exact_row([](IRows a, IOut r, A) {
        const std::size_t i = smallest(a[0]);
        r[0][0] = a[0].empty() ? 0 : a[0][i];
        r[1][0] = static_cast<std::int64_t>(i);
      })
      .names("", "ArgMinWithValue", "ArgMinWithValue")
      .doc("Smallest element along a dimension and its index: the first of ties, the first NaN if there is one.", t);
  reduction("argmax", "self!")
      .type(TypeRule::index)
      .lower("rargmax(self)")
      .lower_bool("-")
      .fp64_row([](DRows a, DOut r, A) { r[0][0] = static_cast<double>(largest(a[0])); })
      .exact_row([](IRows a, IOut r, A) { r[0][0] = static_cast<std::int64_t>(largest(a[0])); })
      .ulp(0)
      .decides()
      .aten("argmax.default")
      .names("ArgMax", "ArgMaxV2", "ArgMaxV2")
      .doc("Index of the largest element among the reduced ones: the first of ties, the first NaN if there is one.", t);
  reduction("argmin", "self!")
      .type(TypeRule::index)
      .lower("rargmin(self)")
      .lower_bool("-")
      .fp64_row([](DRows a, DOut r, A) { r[0][0] = static_cast<double>(smallest(a[0])); })
      .exact_row([](IRows a, IOut r, A) { r[0][0] = static_cast<std::int64_t>(smallest(a[0])); })
      .ulp(0)
      .decides()
      .aten("argmin.default")
      .names("ArgMin", "ArgMin", "ArgMin")
      .doc("Index of the smallest element among the reduced ones: the first of ties, the first NaN if there is one.", t);
  reduction("any", "self!")
      .type(TypeRule::any_all)
      .lower("rany(self != 0)")
      .lower_bool("rany(self)")
      .fp64_row(
          [](DRows a, DOut r, A) { r[0][0] = std::any_of(a[0].begin(), a[0].end(), [](double v) { return v != 0; }) ? 1 : 0; })
      .exact_row([](IRows a, IOut r, A) {
        r[0][0] = std::any_of(a[0].begin(), a[0].end(), [](std::int64_t v) { return v != 0; }) ? 1 : 0;
      })
      .ulp(0)
      .decides()
      .aten("any.default, any.dim, any.dims")
      .names("", "ReduceAny", "ReduceAny")
      .doc("Whether any element is not 0 (NaN is not 0); u8 stays u8.", t);
  reduction("all", "self!")
      .type(TypeRule::any_all)
      .lower("rall(self != 0)")
      .lower_bool("rall(self)")
      .fp64_row(
          [](DRows a, DOut r, A) { r[0][0] = std::all_of(a[0].begin(), a[0].end(), [](double v) { return v != 0; }) ? 1 : 0; })
      .exact_row([](IRows a, IOut r, A) {
        r[0][0] = std::all_of(a[0].begin(), a[0].end(), [](std::int64_t v) { return v != 0; }) ? 1 : 0;
      })
      .ulp(0)
      .decides()
      .aten("all.default, all.dim, all.dims")
      .names("", "ReduceAll", "ReduceAll")
      .doc("Whether every element is not 0 (NaN is not 0); u8 stays u8.", t);
}

}  // namespace fuselab::ops
