// Rows: derivatives of the normalisations. With n the normalised input and g = grad * weight, the input's gradient is
// rstd * (g - mean(g) - n * mean(g n)); those of weight and bias are sums over the other dimensions.
#include "fuselab/ops/row_math.h"

namespace fuselab::ops {
namespace {

const std::string kInputGradient =
    "n = (input - mean) * rstd; g = if(has(weight), grad_out * weight, grad_out); a = rsum(g) / N; b = rsum(g * n) / N; "
    "(fma(-n, b, g) - a) * rstd";

/// Arguments: grad, input, mean, rstd, weight.
void input_gradient(DRows a, DOut r, A) {
  const std::size_t size = a[0].size();
  const auto n = [&](std::size_t i) { return (a[1][i] - a[2][i]) * a[3][i]; };
  const auto g = [&](std::size_t i) { return a[0][i] * at_or(a[4], i, 1); };
  const double mean_g = sum_of(size, g) / static_cast<double>(size);
  const double mean_gn = sum_of(size, [&](std::size_t i) { return g(i) * n(i); }) / static_cast<double>(size);
  for (std::size_t i = 0; i < size; ++i) r[0][i] = a[3][i] * (g(i) - mean_g - n(i) * mean_gn);
}
void weight_gradient(DRows a, DOut r, A) {
  r[0][0] = sum_of(a[0].size(), [&](std::size_t i) { return a[0][i] * (a[1][i] - a[2][i]) * a[3][i]; });
}
void bias_gradient(DRows a, DOut r, A) {
  r[0][0] = sum_of(a[0].size(), [&](std::size_t i) { return a[0][i]; });
}

/// Of the input in its dtype; of weight and bias, which may be f32 beside an f16 or bf16 input, as computed.
Row gradient(std::string name, const std::string& args, ShapeRule shape, ReduceDims dims) {
  const TypeRule type = shape == ShapeRule::row ? TypeRule::compute : TypeRule::first;
  return Row(std::move(name), Kind::reduce, args).type(type).shape(shape, dims).lower_int("-").ulp(6);
}

}  // namespace

void add_norm_gradients(std::vector<Op>& t) {
  gradient("layer_norm_backward_input", "grad_out!, input!, mean%, rstd%, weight!?1", ShapeRule::same, ReduceDims::trailing)
      .attr("normalized_shape", AttrType::ints)
      .lower(kInputGradient)
      .fp64_row(input_gradient)
      .aten("native_layer_norm_backward.default")
      .aten_ignored("bias, weight, mean, rstd, input, output_mask")
      .aten_result(0)
      .names("", "LayerNormXBackpropV3", "LayerNormXBackpropV3")
      .doc("Gradient of layer_norm's input.", t);
  gradient("layer_norm_backward_weight", "grad_out!, input!, mean!, rstd!", ShapeRule::row, ReduceDims::leading)
      .attr("normalized_shape", AttrType::ints)
      .lower("rsum(grad_out * ((input - mean) * rstd))")
      .fp64_row(weight_gradient)
      .aten("native_layer_norm_backward.default")
      .aten_ignored("bias, weight, mean, rstd, input, output_mask")
      .aten_result(1)
      .names("", "LayerNormBetaGammaBackpropV2", "LayerNormBetaGammaBackpropV2")
      .doc("Gradient of layer_norm's weight.", t);
  gradient("layer_norm_backward_bias", "grad_out!", ShapeRule::row, ReduceDims::leading)
      .attr("normalized_shape", AttrType::ints)
      .lower("rsum(grad_out)")
      .fp64_row(bias_gradient)
      .aten("native_layer_norm_backward.default")
      .aten_ignored("bias, weight, mean, rstd, input, output_mask")
      .aten_result(2)
      .doc("Gradient of layer_norm's bias.", t);
  gradient("rms_norm_backward_input", "grad_out!, input!, rstd%, weight!?1", ShapeRule::same, ReduceDims::trailing)
      .attr("normalized_shape", AttrType::ints)
      .lower("n = input * rstd; g = if(has(weight), grad_out * weight, grad_out); b = rsum(g * n) / N; fma(-n, b, g) * rstd")
      .fp64_row([](DRows a, DOut r, A) {
        const std::size_t size = a[0].size();
        const auto g = [&](std::size_t i) { return a[0][i] * at_or(a[3], i, 1); };
        const double mean_gn = sum_of(size, [&](std::size_t i) { return g(i) * a[1][i] * a[2][i]; }) / static_cast<double>(size);
        for (std::size_t i = 0; i < size; ++i) r[0][i] = a[2][i] * (g(i) - a[1][i] * a[2][i] * mean_gn);
      })
      .aten("_fused_rms_norm_backward.default")
      .aten_ignored("weight, output_mask")
      .aten_result(0)
      .names("", "RmsNormGrad", "RmsNormGrad")
      .doc("Gradient of rms_norm's input.", t);
  gradient("rms_norm_backward_weight", "grad_out!, input!, rstd!", ShapeRule::row, ReduceDims::leading)
      .attr("normalized_shape", AttrType::ints)
      .lower("rsum(grad_out * (input * rstd))")
      .fp64_row(
          [](DRows a, DOut r, A) { r[0][0] = sum_of(a[0].size(), [&](std::size_t i) { return a[0][i] * a[1][i] * a[2][i]; }); })
      .aten("_fused_rms_norm_backward.default")
      .aten_ignored("weight, output_mask")
      .aten_result(1)
      .doc("Gradient of rms_norm's weight.", t);
  gradient("group_norm_backward_input", "grad_out!, input!, mean%, rstd%, weight^?1", ShapeRule::same, ReduceDims::group)
      .attr("num_groups", AttrType::integer)
      .aten_name("num_groups", "group")
      .lower(kInputGradient)
      .fp64_row(input_gradient)
      .aten("native_group_norm_backward.default")
      .aten_ignored("N, C, HxW, output_mask")
      .aten_result(0)
      .names("", "GroupNormGrad", "GroupNormGrad")
      .doc("Gradient of group_norm's input.", t);
  gradient("batch_norm_backward_input", "grad_out!, input!, mean%^, rstd%^, weight^?1", ShapeRule::same, ReduceDims::batch)
      .aten_name("mean", "save_mean")
      .aten_name("rstd", "save_invstd")
      .lower(kInputGradient)
      .fp64_row(input_gradient)
      .aten("native_batch_norm_backward.default[train=true]")
      .aten_ignored("weight, input, save_mean, save_invstd, running_mean, running_var, eps, train, output_mask")
      .aten_result(0)
      .names("", "BNTrainingReduceGrad", "BNTrainingReduceGrad")
      .doc("Gradient of batch_norm_training's input.", t);
  gradient("batch_norm_backward_weight", "grad_out!, input!, mean%^, rstd%^", ShapeRule::row, ReduceDims::batch)
      .aten_name("mean", "save_mean")
      .aten_name("rstd", "save_invstd")
      .lower("rsum(grad_out * ((input - mean) * rstd))")
      .fp64_row(weight_gradient)
      .aten("native_batch_norm_backward.default[train=true]")
      .aten_ignored("weight, input, save_mean, save_invstd, running_mean, running_var, eps, train, output_mask")
      .aten_result(1)
      .names("", "BNTrainingUpdateGrad", "BNTrainingUpdateGrad")
      .doc("Gradient of batch_norm_training's weight.", t);
  gradient("batch_norm_backward_bias", "grad_out!", ShapeRule::row, ReduceDims::batch)
      .lower("rsum(grad_out)")
      .fp64_row(bias_gradient)
      .aten("native_batch_norm_backward.default[train=true]")
      .aten_ignored("weight, input, save_mean, save_invstd, running_mean, running_var, eps, train, output_mask")
      .aten_result(2)
      .doc("Gradient of batch_norm_training's bias.", t);
}

}  // namespace fuselab::ops
