// A Gaussian process on z over the nearest rows: product of Matérn kernels, one per axis, around the mean of the neighbours.
// Rasmussen and Williams, "Gaussian Processes for Machine Learning", MIT Press 2006, eq. 2.25 and 4.17; the neighbourhood as in
// Vecchia, J. Royal Statistical Society B 50, 1988.
#pragma once
#include <memory>
#include <vector>

#include "fuselab/perfdb/predict_space.h"

namespace fuselab::perfdb {

struct ProcessOptions {
  std::vector<double> scale;  ///< octaves after which an axis has decorrelated
  int neighbours = 32;        ///< at most 64
  int twice_nu = 3;           ///< smoothness: 1, 3 or 5 halves
  double nugget = 1e-3;       ///< variance of a measurement, as a part of the process's
};

class Process {
 public:
  Process(const Space& space, ProcessOptions options);
  ~Process();
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;

  const ProcessOptions& options() const { return options_; }
  /// z at a point in encoded axes from the nearest rows that are not hidden; NaN when there are none.
  double predict(const double* x, const Hidden& hidden) const;
  /// Solves the neighbourhood of every row once, for predict_fast.
  void prepare();
  /// z from the neighbourhood of the row nearest to x. Only after prepare().
  double predict_fast(const double* x) const;

 private:
  struct Tree;
  std::size_t nearest(const double* x, const Hidden& hidden, std::uint32_t* rows, std::size_t want) const;
  double correlation(const double* a, const double* b) const;
  double weights(const std::uint32_t* rows, std::size_t n, double* alpha) const;

  const Space* space_;
  ProcessOptions options_;
  std::vector<double> scaled_;  // rows × axes
  std::unique_ptr<Tree> tree_;
  std::vector<std::uint32_t> members_;  // rows × neighbours
  std::vector<float> alpha_;
  std::vector<double> mean_;
};

}  // namespace fuselab::perfdb
