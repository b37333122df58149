// Sums and moments of a row for the reference meanings: long double, so that they stand far above fp64 recipes.
#pragma once
#include <cmath>

#include "fuselab/ops/rows.h"

namespace fuselab::ops {

/// Sum of f(i) for i in [0, n).
template <typename F>
double sum_of(std::size_t n, F f) {
  long double s = 0;
  for (std::size_t i = 0; i < n; ++i) s += static_cast<long double>(f(i));
  return static_cast<double>(s);
}

struct Moments {
  long double mean = 0, squares = 0;  ///< squares: sum of squared deviations from the mean
  double variance(double divisor) const { return static_cast<double>(squares / static_cast<long double>(divisor)); }
};

inline Moments moments(D x) {
  Moments m;
  for (double v : x) m.mean += v;
  m.mean /= static_cast<long double>(x.size());
  for (double v : x) m.squares += (v - m.mean) * (v - m.mean);
  return m;
}

/// The largest element; NaN when one is.
inline double row_max(D x) {
  double m = -kInf;
  for (double v : x) {
    if (std::isnan(v)) return v;
    m = v > m ? v : m;
  }
  return m;
}

/// Element i of an optional argument, `otherwise` when it is absent.
inline double at_or(D x, std::size_t i, double otherwise) { return x.empty() ? otherwise : x[i]; }

}  // namespace fuselab::ops
