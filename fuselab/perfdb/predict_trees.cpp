#include "fuselab/perfdb/predict_trees.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace fuselab::perfdb {
namespace {

constexpr std::size_t kBins = 128;

/// Upper ends of a feature's bins: between neighbours of its distinct values, at most kBins of them by equal counts.
std::vector<float> bin_ends(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::vector<double> distinct = values;
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<float> ends;
  const auto middle = [](double a, double b) { return static_cast<float>(a + (b - a) / 2); };
  if (distinct.size() <= kBins) {
    for (std::size_t i = 1; i < distinct.size(); ++i) ends.push_back(middle(distinct[i - 1], distinct[i]));
  } else {
    for (std::size_t b = 1; b < kBins; ++b) {
      const auto at = std::upper_bound(distinct.begin(), distinct.end(), values[b * values.size() / kBins]);
      if (at == distinct.end()) break;
      const float end = middle(*(at - 1), *at);
      if (ends.empty() || end > ends.back()) ends.push_back(end);
    }
  }
  return ends;
}

double median(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Cell {
  double sum = 0;
  double count = 0;
};

}  // namespace

void Trees::fit(const std::vector<double>& features, std::size_t width, const std::vector<double>& target,
                const Options& options) {
  const std::size_t n = target.size();
  nodes_.clear(), leaves_.clear(), trees_.clear();
  depth_ = options.depth;
  const std::size_t inner = (std::size_t{1} << depth_) - 1, outer = std::size_t{1} << depth_;
  std::vector<std::vector<float>> ends(width);
  std::vector<std::uint8_t> bins(n * width);
  std::vector<double> column(n);
  for (std::size_t f = 0; f < width; ++f) {
    for (std::size_t i = 0; i < n; ++i) column[i] = features[i * width + f];
    ends[f] = bin_ends(column);
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = std::lower_bound(ends[f].begin(), ends[f].end(), static_cast<float>(column[i]));
      bins[i * width + f] = static_cast<std::uint8_t>(at - ends[f].begin());
    }
  }
  const bool absolute = options.loss == Loss::kAbsolute;
  std::vector<double> copy = target;
  start_ = absolute ? median(copy)
                    : std::accumulate(target.begin(), target.end(), 0.0) / static_cast<double>(std::max<std::size_t>(n, 1));
  std::vector<double> rest(n);
  for (std::size_t i = 0; i < n; ++i) rest[i] = target[i] - start_;
  std::vector<std::uint32_t> node(n);
  std::vector<Cell> cells;
  std::vector<std::vector<double>> members(outer);
  const double smallest = options.smallest_leaf;
  for (int t = 0; t < options.trees; ++t) {
    const std::size_t base = nodes_.size();
    // A node that is not split sends everything to the left.
    nodes_.resize(base + inner, Node{0, std::numeric_limits<float>::infinity()});
    std::fill(node.begin(), node.end(), 0u);
    std::vector<std::uint8_t> cut(inner, 255);
    for (int level = 0; level < depth_; ++level) {
      const std::size_t first = (std::size_t{1} << level) - 1, count = std::size_t{1} << level, stride = width * kBins;
      cells.assign(count * stride, Cell{});
      for (std::size_t i = 0; i < n; ++i) {
        const double g = absolute ? static_cast<double>((rest[i] > 0) - (rest[i] < 0)) : rest[i];
        Cell* row = cells.data() + (node[i] - first) * stride;
        const std::uint8_t* b = bins.data() + i * width;
        for (std::size_t f = 0; f < width; ++f) {
          Cell& c = row[f * kBins + b[f]];
          c.sum += g;
          c.count += 1;
        }
      }
      for (std::size_t k = 0; k < count; ++k) {
        const Cell* row = cells.data() + k * stride;
        Cell all;
        for (std::size_t b = 0; b < kBins; ++b) all.sum += row[b].sum, all.count += row[b].count;
        if (all.count < 2 * smallest) continue;
        double best = 1e-12 + all.sum * all.sum / all.count;
        for (std::size_t f = 0; f < width; ++f) {
          Cell left;
          for (std::size_t b = 0; b < ends[f].size(); ++b) {
            left.sum += row[f * kBins + b].sum;
            left.count += row[f * kBins + b].count;
            const double right = all.count - left.count, other = all.sum - left.sum;
            if (left.count < smallest) continue;
            if (right < smallest) break;
            const double gain = left.sum * left.sum / left.count + other * other / right;
            if (gain > best * (1 + 1e-12)) {
              best = gain;
              nodes_[base + first + k] = Node{static_cast<std::uint16_t>(f), ends[f][b]};
              cut[first + k] = static_cast<std::uint8_t>(b);
            }
          }
        }
      }
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t at = node[i];
        const bool right = cut[at] != 255 && bins[i * width + nodes_[base + at].feature] > cut[at];
        node[i] = static_cast<std::uint32_t>(2 * at + 1 + (right ? 1 : 0));
      }
    }
    for (auto& list : members) list.clear();
    for (std::size_t i = 0; i < n; ++i) members[node[i] - inner].push_back(rest[i]);
    const std::size_t leaf = leaves_.size();
    for (auto& list : members) {
      double value = 0;
      if (!list.empty()) {
        value = absolute ? median(list) : std::accumulate(list.begin(), list.end(), 0.0) / static_cast<double>(list.size());
      }
      leaves_.push_back(static_cast<float>(options.rate * value));
    }
    for (std::size_t i = 0; i < n; ++i) rest[i] -= leaves_[leaf + node[i] - inner];
    trees_.push_back(base);
  }
}

double Trees::predict(const double* features) const {
  const std::size_t inner = (std::size_t{1} << depth_) - 1;
  double sum = start_;
  const Node* tree = nodes_.data();
  const float* leaf = leaves_.data();
  for (std::size_t t = 0; t < trees_.size(); ++t, tree += inner, leaf += inner + 1) {
    std::size_t at = 0;
    for (int level = 0; level < depth_; ++level) {
      at = 2 * at + 1 + (static_cast<float>(features[tree[at].feature]) > tree[at].threshold ? 1 : 0);
    }
    sum += leaf[at - inner];
  }
  return sum;
}

}  // namespace fuselab::perfdb
