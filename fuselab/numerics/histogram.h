// How errors are spread, for data too large to sort: counts over logarithmic bins, 64 to an octave.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace fuselab::numerics {

/// Non-negative values. A percentile is the low edge of its bin: at most 1.6 % below the true one, exact for 0 and for integers
/// up to 128. Subnormals count in the bins of their bits; infinity has its own.
class LogHistogram {
 public:
  void add(double value) { ++bins_[bin(value)]; }
  void add_zeros(std::int64_t n) { bins_[0] += n; }
  void add(const LogHistogram& other) {
    for (std::size_t i = 0; i < bins_.size(); ++i) bins_[i] += other.bins_[i];
  }
  std::int64_t count() const {
    std::int64_t n = 0;
    for (const std::int64_t b : bins_) n += b;
    return n;
  }
  /// The smallest bin edge that at least `share` of the values do not exceed (nearest rank); 0 when there are none.
  double percentile(double share) const;

  struct Bucket {
    double from, to;  ///< values in [from, to)
    std::int64_t count;
  };
  /// For pictures: zero alone (from = to = 0), then octaves from `low` to `high`, all below and above in the first and last.
  std::vector<Bucket> octaves(int low_exponent, int high_exponent) const;

 private:
  static std::size_t bin(double value) { return static_cast<std::size_t>(std::bit_cast<std::uint64_t>(value) >> 46); }
  static double edge(std::size_t bin) { return std::bit_cast<double>(static_cast<std::uint64_t>(bin) << 46); }
  std::vector<std::int64_t> bins_ = std::vector<std::int64_t>((std::size_t{0x7ff} << 6) + 1);  // 0 ... infinity
};

}  // namespace fuselab::numerics
