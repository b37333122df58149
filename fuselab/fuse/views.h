// Views as the fusing room sees them: what a view node does to the dims of a value, and what a kernel can walk.
#pragma once
#include <vector>

#include "fuselab/graph/graph.h"

namespace fuselab::fuse {

enum class ViewKind : std::uint8_t { same, reshape, expand, permute, squeeze, unsqueeze, slice, select, other };

/// A view node reduced to what fusing needs.
struct View {
  ViewKind kind = ViewKind::other;
  std::vector<int> dims;  ///< permute: the order; squeeze, unsqueeze, slice, select: the dims it acts on, in [0, rank)
};

/// Reads the attributes of a view-kind node. Operators it does not know are ViewKind::other.
View describe_view(const Graph& g, const Node& node);

std::vector<Expr> without_ones(const std::vector<Expr>& sizes);

/// Does the reshape only merge or only split neighbouring dims (and add or drop dims of size 1)?
bool merges_or_splits(const std::vector<Expr>& from, const std::vector<Expr>& to);

}  // namespace fuselab::fuse
