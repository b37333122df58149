// Rows of recorded profiles (kernel_details*.csv, op_summary_*.csv) summed up by what makes two launches the same kernel on the
// same data. Streams: memory is the durations (8 bytes per row, for exact medians) and the groups.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fuselab::perfdb {

/// The six cells of shapes, dtypes and formats, inputs first.
inline constexpr std::array<std::string_view, 6> kSlotColumns = {"Input Shapes",  "Input Data Types",  "Input Formats",
                                                                 "Output Shapes", "Output Data Types", "Output Formats"};
/// Counters of the two core kinds in the order the database's files have them.
extern const std::vector<std::string_view> kCounters;

/// Launches of one kernel on one signature.
struct ProfileGroup {
  std::string type;                      ///< normalised
  std::array<std::string, 6> slots;      ///< text of the first row, as read
  std::string state, core, kernel_hash;  ///< first that is not empty; the hash is of our own kernels
  std::vector<double> durations;         ///< microseconds, in file order
  struct Counter {
    double sum = 0;
    std::int64_t rows = 0;
  };
  std::vector<Counter> counters;  ///< by number in ProfileScan::counters
  std::size_t source = 0;         ///< the file it was first seen in, by number in ProfileScan::files
};

struct Stats {
  double mean = 0, median = 0, std = 0;  ///< population standard deviation, two passes
};
Stats statistics(std::vector<double> values);

/// What was read and what was not used, with the reason.
struct ScanCounts {
  std::int64_t rows = 0, used = 0, without_shapes = 0, communication = 0, communication_twins = 0, bad_duration = 0,
               without_type = 0;
};

class ProfileScan {
 public:
  /// `progress(bytes done, bytes in all)` is called now and then from the calling thread.
  explicit ProfileScan(int threads = 0, std::function<void(std::uint64_t, std::uint64_t)> progress = {});
  ~ProfileScan();

  /// Adds the rows of one file; `.gz` is unpacked as it is read. Throws Error("db.missing_column" | "db.level0" | "csv.malformed"
  /// | "db.lfs_pointer" | "db.duplicate_column" | "file.unreadable" | "file.gzip").
  void add(const std::string& path);

  /// In order of first appearance. The same for every thread count.
  const std::vector<ProfileGroup>& groups() const { return groups_; }
  const std::vector<std::string>& counters() const { return counters_; }
  const std::vector<std::string>& files() const { return files_; }
  const ScanCounts& counts() const { return counts_; }

 private:
  struct Columns;
  struct Key;
  struct Part;
  struct Known;
  Columns columns_of(std::string_view header, const std::string& what);
  Part scan_part(std::string_view rows, const Columns& columns, const std::string& what) const;
  std::uint32_t group_of_signature(const Key& key);
  void merge(Part&& part, const Columns& columns);

  int threads_;
  std::function<void(std::uint64_t, std::uint64_t)> progress_;
  std::vector<ProfileGroup> groups_;
  std::unique_ptr<Known> known_;
  std::vector<std::string> counters_, files_;
  std::map<std::string, std::int64_t> communication_;  ///< start and type of collectives seen
  ScanCounts counts_;
};

}  // namespace fuselab::perfdb
