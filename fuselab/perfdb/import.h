// Recorded profiles into a directory of the database: one CSV per kernel type, a row per signature.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fuselab/perfdb/paths.h"
#include "fuselab/perfdb/profile_scan.h"
#include "fuselab/perfdb/table.h"

namespace fuselab::perfdb {

struct ImportOptions {
  std::vector<std::string> paths;
  std::string target;  ///< the directory; made when it is not there
  Stack stack;         ///< what the caller says of the target; compared with the directory's name and the bundles
  bool allow_stack_mismatch = false;
  int threads = 0;
  std::string command;  ///< for provenance
  std::string time;     ///< UTC, for provenance and collection_date
  std::function<void(const std::string& file, std::uint64_t done, std::uint64_t bytes)> progress;
};

struct ImportedFile {
  std::string name;  ///< MatMulV2.csv
  std::int64_t rows = 0, added = 0, updated = 0;
};

struct ImportReport {
  std::vector<std::string> read;
  std::vector<SkippedFile> skipped;
  std::vector<ImportedFile> files;
  std::vector<std::string> notes;  ///< what a reader should know: rows left out and why, a stack that differs
  ScanCounts counts;
};

/// Reads everything first and writes then: an error leaves the directory as it was. Existing rows get new profile columns and
/// keep all else. Throws the errors of ProfileScan::add, Error("db.raw_profile") for a target inside PROF_*,
/// Error("db.stack_mismatch"), Error("file.write").
ImportReport import_profiles(const ImportOptions& options);

/// Columns a new file has: base, profiling statistics, profiling counters.
std::vector<std::string> imported_columns();
/// The signature of a table's row, with EP Size and our kernels' hash where the file has them.
class RowSigner {
 public:
  /// Throws Error("db.missing_column") for a table without shape columns.
  RowSigner(const Table& table, std::string type);
  std::string operator()(const Table& table, std::size_t row) const;

 private:
  std::string type_;
  std::array<std::size_t, 6> slots_{};
  std::optional<std::size_t> ep_, hash_;
};

/// Versions a bundle's own files state (profiler_info*.json), by part; empty: it says none.
Stack stack_of_bundle(const std::string& bundle);

}  // namespace fuselab::perfdb
