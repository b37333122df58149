// Rows: variance and its relatives. Two passes in fp64 around the mean, as eager accumulates; in an fp64 kernel, where that
// would be the plain two-pass form, the mean's own error is measured (c) and taken out first.
#include "fuselab/ops/row_math.h"

namespace fuselab::ops {
namespace {

constexpr const char* kVariance =
    "m = rsum64(self) / cast_f64(N); d = self - m; c = rsum64(d) / cast_f64(N); e = if(wide, d - c, d); "
    "v = rsum64(e * e) / max(cast_f64(N) - correction, 0.0); ";

Row statistic(std::string name, const std::string& results) {
  return reduction(std::move(name), "self!")
      .type(TypeRule::promote)
      .attr("correction", AttrType::scalar, std::int64_t{1})
      .lower(kVariance + results)
      .lower_int("-")
      .ulp(1.5);
}

double variance(D x, A attrs) {
  const double divisor = static_cast<double>(x.size()) - real(attrs, "correction");
  return moments(x).variance(divisor > 0 ? divisor : 0);
}

}  // namespace

void add_statistics(std::vector<Op>& t) {
  statistic("var", "narrow(v)")
      .fp64_row([](DRows a, DOut r, A t) { r[0][0] = variance(a[0], t); })
      .aten("var.correction, prims::var.default")
      .doc("Variance with divisor N - correction; NaN when that is 0 and for a NaN or infinite element.", t);
  statistic("std", "narrow(sqrt(v))")
      .fp64_row([](DRows a, DOut r, A t) { r[0][0] = std::sqrt(variance(a[0], t)); })
      .aten("std.correction")
      .names("", "ReduceStdV2", "ReduceStdV2")
      .doc("Square root of the variance.", t);
  statistic("var_mean", "narrow(v), narrow(if(wide, select(isfinite(m), m + c, m), m))")
      .result("mean", TypeRule::promote, ShapeRule::reduce)
      .fp64_row([](DRows a, DOut r, A t) {
        r[0][0] = variance(a[0], t);
        r[1][0] = static_cast<double>(moments(a[0]).mean);
      })
      .aten("var_mean.correction")
      .doc("Variance and mean.", t);
  statistic("std_mean", "narrow(sqrt(v)), narrow(if(wide, select(isfinite(m), m + c, m), m))")
      .result("mean", TypeRule::promote, ShapeRule::reduce)
      .fp64_row([](DRows a, DOut r, A t) {
        r[0][0] = std::sqrt(variance(a[0], t));
        r[1][0] = static_cast<double>(moments(a[0]).mean);
      })
      .aten("std_mean.correction")
      .names("", "ReduceStd", "ReduceStd")
      .doc("Standard deviation and mean.", t);
}

}  // namespace fuselab::ops
