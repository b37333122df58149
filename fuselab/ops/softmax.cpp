// Rows: softmax and its relatives. The row's maximum is taken out first: huge values stay finite, a row of -inf gives NaN.
// What the difference d = x - m loses when it is rounded (l, up to 8 ulp of the result where it is 16) is put back into softmax
// of f32: exp(d + l) = exp(d) (1 + l). In f16 and bf16 it is below the result's own rounding.
#include "fuselab/ops/row_math.h"

namespace fuselab::ops {
namespace {

Row along_dim(std::string name, const std::string& args) {
  return Row(std::move(name), Kind::reduce, args)
      .type(TypeRule::promote)
      .shape(ShapeRule::same, ReduceDims::attr_dim)
      .attr("dim", AttrType::integer)
      .lower_int("-");
}

double exp_sum(D x, double shift) {
  return sum_of(x.size(), [&](std::size_t i) { return std::exp(x[i] - shift); });
}

}  // namespace

void add_softmax(std::vector<Op>& t) {
  along_dim("softmax", "self!")
      .lower(
          "m = rmax(self); d = self - m; p = exp_sum(d); l = self - (d + m); "
          "e = if(low | wide, p, select(p > 0, fma(p, l, p), p)); quotient(e, rsum(e))")
      .fp64_row([](DRows a, DOut r, A) {
        const double m = row_max(a[0]), s = exp_sum(a[0], m);
        for (std::size_t i = 0; i < a[0].size(); ++i) r[0][i] = std::exp(a[0][i] - m) / s;
      })
      .ulp(3)
      .aten("_softmax.default, softmax.int")
      .names("Softmax", "SoftmaxV2", "SoftmaxV2")
      .doc("exp(x) divided by its sum along dim.", t);
  along_dim("log_softmax", "self!")
      .lower("m = rmax(self); d = self - m; d - log(rsum(exp_sum(d)))")
      .fp64_row([](DRows a, DOut r, A) {
        const double m = row_max(a[0]), l = std::log(exp_sum(a[0], m));
        for (std::size_t i = 0; i < a[0].size(); ++i) r[0][i] = a[0][i] - m - l;
      })
      .ulp(3)
      .aten("_log_softmax.default, log_softmax.int")
      .names("LogSoftmax", "LogSoftmaxV2", "LogSoftmaxV2")
      .doc("Logarithm of softmax along dim.", t);
  // An infinite maximum is not taken out: inf - inf would hide it.
  reduction("logsumexp", "self!")
      .type(TypeRule::promote_float)
      .lower("m = rmax(self); s = select(isinf(m), 0.0, m); log(rsum(exp_sum(self - s))) + s")
      .fp64_row([](DRows a, DOut r, A) {
        const double m = a[0].empty() ? -kInf : row_max(a[0]);
        r[0][0] = std::isinf(m) ? m : std::log(exp_sum(a[0], m)) + m;
      })
      .ulp(3)
      .monotone()
      .aten("logsumexp.default")
      .names("ReduceLogSumExp", "ReduceLogSumExp", "ReduceLogSumExp")
      .doc("log of the sum of exp(x), without overflow.", t);
  along_dim("softmax_backward", "grad_output!, output!")
      .lower("(grad_output - rsum(grad_output * output)) * output")
      .fp64_row([](DRows a, DOut r, A) {
        const double s = sum_of(a[0].size(), [&](std::size_t i) { return a[0][i] * a[1][i]; });
        for (std::size_t i = 0; i < a[0].size(); ++i) r[0][i] = (a[0][i] - s) * a[1][i];
      })
      .ulp(3)
      .aten("_softmax_backward_data.default")
      .aten_ignored("input_dtype")
      .names("", "SoftmaxGrad", "SoftmaxGrad")
      .doc("Derivative of softmax, from its result.", t);
  along_dim("log_softmax_backward", "grad_output!, output!")
      .lower("grad_output - exp(output) * rsum(grad_output)")
      .fp64_row([](DRows a, DOut r, A) {
        const double s = sum_of(a[0].size(), [&](std::size_t i) { return a[0][i]; });
        for (std::size_t i = 0; i < a[0].size(); ++i) r[0][i] = a[0][i] - std::exp(a[1][i]) * s;
      })
      .ulp(3)
      .aten("_log_softmax_backward_data.default")
      .aten_ignored("input_dtype")
      .names("", "LogSoftmaxGrad", "LogSoftmaxGrad")
      .doc("Derivative of log_softmax, from its result.", t);
}

}  // namespace fuselab::ops
