// Coordinates in which latencies are smooth: axes in octaves, latency as the logarithm of its ratio to the roofline.
#pragma once
#include <cstdint>
#include <vector>

#include "fuselab/perfdb/family.h"
#include "fuselab/perfdb/roofline.h"

namespace fuselab::perfdb {

/// Which rows a prediction may not use: those of the question's own group and, while a method is being chosen, those held out.
struct Hidden {
  const std::vector<std::int32_t>* group = nullptr;
  std::int32_t of = -1;                            ///< the group that is hidden; -1: none
  const std::vector<std::uint8_t>* out = nullptr;  ///< rows held out, one flag per row

  bool operator()(std::size_t row) const { return (of >= 0 && (*group)[row] == of) || (out != nullptr && (*out)[row] != 0); }
};

class Space {
 public:
  /// Rates and the floor come from `rows` alone. `family` must outlive it.
  Space(const Family& family, const DeviceProfile* device, const std::vector<std::size_t>& rows);

  const Family& family() const { return *family_; }
  std::size_t dims() const { return active_.size(); }  ///< axes on which rows differ, at most kMostDims
  static constexpr std::size_t kMostDims = 24;
  const std::vector<std::size_t>& active() const { return active_; }
  std::size_t width() const { return dims() + pairs_.size() + 2; }  ///< features of the trees
  const double* row(std::size_t i) const { return x_.data() + i * dims(); }
  double z(std::size_t i) const { return z_[i]; }

  /// The active ones of a family's axes, in octaves. A word stands where its rows lie on average: words of like latencies are
  /// near. A word or number of a category that was never measured gives NaN.
  void encode(const double* x, double* out) const;
  /// log(latency) = z + log_scale(work).
  double log_scale(double flops, double bytes) const;
  void features(const double* encoded, double flops, double bytes, double* out) const;

 private:
  const Family* family_;
  Rates rates_;
  double floor_ = 0;  ///< the cheapest kernel: what a launch costs at least, us
  std::vector<std::size_t> active_;
  std::vector<std::vector<std::pair<double, double>>> categories_;  // by active axis: value, where it stands
  std::vector<double> x_, z_;
  std::vector<std::pair<int, int>> pairs_;
};

}  // namespace fuselab::perfdb
