// Pointwise operators: NumPy broadcasting, and the strides PyTorch eager gives their results.
#include <algorithm>

#include "fuselab/graph/infer.h"
#include "fuselab/graph/infer_rules.h"

namespace fuselab::infer_rules {
namespace {

/// Strides of a tensor of `sizes` seen as `target` (broadcast): 0 where a dimension is new or repeated.
Exprs broadcast_strides(const Exprs& sizes, const Exprs& strides, const Exprs& target) {
  Exprs result(target.size(), Expr(0));
  const std::size_t offset = target.size() - sizes.size();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!(sizes[i].is(1) && !target[offset + i].is(1))) result[offset + i] = strides[i];
  }
  return result;
}

}  // namespace

Exprs broadcast_sizes(const Graph& g, const Node& n) {
  Exprs result;
  for (std::size_t i = 0; i < n.args.size(); ++i) {
    const Type* t = tensor(g, n, i);
    if (t == nullptr) continue;
    if (t->sizes.size() > result.size()) result.insert(result.begin(), t->sizes.size() - result.size(), Expr(1));
    const std::size_t offset = result.size() - t->sizes.size();
    for (std::size_t d = 0; d < t->sizes.size(); ++d) {
      Expr& r = result[offset + d];
      const Expr& s = t->sizes[d];
      if (r == s || s.is(1)) continue;
      if (!r.is(1)) {
        fail("graph.shape", "{}: argument {} with sizes {} does not broadcast with {}: size {} against {} in dimension {}",
             n.op->name, n.op->args[i].name, list_text(t->sizes), list_text(result), s.str(), r.str(), offset + d);
      }
      r = s;
    }
  }
  return result;
}

Exprs pointwise_strides(const Graph& g, const Node& n, const Exprs& sizes) {
  if (n.op->type == ops::TypeRule::attr_dtype) {  // a cast copies in the format it finds
    const Type& x = first_tensor(g, n);
    return preserved_strides(x.sizes, x.strides);
  }
  const ops::StrideRule rule = n.op->strides;
  const bool base_is_number = std::holds_alternative<Scalar>(n.args[0]);
  if (rule == ops::StrideRule::row_major || (rule == ops::StrideRule::base_number && base_is_number))
    return contiguous_strides(sizes);
  bool same_shape = true;
  std::vector<Exprs> own, broadcast;
  const bool promotes = n.op->type == ops::TypeRule::promote || n.op->type == ops::TypeRule::promote_float ||
                        n.op->type == ops::TypeRule::boolean || n.op->type == ops::TypeRule::where_;
  const DType common = promotes ? argument_type(g, n) : DType::f32;
  for (std::size_t i = 0; i < n.args.size(); ++i) {
    // Eager wraps numbers as 0-d tensors, and looks at the order of strides when the operands' shapes differ.
    if (std::holds_alternative<Scalar>(n.args[i]) && rule == ops::StrideRule::operands) same_shape = same_shape && sizes.empty();
    const Type* t = tensor(g, n, i);
    if (t == nullptr) continue;
    same_shape = same_shape && t->sizes == sizes;
    // Eager converts an argument of another dtype first, into a copy with dense strides.
    const bool converted = promotes && t->dtype != common && !(n.op->type == ops::TypeRule::where_ && i == 0);
    own.push_back(converted ? preserved_strides(t->sizes, t->strides) : t->strides);
    broadcast.push_back(broadcast_strides(t->sizes, own.back(), sizes));
  }
  if (same_shape) {
    const auto all = [&](auto&& test) {
      return std::all_of(own.begin(), own.end(), [&](const Exprs& s) { return test(sizes, s); });
    };
    if (all(is_contiguous)) return contiguous_strides(sizes);
    if (sizes.size() == 4 && all(is_channels_last)) return channels_last_strides(sizes);
    if (all(non_overlapping_and_dense) && std::all_of(own.begin(), own.end(), [&](const Exprs& s) { return s == own[0]; }))
      return own[0];
  }
  const std::vector<int> order = iteration_order(sizes, broadcast);
  const bool row_major = std::is_sorted(order.rbegin(), order.rend());
  return row_major ? contiguous_strides(sizes) : dense_strides(sizes, order);
}

}  // namespace fuselab::infer_rules
