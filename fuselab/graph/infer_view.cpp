// Views: each one's own sizes and strides, as PyTorch has them.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "fuselab/graph/infer_rules.h"

namespace fuselab::infer_rules {
namespace {

using Rule = Type (*)(const Node& n, const Type& x);

Type alias(const Node&, const Type& x) { return x; }

Type reshape(const Node& n, const Type& x) {
  Type r{x.dtype, attr_list(n, "shape"), {}};
  const Expr count = product(x.sizes);
  int unknown = -1;
  Expr known = 1;
  for (std::size_t i = 0; i < r.sizes.size(); ++i) {
    if (!r.sizes[i].is(-1)) {
      known = known * r.sizes[i];
    } else if (unknown >= 0) {
      fail("graph.shape", "{}: shape {} has more than one -1", n.op->name, list_text(r.sizes));
    } else {
      unknown = static_cast<int>(i);
    }
  }
  Expr quotient;
  if (unknown >= 0 && exact_div(count, known, quotient)) {
    r.sizes[unknown] = quotient;
  } else if (unknown >= 0 || known != count) {
    fail("graph.shape", "{}: sizes {} with {} elements cannot become {} with {}", n.op->name, list_text(x.sizes), count.str(),
         list_text(r.sizes), known.str());
  }
  if (auto strides = view_strides(x.sizes, x.strides, r.sizes)) {
    r.strides = *strides;
  } else {
    r.strides = contiguous_strides(r.sizes);  // eager copies
  }
  return r;
}

Type expand(const Node& n, const Type& x) {
  Type r{x.dtype, attr_list(n, "shape"), {}};
  const int rank = static_cast<int>(r.sizes.size()), old_rank = static_cast<int>(x.sizes.size());
  if (rank < old_rank) {
    fail("graph.shape", "{}: shape {} has fewer dimensions than the argument's {}", n.op->name, list_text(r.sizes),
         list_text(x.sizes));
  }
  r.strides.resize(rank);
  for (int i = rank - 1; i >= 0; --i) {
    const int j = i - (rank - old_rank);
    const Expr old_size = j >= 0 ? x.sizes[j] : Expr(1);
    // A new leading dimension of size 1 gets the stride that a row-major tensor would have there.
    Expr old_stride = j >= 0 ? x.strides[j] : i + 1 < rank ? r.sizes[i + 1] * r.strides[i + 1] : Expr(1);
    if (r.sizes[i].is(-1)) {
      if (j < 0)
        fail("graph.shape", "{}: -1 in shape {} stands at a dimension that the argument lacks", n.op->name, list_text(r.sizes));
      r.sizes[i] = old_size;
    }
    if (r.sizes[i] == old_size) {
      r.strides[i] = old_stride;
    } else if (old_size.is(1)) {
      r.strides[i] = 0;
    } else {
      fail("graph.shape", "{}: sizes {} cannot expand to {}: dimension {} is {}, not 1", n.op->name, list_text(x.sizes),
           list_text(r.sizes), i, old_size.str());
    }
  }
  return r;
}

Type permute(const Node& n, const Type& x) {
  const Exprs dims = attr_list(n, "dims");
  const int rank = static_cast<int>(x.sizes.size());
  std::set<int> seen;
  Type r{x.dtype, {}, {}};
  for (const Expr& e : dims) {
    const int d = rank == 0 ? -1 : wrap_dim(n, e.value(), rank);
    if (d < 0 || !seen.insert(d).second) break;
    r.sizes.push_back(x.sizes[d]);
    r.strides.push_back(x.strides[d]);
  }
  if (static_cast<int>(dims.size()) != rank || static_cast<int>(seen.size()) != rank) {
    fail("graph.shape", "{}: dims {} is not an order of the {} dimensions", n.op->name, list_text(dims), rank);
  }
  return r;
}

Type transpose(const Node& n, const Type& x) {
  const int rank = static_cast<int>(x.sizes.size());
  const int a = wrap_dim(n, attr_int(n, "dim0"), rank), b = wrap_dim(n, attr_int(n, "dim1"), rank);
  Type r = x;
  if (rank > 0) {
    std::swap(r.sizes[a], r.sizes[b]);
    std::swap(r.strides[a], r.strides[b]);
  }
  return r;
}

Type squeeze(const Node& n, const Type& x) {
  const int rank = static_cast<int>(x.sizes.size());
  std::set<int> dims;
  for (const Expr& e : attr_list(n, "dims")) dims.insert(wrap_dim(n, e.value(), rank));
  Type r{x.dtype, {}, {}};
  for (int d = 0; d < rank; ++d) {
    if (x.sizes[d].is(1) && dims.count(d) != 0) continue;
    r.sizes.push_back(x.sizes[d]);
    r.strides.push_back(x.strides[d]);
  }
  return r;
}

Type unsqueeze(const Node& n, const Type& x) {
  const int rank = static_cast<int>(x.sizes.size());
  const int d = wrap_dim(n, attr_int(n, "dim"), rank + 1);
  Type r = x;
  r.sizes.insert(r.sizes.begin() + d, Expr(1));
  r.strides.insert(r.strides.begin() + d, d < rank ? x.sizes[d] * x.strides[d] : Expr(1));
  return r;
}

/// An index into [0, size], counted from the end when negative and cut at both ends.
Expr clamp_index(const Expr& at, const Expr& size) {
  const Expr from_start = at.is_const() && at.value() < 0 ? at + size : at;
  return min(max(from_start, Expr(0)), size);
}

Type slice(const Node& n, const Type& x) {
  const int rank = static_cast<int>(x.sizes.size());
  if (rank == 0) fail("graph.shape", "{}: a 0-d tensor cannot be sliced", n.op->name);
  const int d = wrap_dim(n, attr_int(n, "dim"), rank);
  const Expr step = attr_expr(n, "step");
  if (!step.positive()) fail("graph.shape", "{}: step {} must be positive", n.op->name, step.str());
  const Expr size = x.sizes[d];
  const Expr start = clamp_index(attr_expr(n, "start"), size);
  const Expr stop = attr_expr(n, "end");
  const Expr end = stop.is(INT64_MAX) ? size : clamp_index(stop, size);
  Type r = x;
  r.sizes[d] = floordiv(max(end - start, Expr(0)) + (step - 1), step);
  r.strides[d] = x.strides[d] * step;
  return r;
}

Type select(const Node& n, const Type& x) {
  const int rank = static_cast<int>(x.sizes.size());
  if (rank == 0) fail("graph.shape", "{}: a 0-d tensor has no dimension to select from", n.op->name);
  const int d = wrap_dim(n, attr_int(n, "dim"), rank);
  const Expr index = attr_expr(n, "index"), size = x.sizes[d];
  if (index.is_const() && size.is_const() && (index.value() >= size.value() || index.value() < -size.value())) {
    fail("graph.shape", "{}: index {} is outside of dimension {} with size {}", n.op->name, index.str(), d, size.str());
  }
  Type r = x;
  r.sizes.erase(r.sizes.begin() + d);
  r.strides.erase(r.strides.begin() + d);
  return r;
}

}  // namespace

int wrap_dim(const Node& n, std::int64_t dim, int rank) {
  const int range = std::max(rank, 1);  // a 0-d tensor takes 0 and -1
  if (dim < -range || dim >= range) {
    fail("graph.shape", "{}: dimension {} is outside of [{}, {}]", n.op ? n.op->name : n.target, dim, -range, range - 1);
  }
  return static_cast<int>(dim < 0 ? dim + range : dim);
}

Type view_type(const Graph& g, const Node& n) {
  static const std::map<std::string, Rule, std::less<>> kRules = {
      {"alias", alias},     {"reshape", reshape},     {"expand", expand}, {"permute", permute}, {"transpose", transpose},
      {"squeeze", squeeze}, {"unsqueeze", unsqueeze}, {"slice", slice},   {"select", select}};
  const auto it = kRules.find(n.op->name);
  if (it == kRules.end()) fail("graph.unknown_op", "view '{}' has no shape rule in graph/infer_view.cpp", n.op->name);
  return it->second(n, first_tensor(g, n));
}

}  // namespace fuselab::infer_rules
