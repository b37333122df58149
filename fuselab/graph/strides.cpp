#include "fuselab/graph/strides.h"

#include <algorithm>
#include <map>
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/graph/graph.h"

namespace fuselab {
namespace {

bool has_zero(const Exprs& sizes) {
  return std::any_of(sizes.begin(), sizes.end(), [](const Expr& s) { return s.is(0); });
}

/// Do the strides equal dense ones in this order of dimensions (fastest first), sizes of 1 not counting?
bool dense_in_order(const Exprs& sizes, const Exprs& strides, const std::vector<int>& order) {
  Expr expected = 1;
  for (int d : order) {
    if (sizes[d].is(1)) continue;
    if (strides[d] != expected) return false;
    expected = expected * sizes[d];
  }
  return true;
}

std::vector<int> channels_last_order(std::size_t rank) {
  return rank == 4 ? std::vector<int>{1, 3, 2, 0} : std::vector<int>{1, 4, 3, 2, 0};
}

}  // namespace

std::vector<Expr> contiguous_strides(const std::vector<Expr>& sizes) {
  Exprs strides(sizes.size());
  Expr next = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = next;
    if (!sizes[i].is(0)) next = next * sizes[i];
  }
  return strides;
}

int compare_sizes(const Expr& a, const Expr& b) {
  if (a == b) return 0;
  if (a.is_const() && b.is_const()) return a.value() < b.value() ? -1 : 1;
  std::set<std::string> symbols;
  a.collect_symbols(symbols);
  b.collect_symbols(symbols);
  std::map<std::string, Expr> at_least_two;
  std::map<std::string, std::int64_t> sample;
  std::int64_t next = 64;
  for (const auto& s : symbols) {
    at_least_two.emplace(s, Expr::symbol(s) + 2);
    sample[s] = next++;
  }
  try {
    const Expr difference = (a - b).substitute(at_least_two);
    if (difference.non_negative()) return difference.is(0) ? 0 : 1;
    if ((difference * Expr(-1)).non_negative()) return -1;
    const std::int64_t x = a.eval(sample), y = b.eval(sample);
    return x < y ? -1 : x > y ? 1 : 0;
  } catch (const Error&) {
    return 0;  // too large to say, or a division by zero in the sample: no preference
  }
}

bool is_contiguous(const Exprs& sizes, const Exprs& strides) {
  if (has_zero(sizes)) return true;
  std::vector<int> order(sizes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(order.size() - 1 - i);
  return dense_in_order(sizes, strides, order);
}

bool is_channels_last(const Exprs& sizes, const Exprs& strides) {
  if (sizes.size() != 4 && sizes.size() != 5) return false;
  return dense_in_order(sizes, strides, channels_last_order(sizes.size()));
}

bool suggests_channels_last(const Exprs& sizes, const Exprs& strides) {
  if (sizes.size() != 4 && sizes.size() != 5) return false;
  // Strides must grow along N...WC order with room for each size; ties between N and C (sizes 1) count as row-major.
  if (strides[1].is(0)) return false;
  Expr least = 0;
  for (int d : channels_last_order(sizes.size())) {
    if (sizes[d].is(0) || compare_sizes(strides[d], least) < 0) return false;
    if (d == 0 && least == strides[1]) return false;
    least = strides[d];
    if (!sizes[d].is(1)) least = least * sizes[d];
  }
  return true;
}

Exprs channels_last_strides(const Exprs& sizes) { return dense_strides(sizes, channels_last_order(sizes.size())); }

bool non_overlapping_and_dense(const Exprs& sizes, const Exprs& strides) {
  if (is_contiguous(sizes, strides)) return true;
  std::vector<int> rest;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!(sizes[i].is(0) || sizes[i].is(1))) rest.push_back(static_cast<int>(i));
  }
  Expr expected = 1;
  while (!rest.empty()) {
    const auto it = std::find_if(rest.begin(), rest.end(), [&](int d) { return strides[d] == expected; });
    if (it == rest.end()) return false;
    expected = expected * sizes[*it];
    rest.erase(it);
  }
  return true;
}

std::vector<int> iteration_order(const Exprs& sizes, const std::vector<Exprs>& operands) {
  const int rank = static_cast<int>(sizes.size());
  std::vector<int> order(rank);
  for (int i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  // 1: `slow` belongs before `fast` (swap), -1: they are in order, 0: nobody minds
  const auto preference = [&](int fast, int slow) {
    for (const Exprs& s : operands) {
      if (s[fast].is(0) || s[slow].is(0)) continue;  // broadcast here: no preference, ask the next operand
      const int c = compare_sizes(s[fast], s[slow]);
      if (c != 0) return c;
      if (compare_sizes(sizes[fast], sizes[slow]) > 0) return 1;
    }
    return 0;
  };
  // An insertion sort, because "no preference" is not transitive: the exact sequence of comparisons decides the result.
  for (int i = 1; i < rank; ++i) {
    int moving = i;
    for (int before = i - 1; before >= 0; --before) {
      const int p = preference(order[before], order[moving]);
      if (p > 0) {
        std::swap(order[before], order[moving]);
        moving = before;
      } else if (p < 0) {
        break;
      }
    }
  }
  return order;
}

Exprs dense_strides(const Exprs& sizes, const std::vector<int>& order) {
  Exprs strides(sizes.size());
  Expr next = 1;
  for (int d : order) {
    strides[d] = next;
    next = next * sizes[d];
  }
  return strides;
}

Exprs preserved_strides(const Exprs& sizes, const Exprs& strides) {
  if (non_overlapping_and_dense(sizes, strides)) return strides;
  return dense_strides(sizes, iteration_order(sizes, {strides}));
}

std::optional<Exprs> view_strides(const Exprs& sizes, const Exprs& strides, const Exprs& new_sizes) {
  if (has_zero(sizes) || has_zero(new_sizes)) return sizes == new_sizes ? strides : contiguous_strides(new_sizes);
  if (sizes.empty()) return Exprs(new_sizes.size(), Expr(1));
  Exprs result(new_sizes.size());
  // From the last dimension: gather old dimensions that lie densely behind each other into one chunk, then cut the chunk
  // into new dimensions; a new dimension that would cross the border of a chunk needs a copy.
  int v = static_cast<int>(new_sizes.size()) - 1;
  Expr base = strides.back(), old_count = 1, new_count = 1;
  for (int t = static_cast<int>(sizes.size()) - 1; t >= 0; --t) {
    old_count = old_count * sizes[t];
    const bool chunk_ends = t == 0 || (!sizes[t - 1].is(1) && strides[t - 1] != old_count * base);
    if (!chunk_ends) continue;
    while (v >= 0 && (new_sizes[v].is(1) || compare_sizes(new_count, old_count) < 0)) {
      result[v] = new_count * base;
      new_count = new_count * new_sizes[v];
      --v;
    }
    if (new_count != old_count) return std::nullopt;
    if (t > 0) {
      base = strides[t - 1];
      old_count = 1;
      new_count = 1;
    }
  }
  if (v != -1) return std::nullopt;
  return result;
}

}  // namespace fuselab
