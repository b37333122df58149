// Gradient-boosted regression trees of fixed depth on binned features: for latencies that jump, because another kernel or tile
// was chosen, where a smooth process averages over both sides. Friedman, "Greedy function approximation", Annals of Statistics
// 29, 2001.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fuselab::perfdb {

class Trees {
 public:
  enum class Loss { kAbsolute, kSquared };
  struct Options {
    Loss loss = Loss::kAbsolute;
    int trees = 120;
    int depth = 6;       ///< at most 8
    double rate = 0.15;  ///< shrinkage of each tree
    int smallest_leaf = 10;
  };

  /// `features` are rows × width. Nothing is random: the same rows give the same trees.
  void fit(const std::vector<double>& features, std::size_t width, const std::vector<double>& target, const Options& options);
  bool empty() const { return trees_.empty(); }
  double predict(const double* features) const;

 private:
  struct Node {
    std::uint16_t feature = 0;
    float threshold = 0;  ///< left when value <= threshold
  };
  int depth_ = 0;
  double start_ = 0;
  std::vector<Node> nodes_;    // trees × (2^depth - 1), as heaps
  std::vector<float> leaves_;  // trees × 2^depth
  std::vector<std::size_t> trees_;
};

}  // namespace fuselab::perfdb
