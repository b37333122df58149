// Reductions and the composites built on them: which dimensions they reduce, result sizes, strides.
#include <algorithm>
#include <set>

#include "fuselab/graph/infer.h"
#include "fuselab/graph/infer_rules.h"

namespace fuselab::infer_rules {

// An extreme of nothing does not exist; a recipe that is one says so by how it begins. Batch statistics of nothing are refused
// by PyTorch, too.
bool needs_elements(const ops::Op& op) {
  const std::string& recipe = op.lower;
  if (op.reduce == ops::ReduceDims::batch) return !op.more.empty();
  return op.kind == ops::Kind::reduce && (recipe.starts_with("rmax(") || recipe.starts_with("rmin(") ||
                                          recipe.starts_with("rfirst") || recipe.starts_with("rarg"));
}

void refuse_nothing(const Graph& g, const Node& n) {
  if (n.op->kind != ops::Kind::reduce || !needs_elements(*n.op)) return;
  const Exprs& sizes = first_tensor(g, n).sizes;
  for (const int d : reduced_dims(g, n)) {
    if (sizes[static_cast<std::size_t>(d)].is(0))
      fail("graph.shape", "{}: dimension {} of {} has size 0; there is no result for no elements", n.op->name, d,
           list_text(sizes));
  }
}

Exprs reduced_sizes(const Graph& g, const Node& n) {
  const Exprs& sizes = first_tensor(g, n).sizes;
  const std::vector<int> dims = reduced_dims(g, n);
  const bool keep = has_attr(n, "keepdim") && attr_bool(n, "keepdim");
  Exprs result;
  for (int d = 0; d < static_cast<int>(sizes.size()); ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), d)) {
      result.push_back(sizes[d]);
    } else if (keep) {
      result.push_back(1);
    }
  }
  return result;
}

Exprs row_sizes(const Graph& g, const Node& n) {
  const Exprs& sizes = first_tensor(g, n).sizes;
  const std::vector<int> reduced = reduced_dims(g, n);  // checks the rank and the attributes
  switch (n.op->reduce) {
    case ops::ReduceDims::group:
      return {sizes.at(0), attr_expr(n, "num_groups")};
    case ops::ReduceDims::batch:
      return {sizes.at(1)};
    case ops::ReduceDims::leading:
      return attr_list(n, "normalized_shape");
    default: {
      Exprs result = sizes;
      for (int d : reduced) result[d] = 1;
      return result;
    }
  }
}

bool has_channel_argument(const ops::Op& op) {
  return std::any_of(op.args.begin(), op.args.end(), [](const ops::ArgSpec& a) { return a.channel; });
}

void check_companions(const Graph& g, const Node& n) {
  const Exprs& sizes = first_tensor(g, n).sizes;
  for (std::size_t i = 1; i < n.args.size(); ++i) {
    const Type* t = tensor(g, n, i);
    if (t == nullptr) continue;
    const ops::ArgSpec& spec = n.op->args[i];
    Exprs expected;
    bool fits = false;
    if (spec.channel) {
      if (sizes.size() < 2)
        fail("graph.shape", "{}: the first argument has sizes {}; it has no channel dimension", n.op->name, list_text(sizes));
      expected = {sizes[1]};
      fits = t->sizes == expected;
    } else if (spec.row) {
      expected = row_sizes(g, n);
      fits = t->sizes == expected;
    } else {
      expected = sizes;
      fits = t->sizes.size() <= sizes.size();
      for (std::size_t k = 0; fits && k < t->sizes.size(); ++k) {
        const Expr& s = t->sizes[t->sizes.size() - 1 - k];
        fits = s == sizes[sizes.size() - 1 - k] || s.is(1);
      }
    }
    if (!fits) {
      fail("graph.shape", "{}: argument '{}' has sizes {}, but {} {} is needed", n.op->name, spec.name, list_text(t->sizes),
           spec.channel || spec.row ? "exactly" : "something that broadcasts to", list_text(expected));
    }
  }
}

Exprs same_strides(const Graph& g, const Node& n, const Exprs& sizes) {
  const Type& x = first_tensor(g, n);
  const bool keeps_format =
      n.op->reduce == ops::ReduceDims::group || n.op->reduce == ops::ReduceDims::batch || has_channel_argument(*n.op);
  if (keeps_format && suggests_channels_last(x.sizes, x.strides)) return channels_last_strides(sizes);
  return contiguous_strides(sizes);
}

}  // namespace fuselab::infer_rules

namespace fuselab {
namespace {

/// The number of dimensions in `normalized_shape`, which must be the last sizes of the first argument.
int trailing_rank(const Node& n, const Exprs& sizes) {
  const Exprs shape = infer_rules::attr_list(n, "normalized_shape");
  const bool fits = !shape.empty() && shape.size() <= sizes.size() && std::equal(shape.rbegin(), shape.rend(), sizes.rbegin());
  if (!fits) {
    fail("graph.shape", "{}: normalized_shape {} is not the end of the sizes {}", n.op->name, infer_rules::list_text(shape),
         infer_rules::list_text(sizes));
  }
  return static_cast<int>(shape.size());
}

}  // namespace

std::vector<int> reduced_dims(const Graph& g, const Node& node) {
  using ops::ReduceDims;
  if (node.op == nullptr || node.op->reduce == ReduceDims::none) return {};
  const Exprs& sizes = infer_rules::first_tensor(g, node).sizes;
  const int rank = static_cast<int>(sizes.size());
  std::vector<int> dims;
  const auto range = [&](int from, int to) {
    for (int d = from; d < to; ++d) dims.push_back(d);
  };
  switch (node.op->reduce) {
    case ReduceDims::attr_dims: {
      std::set<int> seen;
      for (const Expr& e : infer_rules::attr_list(node, "dims")) {
        const int d = infer_rules::wrap_dim(node, e.value(), rank);
        if (!seen.insert(d).second) fail("graph.shape", "{}: dimension {} is given twice in dims", node.op->name, d);
      }
      if (rank == 0) return {};
      if (seen.empty()) {
        range(0, rank);
      } else {
        dims.assign(seen.begin(), seen.end());
      }
      break;
    }
    case ReduceDims::attr_dim: {
      const int d = infer_rules::wrap_dim(node, infer_rules::attr_int(node, "dim"), rank);
      if (rank > 0) dims = {d};
      break;
    }
    case ReduceDims::trailing:
      range(rank - trailing_rank(node, sizes), rank);
      break;
    case ReduceDims::leading:
      range(0, rank - trailing_rank(node, sizes));
      break;
    case ReduceDims::group:
    case ReduceDims::batch:
      if (rank < 2) {
        fail("graph.shape", "{}: the first argument has sizes {}; it needs a batch and a channel dimension", node.op->name,
             infer_rules::list_text(sizes));
      }
      if (node.op->reduce == ReduceDims::batch) {
        dims.push_back(0);
        range(2, rank);
      } else {
        const Expr groups = infer_rules::attr_expr(node, "num_groups");
        Expr q;
        if (!groups.positive() || !exact_div(sizes[1], groups, q)) {
          fail("graph.shape", "{}: {} channels cannot be cut into {} groups", node.op->name, sizes[1].str(), groups.str());
        }
        range(1, rank);
      }
      break;
    case ReduceDims::none:
      break;
  }
  return dims;
}

}  // namespace fuselab
