// The fixed summation tree (R6) and how far it may be from the exact sum.
#include <algorithm>
#include <cmath>

#include "fuselab/reference/recipe_error.h"

namespace fuselab::reference {
namespace {

constexpr std::int64_t kChunk = 256, kLanes = 16;

/// Sums like the kernels do, and collects what the error estimate needs: the partial sums' magnitudes.
template <typename T>
struct Tree {
  long double squares = 0;  ///< of the partial sums

  T chunk(const Ball* x, std::int64_t n) {
    T lane[kLanes] = {};
    for (std::int64_t i = 0; i < n; ++i) {
      T& s = lane[i % kLanes];
      s += static_cast<T>(x[i].v);
      squares += static_cast<long double>(s) * s;
    }
    for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
      for (std::int64_t l = 0; l < width; ++l) {
        lane[l] += lane[l + width];
        squares += static_cast<long double>(lane[l]) * lane[l];
      }
    }
    return lane[0];
  }
  T sum(const Ball* x, std::int64_t n) {
    if (n <= kChunk) return chunk(x, n);
    std::int64_t half = kChunk;
    while (half * 2 < n) half *= 2;
    const T s = sum(x, half) + sum(x + half, n - half);
    squares += static_cast<long double>(s) * s;
    return s;
  }
};

/// Longest chain of inexact additions in the order of kernel/ir.h (Tree): within a chain (the first addition, to 0, is exact),
/// across the four chains, across the blocks, across the lanes.
double tree_depth(std::int64_t n, std::int64_t lanes) {
  const std::int64_t steps = (n + lanes - 1) / lanes, in_block = std::min<std::int64_t>(steps, 32), blocks = (steps + 31) / 32;
  const std::int64_t in_chain = (in_block + 3) / 4;
  return static_cast<double>(in_chain - 1) + std::ceil(std::log2(static_cast<double>(std::min<std::int64_t>(in_block, 4)))) +
         std::ceil(std::log2(static_cast<double>(blocks))) + std::ceil(std::log2(static_cast<double>(std::min(n, lanes))));
}

}  // namespace

TreeSum tree_sum(DType t, const Ball* values, std::int64_t n) {
  long double exact = 0, magnitude = 0;
  bool whole = true;
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = values[i].v;
    exact += x;
    magnitude += std::fabs(x);
    whole = whole && values[i].point() && x == std::floor(x);
  }
  const double value = static_cast<double>(exact);
  if (n <= 1 || !std::isfinite(value)) return {value, 0};
  const double unit = t == DType::f64 ? 0x1p-53 : 0x1p-24;
  // Sums of integers below the mantissa are exact in any order: counts compare equal.
  if (whole && magnitude <= 1 / unit) return {value, 0};
  const double depth = std::max(tree_depth(n, kLanes), tree_depth(n, 1));  // the lanes run along the row or across rows
  const double worst = depth * unit * static_cast<double>(magnitude) * (1 + depth * unit);
  // The worst case grows with the depth times the sum of magnitudes. Roundings that do not conspire add up like a random walk,
  // whose eightfold deviation is far below it; where they conspire (equal values), the simulated tree shows it.
  double simulated = 0;
  long double squares = 0;
  if (t == DType::f64) {
    Tree<double> tree;
    simulated = tree.sum(values, n);
    squares = tree.squares;
  } else {
    Tree<float> tree;
    simulated = static_cast<double>(tree.sum(values, n));
    squares = tree.squares;
  }
  const double walk = 4 * std::fabs(simulated - value) + 8 * unit * static_cast<double>(std::sqrt(squares));
  return {value, std::isfinite(walk) ? std::min(worst, walk) : worst};
}

}  // namespace fuselab::reference
