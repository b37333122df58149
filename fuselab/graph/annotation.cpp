#include "fuselab/graph/annotation.h"

#include <algorithm>
#include <numeric>

#include "fuselab/core/error.h"
#include "fuselab/graph/strides.h"

namespace fuselab {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 62;

const std::string& operator_name(const Node& n) { return n.op ? n.op->name : n.target; }

/// Can two different indices name the same element? Exact for dense orders; "yes" when it cannot be told.
bool may_overlap(const Exprs& sizes, const Exprs& strides) {
  if (std::any_of(sizes.begin(), sizes.end(), [](const Expr& s) { return s.is(0); })) return false;
  if (non_overlapping_and_dense(sizes, strides)) return false;
  std::vector<int> order;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!sizes[i].is(1)) order.push_back(static_cast<int>(i));
  }
  std::sort(order.begin(), order.end(), [&](int a, int b) { return compare_sizes(strides[a], strides[b]) < 0; });
  Expr span = 1;  // elements that the faster dimensions reach over
  for (int d : order) {
    if (compare_sizes(strides[d], span) < 0) return true;
    span = span + (sizes[d] - 1) * strides[d];
  }
  return false;
}

/// Equal where it matters: a dimension of size 1, or an empty tensor, has no use for its stride.
bool same_places(const Exprs& sizes, const Exprs& a, const Exprs& b) {
  if (std::any_of(sizes.begin(), sizes.end(), [](const Expr& s) { return s.is(0); })) return true;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!sizes[i].is(1) && a[i] != b[i]) return false;
  }
  return true;
}

bool all_const(const Exprs& xs) {
  return std::all_of(xs.begin(), xs.end(), [](const Expr& x) { return x.is_const(); });
}

}  // namespace

void check_type(const Type& t, const std::string& what) {
  if (t.sizes.size() != t.strides.size()) {
    fail("graph.bad_type", "'{}' has {} sizes and {} strides; give one stride per size", what, t.sizes.size(), t.strides.size());
  }
  if (t.sizes.size() > 64) fail("graph.too_large", "'{}' has {} dimensions; at most 64 are supported", what, t.sizes.size());
  bool empty = false;
  __int128 count = 1, reach = 1;
  for (std::size_t i = 0; i < t.sizes.size(); ++i) {
    const Expr &size = t.sizes[i], &stride = t.strides[i];
    if (size.is_const() && size.value() < 0)
      fail("graph.bad_type", "'{}' has the negative size {} in dimension {}", what, size.value(), i);
    if (stride.is_const() && stride.value() < 0)
      fail("graph.bad_type", "'{}' has the negative stride {} in dimension {}", what, stride.value(), i);
    if (!size.is_const()) continue;
    empty = empty || size.is(0);
    if (count < kMaxBytes) count *= std::max<std::int64_t>(size.value(), 1);
    if (stride.is_const() && reach < kMaxBytes)
      reach += static_cast<__int128>(std::max<std::int64_t>(size.value() - 1, 0)) * stride.value();
  }
  if (!empty && std::max(count, reach) * size_of(t.dtype) >= kMaxBytes) {
    fail("graph.too_large", "'{}' of type {} needs 2^62 bytes or more; use smaller sizes", what, t.str());
  }
}

Type apply_annotation(Graph& g, const Node& n, const Type& inferred, const Annotation& written) {
  const Type& w = written.type;
  if (w.dtype != inferred.dtype) {
    fail("graph.dtype", "the result of {} is {}, but {} is written; correct the type or cast", operator_name(n),
         name(inferred.dtype), name(w.dtype));
  }
  bool fits = w.sizes.size() == inferred.sizes.size();
  for (std::size_t i = 0; fits && i < w.sizes.size(); ++i) {
    fits = w.sizes[i] == inferred.sizes[i] || !w.sizes[i].is_const() || !inferred.sizes[i].is_const();
  }
  if (!fits) {
    fail("graph.shape", "the result of {} is {}, but {} is written; correct the sizes", operator_name(n), inferred.str(),
         w.str());
  }
  for (std::size_t i = 0; i < w.sizes.size(); ++i) {
    const std::pair<Expr, Expr> equal(inferred.sizes[i], w.sizes[i]);
    if (equal.first != equal.second && std::find(g.assumptions.begin(), g.assumptions.end(), equal) == g.assumptions.end()) {
      g.assumptions.push_back(equal);
    }
  }
  Type result = w;
  const bool view = n.op != nullptr && n.op->kind == ops::Kind::view;
  if (!written.has_strides) result.strides = view ? inferred.strides : contiguous_strides(w.sizes);
  if (view && !same_places(w.sizes, inferred.strides, result.strides)) {
    if (all_const(inferred.strides) && all_const(result.strides)) {
      fail("graph.strides", "{} is a view with type {}, but {} is written; leave the strides out", operator_name(n),
           inferred.str(), w.str());
    }
    result.strides = inferred.strides;  // a view's places follow from its argument; the text can only say them differently
  }
  if (!view && written.has_strides && may_overlap(result.sizes, result.strides)) {
    fail("graph.strides", "the result of {} with type {} would write several elements to one place; use other strides",
         operator_name(n), result.str());
  }
  return result;
}

}  // namespace fuselab
