#include "fuselab/numerics/histogram.h"

#include <algorithm>
#include <cmath>

namespace fuselab::numerics {

double LogHistogram::percentile(double share) const {
  const auto rank = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(share * static_cast<double>(count()))));
  std::int64_t seen = 0;
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    seen += bins_[i];
    if (seen >= rank) return edge(i);
  }
  return 0;
}

std::vector<LogHistogram::Bucket> LogHistogram::octaves(int low_exponent, int high_exponent) const {
  std::vector<Bucket> out{{0, 0, bins_[0]}};
  for (int e = low_exponent; e < high_exponent; ++e) out.push_back({std::ldexp(1.0, e), std::ldexp(1.0, e + 1), 0});
  const auto last = static_cast<std::int64_t>(out.size()) - 1;
  for (std::size_t i = 1; i < bins_.size(); ++i) {
    const std::int64_t exponent = static_cast<std::int64_t>(i >> 6) - 1023;
    out[static_cast<std::size_t>(std::clamp<std::int64_t>(exponent - low_exponent + 1, 1, last))].count += bins_[i];
  }
  return out;
}

}  // namespace fuselab::numerics
