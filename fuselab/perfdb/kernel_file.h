// A kernel's CSV as lookup sees it: slots, latency and regime of every row that has a time.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fuselab/perfdb/mapping.h"
#include "fuselab/perfdb/signature.h"
#include "fuselab/perfdb/table.h"

namespace fuselab::perfdb {

/// The columns a row's latency may stand in, best first.
inline constexpr std::array<std::string_view, 3> kLatencyColumns = {"Average Duration(us)", "Profiling Average Duration(us)",
                                                                    "Duration(us)"};

struct KernelFileRow {
  std::size_t row = 0, line = 0;  ///< in the table, and in the file
  double latency_us = 0;
  std::uint8_t column = 0;  ///< of kLatencyColumns
  std::vector<Slot> inputs, outputs;
  std::vector<std::string> regime;  ///< values of KernelFile::regime_columns: what must be equal beside the slots
};

class KernelFile {
 public:
  /// Throws the errors of Table::read, Error("db.missing_column").
  static KernelFile read(const std::string& path, const std::string& type, const KernelPolicy& policy = {});

  std::string type, path;
  std::vector<KernelFileRow> rows;          ///< those with a time, in file order
  std::size_t without_time = 0;             ///< generated or unmeasured rows
  std::size_t unreadable = 0;               ///< rows whose slots are no list of sizes
  std::vector<std::string> regime_columns;  ///< EP Size and Runtime columns that stand in the file
  /// Numbers of rows whose first `count` inputs (all when unset) have these sizes and dtypes, in file order; the caller compares
  /// what a hash does not: formats, outputs. One hash probe; the table of a count is made when it is first asked for.
  /// Thread-safe.
  const std::vector<std::uint32_t>* find(const std::vector<Slot>& inputs, std::optional<std::size_t> count) const;

 private:
  using Index = std::unordered_map<std::uint64_t, std::vector<std::uint32_t>>;
  struct Lazy {
    std::mutex mutex;
    std::map<std::size_t, Index> by_count;
  };
  std::unique_ptr<Lazy> lazy_ = std::make_unique<Lazy>();
};

/// The row's latency: the first finite positive number in the order of the columns; nullopt: the row has no time. With a policy,
/// a profile's duration that exceeds the longer of the two cores' times by more than its ratio is replaced by that time.
std::optional<std::pair<double, std::uint8_t>> latency_of(const Table& table, std::size_t row, const KernelPolicy& policy);

}  // namespace fuselab::perfdb
