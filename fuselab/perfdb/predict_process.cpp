#include "fuselab/perfdb/predict_process.h"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <nanoflann.hpp>

namespace fuselab::perfdb {
namespace {

constexpr std::size_t kMost = 64;
using Square = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, kMost, kMost>;
using Column = Eigen::Matrix<double, Eigen::Dynamic, 1, 0, kMost, 1>;

/// The nearest rows that may be used, ties by row number, so that an answer does not depend on the order of a search.
class Nearest {
 public:
  using DistanceType = double;
  Nearest(std::size_t want, const Hidden& hidden, std::uint32_t* rows) : want_(want), hidden_(hidden), rows_(rows) {}
  std::size_t size() const { return count_; }
  bool full() const { return count_ == want_; }
  double worstDist() const { return full() ? distance_[count_ - 1] * (1 + 1e-12) : std::numeric_limits<double>::max(); }
  bool addPoint(double distance, std::size_t row) {
    if (hidden_(row)) return true;
    const auto before = [&](std::size_t i) { return distance_[i] < distance || (distance_[i] == distance && rows_[i] < row); };
    if (full() && before(count_ - 1)) return true;
    std::size_t at = full() ? count_ - 1 : count_++;
    for (; at > 0 && !before(at - 1); --at) {
      distance_[at] = distance_[at - 1];
      rows_[at] = rows_[at - 1];
    }
    distance_[at] = distance;
    rows_[at] = static_cast<std::uint32_t>(row);
    return true;
  }

 private:
  std::size_t want_, count_ = 0;
  const Hidden& hidden_;
  std::uint32_t* rows_;
  double distance_[kMost];
};

struct Cloud {
  const std::vector<double>& points;
  std::size_t dims;
  std::size_t kdtree_get_point_count() const { return points.size() / dims; }
  double kdtree_get_pt(std::size_t row, std::size_t axis) const { return points[row * dims + axis]; }
  template <typename Box>
  bool kdtree_get_bbox(Box&) const {
    return false;
  }
};

}  // namespace

struct Process::Tree {
  Cloud cloud;
  nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Simple_Adaptor<double, Cloud>, Cloud, -1, std::size_t> index;
  Tree(const std::vector<double>& points, std::size_t dims)
      : cloud{points, dims}, index(static_cast<int>(dims), cloud, nanoflann::KDTreeSingleIndexAdaptorParams(16)) {
    index.buildIndex();
  }
};

Process::Process(const Space& space, ProcessOptions options) : space_(&space), options_(std::move(options)) {
  const std::size_t n = space.family().size(), d = space.dims();
  options_.neighbours = static_cast<int>(
      std::min<std::size_t>({static_cast<std::size_t>(options_.neighbours), kMost, std::max<std::size_t>(n, 1)}));
  scaled_.resize(n * d);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t a = 0; a < d; ++a) scaled_[i * d + a] = space.row(i)[a] / options_.scale[a];
  }
  tree_ = std::make_unique<Tree>(scaled_, d);
}

Process::~Process() = default;
Process::Process(Process&&) noexcept = default;
Process& Process::operator=(Process&&) noexcept = default;

std::size_t Process::nearest(const double* x, const Hidden& hidden, std::uint32_t* rows, std::size_t want) const {
  Nearest found(want, hidden, rows);
  tree_->index.findNeighbors(found, x, nanoflann::SearchParams());
  return found.size();
}

double Process::correlation(const double* a, const double* b) const {
  // Of a product of Matérn kernels the exponentials become one.
  double sum = 0, factor = 1;
  const double root = std::sqrt(static_cast<double>(options_.twice_nu));
  for (std::size_t k = 0; k < space_->dims(); ++k) {
    const double r = root * std::abs(a[k] - b[k]);
    sum += r;
    if (options_.twice_nu == 3) factor *= 1 + r;
    if (options_.twice_nu == 5) factor *= 1 + r + r * r / 3;
  }
  return factor * std::exp(-sum);
}

double Process::weights(const std::uint32_t* rows, std::size_t n, double* alpha) const {
  const std::size_t d = space_->dims();
  const Eigen::Index size = static_cast<Eigen::Index>(n);
  Square k(size, size);
  Column rhs(size);
  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) mean += space_->z(rows[i]);
  mean /= static_cast<double>(n);
  for (std::size_t i = 0; i < n; ++i) {
    const Eigen::Index ii = static_cast<Eigen::Index>(i);
    rhs(ii) = space_->z(rows[i]) - mean;
    k(ii, ii) = 1 + options_.nugget;
    for (std::size_t j = 0; j < i; ++j) {
      k(ii, static_cast<Eigen::Index>(j)) = correlation(scaled_.data() + rows[i] * d, scaled_.data() + rows[j] * d);
    }
  }
  Eigen::LLT<Eigen::Ref<Square>, Eigen::Lower> factor(k);
  if (factor.info() != Eigen::Success) {  // rows all but on top of each other: their mean is as good
    std::fill(alpha, alpha + n, 0.0);
    return mean;
  }
  factor.solveInPlace(rhs);
  for (std::size_t i = 0; i < n; ++i) alpha[i] = rhs(static_cast<Eigen::Index>(i));
  return mean;
}

double Process::predict(const double* x, const Hidden& hidden) const {
  const std::size_t d = space_->dims();
  double at[32], alpha[kMost];
  std::uint32_t rows[kMost];
  for (std::size_t a = 0; a < d; ++a) at[a] = x[a] / options_.scale[a];
  const std::size_t n = nearest(at, hidden, rows, static_cast<std::size_t>(options_.neighbours));
  if (n == 0) return std::numeric_limits<double>::quiet_NaN();
  double sum = weights(rows, n, alpha);
  for (std::size_t i = 0; i < n; ++i) sum += alpha[i] * correlation(at, scaled_.data() + rows[i] * d);
  return sum;
}

void Process::prepare() {
  const std::size_t n = space_->family().size(), q = static_cast<std::size_t>(options_.neighbours), d = space_->dims();
  members_.assign(n * q, 0);
  alpha_.assign(n * q, 0);
  mean_.assign(n, 0);
  double alpha[kMost];
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t found = nearest(scaled_.data() + i * d, Hidden{}, members_.data() + i * q, q);
    mean_[i] = weights(members_.data() + i * q, found, alpha);
    std::copy(alpha, alpha + found, alpha_.data() + i * q);
  }
}

double Process::predict_fast(const double* x) const {
  const std::size_t d = space_->dims(), q = static_cast<std::size_t>(options_.neighbours);
  double at[32];
  for (std::size_t a = 0; a < d; ++a) at[a] = x[a] / options_.scale[a];
  std::uint32_t row = 0;
  if (nearest(at, Hidden{}, &row, 1) == 0) return std::numeric_limits<double>::quiet_NaN();
  double sum = mean_[row];
  for (std::size_t i = 0; i < q; ++i) sum += alpha_[row * q + i] * correlation(at, scaled_.data() + members_[row * q + i] * d);
  return sum;
}

}  // namespace fuselab::perfdb
