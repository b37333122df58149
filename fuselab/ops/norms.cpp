// Rows: normalisations. What a result consists of may cancel (n * weight against bias), so no part of it is rounded to f32 as a
// whole: the mean (accumulated in fp64) and 1 / standard deviation are two floats each, a high one and what it could not hold.
// A row of equal values, however large, has deviations of exactly 0.
#include "fuselab/ops/row_math.h"

namespace fuselab::ops {
namespace {

// d: deviations from h, the mean's high part; q: the sum of the squared deviations from the mean itself, by
// sum (x - h)^2 = sum (x - mean)^2 + N (mean - h)^2, where the last term is no larger than the rest (h is the float next to the
// mean); s, r: 1 / standard deviation and its high part. f64 has no wider type: there the mean's error is summed and taken out.
const std::string kMoments =
    "m = rsum64(input) / cast_f64(N); h = narrow(m); l = m - h; d0 = input - h; c = rsum(d0) / N; d = if(wide, d0 - c, d0); "
    "q = if(wide, rsum(d * d), max(cast_f64(rsum(d * d)) - l * l * cast_f64(N), 0)); "
    "v = if(wide, q / N, q * (1 / cast_f64(N))); s = rsqrt(v + eps); r = narrow(s); ";
const std::string kAffine =
    "y = if(has(weight) & has(bias), fma(n, weight, bias), if(has(weight), n * weight, if(has(bias), n + bias, n))); ";
const std::string kNormalised = kMoments + "n = if(wide, d * r, fma(d, r, fma(d, narrow(s - r), -(narrow(l) * r)))); " + kAffine;

void normalise(DRows a, std::span<double> out, const Moments& m, double rstd) {
  for (std::size_t i = 0; i < a[0].size(); ++i) {
    const double n = static_cast<double>(a[0][i] - m.mean) * rstd;
    out[i] = n * at_or(a[1], i, 1) + at_or(a[2], i, 0);
  }
}
void layer_norm_meaning(DRows a, DOut r, A t) {
  const Moments m = moments(a[0]);
  const double rstd = 1 / std::sqrt(m.variance(static_cast<double>(a[0].size())) + real(t, "eps"));
  normalise(a, r[0], m, rstd);
  if (r.size() == 1) return;
  r[1][0] = static_cast<double>(m.mean);
  r[2][0] = rstd;
}

Row norm(std::string name, const std::string& args, ReduceDims dims) {
  return Row(std::move(name), Kind::reduce, args).type(TypeRule::first).shape(ShapeRule::same, dims).lower_int("-").ulp(4);
}
Row layer_norm(std::string name, const std::string& results) {
  return norm(std::move(name), "input!, weight!?1, bias!?0", ReduceDims::trailing)
      .attr("normalized_shape", AttrType::ints)
      .attr("eps", AttrType::real, 1e-5)
      .lower(kNormalised + results)
      .fp64_row(layer_norm_meaning);
}
Row group_norm(std::string name, const std::string& results) {
  return norm(std::move(name), "input!, weight^?1, bias^?0", ReduceDims::group)
      .attr("num_groups", AttrType::integer)
      .attr("eps", AttrType::real, 1e-5)
      .aten_name("num_groups", "group|num_groups")
      .lower(kNormalised + results)
      .fp64_row(layer_norm_meaning);
}
void rms_norm_meaning(DRows a, DOut r, A t) {
  const double squares = sum_of(a[0].size(), [&](std::size_t i) { return static_cast<long double>(a[0][i]) * a[0][i]; });
  const double rstd = 1 / std::sqrt(squares / static_cast<double>(a[0].size()) + real(t, "eps"));
  for (std::size_t i = 0; i < a[0].size(); ++i) r[0][i] = a[0][i] * rstd * at_or(a[1], i, 1);
  if (r.size() == 2) r[1][0] = rstd;
}
Row rms_norm(std::string name, const std::string& results) {
  return norm(std::move(name), "input!, weight!?1", ReduceDims::trailing)
      .attr("normalized_shape", AttrType::ints)
      .attr("eps", AttrType::real, 0x1p-23)
      .lower("r = rsqrt(rsum(input * input) / N + eps); n = input * r; y = if(has(weight), n * weight, n); " + results)
      .fp64_row(rms_norm_meaning);
}

}  // namespace

void add_norms(std::vector<Op>& t) {
  layer_norm("layer_norm", "y")
      .aten("layer_norm.default")
      .aten_ignored("cudnn_enable")
      .names("LayerNormalization", "LayerNorm", "LayerNorm")
      .doc("(x - mean) / sqrt(var + eps) over the trailing dimensions normalized_shape, times weight, plus bias.", t);
  layer_norm("native_layer_norm", "y, narrow(m), r")
      .result("mean", TypeRule::compute, ShapeRule::row)
      .result("rstd", TypeRule::compute, ShapeRule::row)
      .aten("native_layer_norm.default")
      .names("", "LayerNormV3", "LayerNormV3")
      .doc("layer_norm with the mean and 1 / sqrt(var + eps) of every row.", t);
  rms_norm("rms_norm", "y")
      .aten("rms_norm.default")
      .names("RMSNormalization", "RmsNorm", "RmsNorm")
      .doc("x / sqrt(mean(x^2) + eps) over the trailing dimensions normalized_shape, times weight.", t);
  rms_norm("native_rms_norm", "y, r")
      .result("rstd", TypeRule::compute, ShapeRule::row)
      .aten("_fused_rms_norm.default")
      .doc("rms_norm with 1 / sqrt(mean(x^2) + eps) of every row.", t);
  group_norm("group_norm", "y")
      .aten("group_norm.default")
      .aten_ignored("cudnn_enabled")
      .names("GroupNormalization", "GroupNorm", "GroupNorm")
      .doc("Normalisation over the channels of a group and all positions, times weight, plus bias per channel.", t);
  group_norm("native_group_norm", "y, narrow(m), r")
      .result("mean", TypeRule::compute, ShapeRule::row)
      .result("rstd", TypeRule::compute, ShapeRule::row)
      .aten("native_group_norm.default")
      .aten_ignored("N, C, HxW")
      .doc("group_norm with the mean and 1 / sqrt(var + eps) of every group.", t);
  // Not a reduction: the statistics are given. One multiplier per channel.
  pointwise("batch_norm", "input!, weight^?1, bias^?0, running_mean^, running_var^")
      .type(TypeRule::first)
      .shape(ShapeRule::same)
      .attr("eps", AttrType::real, 1e-5)
      .lower("s = rsqrt(running_var + eps); n = (input - running_mean) * s; " + kAffine + "y")
      .lower_int("-")
      .fp64([](D a, A t) { return (a[0] - a[3]) / std::sqrt(a[4] + real(t, "eps")) * a[1] + a[2]; })
      .ulp(4)
      .special("1 1 0 nan 1 -> nan; inf 1 0 0 1 -> inf; nan 1 0 0 1 -> nan")
      .aten("_native_batch_norm_legit_no_training.default")
      .aten_ignored("momentum")
      .aten_result(0)
      .names("BatchNormalization", "BNInfer", "BNInfer")
      .doc("Normalisation of every channel with given mean and variance, times weight, plus bias.", t);
  norm("batch_norm_training", "input!, weight^?1, bias^?0, running_mean^, running_var^", ReduceDims::batch)
      .attr("momentum", AttrType::real, 0.1)
      .attr("eps", AttrType::real, 1e-5)
      .result("save_mean", TypeRule::compute, ShapeRule::row)
      .result("save_invstd", TypeRule::compute, ShapeRule::row)
      .result("running_mean_out", TypeRule::compute, ShapeRule::row)
      .result("running_var_out", TypeRule::compute, ShapeRule::row)
      .lower(kNormalised +
             "y, narrow(m), r, running_mean * (1 - momentum) + narrow(m) * momentum, "
             "running_var * (1 - momentum) + narrow(q / cast_f64(N - 1)) * momentum")
      .fp64_row([](DRows a, DOut r, A t) {
        const Moments m = moments(a[0]);
        const double n = static_cast<double>(a[0].size()), momentum = real(t, "momentum");
        const double rstd = 1 / std::sqrt(m.variance(n) + real(t, "eps"));
        normalise(a, r[0], m, rstd);
        r[1][0] = static_cast<double>(m.mean);
        r[2][0] = rstd;
        r[3][0] = at_or(a[3], 0, kNan) * (1 - momentum) + static_cast<double>(m.mean) * momentum;
        r[4][0] = at_or(a[4], 0, kNan) * (1 - momentum) + m.variance(n - 1) * momentum;
      })
      .aten("_native_batch_norm_legit_functional.default[training=true]")
      .aten_ignored("training")
      .names("", "BNTrainingUpdate", "BNTrainingUpdate")
      .doc("Normalisation of every channel with its own statistics; also those, and the updated running ones.", t);
  norm("batch_norm_own_statistics", "input!, weight^?1, bias^?0", ReduceDims::batch)
      .attr("eps", AttrType::real, 1e-5)
      .result("save_mean", TypeRule::compute, ShapeRule::row)
      .result("save_invstd", TypeRule::compute, ShapeRule::row)
      .lower(kNormalised + "y, narrow(m), r")
      .fp64_row(layer_norm_meaning)
      .aten("_native_batch_norm_legit.no_stats[training=true]")
      .aten_ignored("training, momentum")
      .doc("Normalisation of every channel with its own statistics; also those (instance_norm is made of it).", t);
}

}  // namespace fuselab::ops
