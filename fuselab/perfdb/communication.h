// Collectives: rows of message bytes, ranks and, where the file has it, a tier of the topology.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fuselab/perfdb/query.h"

namespace fuselab::perfdb {

class CommunicationFile {
 public:
  /// Throws the errors of Table::read, Error("db.missing_column").
  static CommunicationFile read(const std::string& path);

  struct Row {
    std::int64_t bytes = 0, ranks = 0;
    std::optional<std::int64_t> tier;
    std::string dtype;
    double latency_us = 0;
    std::size_t line = 0;
  };
  std::string path;
  std::vector<Row> rows;
  bool has_tier = false;

  /// An exact row is measured; between two rows of the same ranks and tier the latency is linear in the bytes, with the spread of
  /// the file's own leave-one-out errors as interval. A tier takes part when the file has the column and the caller knows it; the
  /// dtype only when it is asked for. Rows that contradict each other (several for one point, tier or dtype not told) are a miss
  /// with the reason.
  Answer lookup(std::int64_t bytes, std::int64_t ranks, std::optional<std::int64_t> tier, const std::string& dtype) const;

 private:
  double spread_ = 0;  ///< 90th percentile of |log(linear / measured)| over the inner points
  void measure_spread();
};

}  // namespace fuselab::perfdb
