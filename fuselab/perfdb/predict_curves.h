// Rows as curves along one axis: the two neighbours that hold a question between them, or the end that lies nearest.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fuselab/perfdb/predict_space.h"

namespace fuselab::perfdb {

struct Neighbours {
  std::size_t low = 0, high = 0;  ///< rows; with `inside` false the nearest row and the one before it, away from the question
  double share = 0;               ///< of the high row when linear in the axis; outside 0..1 when not inside
  bool inside = false;
};

class Curves {
 public:
  /// The axis that is moved along; all others are equal within a curve.
  Curves(const Family& family, std::size_t axis);

  std::size_t axis() const { return axis_; }
  /// Nothing without a curve for x or with fewer than two rows left on it. A row at x itself, if not hidden, is both neighbours.
  std::optional<Neighbours> around(const double* x, const Hidden& hidden) const;

 private:
  const std::vector<std::uint32_t>* find(const double* x) const;
  std::uint64_t key(const double* x) const;

  const Family* family_;
  std::size_t axis_;
  std::unordered_map<std::uint64_t, std::vector<std::vector<std::uint32_t>>> curves_;  // rows by rising x, by hash
};

}  // namespace fuselab::perfdb
