// A CSV of the database that can be changed and written back without touching what was not changed: byte order mark, line ends,
// quoting and the text of every other cell stay as they were read.
#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuselab::perfdb {

class Table {
 public:
  /// An empty table with these columns; lines end in `line_end`.
  explicit Table(std::vector<std::string> columns, std::string line_end = "\n");
  /// Reads `.csv` or `.csv.gz`. Throws Error("file.unreadable"), Error("csv.malformed") with the line, Error("db.lfs_pointer")
  /// for a Git-LFS pointer in the file's place, Error("db.no_header") for an empty file, Error("db.duplicate_column").
  static Table read(const std::string& path);
  static Table parse(std::string text, const std::string& what);

  const std::string& source() const { return source_; }
  const std::vector<std::string>& columns() const { return columns_; }
  std::size_t rows() const { return rows_.size(); }
  /// The number of a column by its exact name; nullopt: not there.
  std::optional<std::size_t> find(std::string_view column) const;
  /// The same; throws Error("db.missing_column") naming the file, the column and the nearest header.
  std::size_t need(std::string_view column) const;

  /// A cell without CSV quoting; a row shorter than the header has empty ones. Valid until the cell is changed.
  std::string_view get(std::size_t row, std::size_t column) const;
  std::size_t line(std::size_t row) const { return rows_[row].line; }  ///< in the file, from 1; 0: appended
  void set(std::size_t row, std::size_t column, std::string_view value);
  /// A new column before `before` (default: last) with empty cells; the number it has now. Numbers of later columns move.
  std::size_t add_column(std::string_view name, std::optional<std::size_t> before = std::nullopt);
  /// A row of values without quoting, one for each column.
  std::size_t append(const std::vector<std::string>& values);
  void erase(std::size_t row);
  bool changed() const { return changed_; }

  /// The file's bytes. Unchanged: those that were read.
  std::string text() const;
  /// text() to a file, atomically (`.gz`: compressed). Throws Error("file.write").
  void write(const std::string& path) const;

 private:
  struct Row {
    std::string_view raw;                 ///< the whole line with its end; empty once a cell changed
    std::vector<std::string_view> cells;  ///< with their quotes, split when first needed
    std::size_t line = 0;
    std::string_view end;
  };
  const std::vector<std::string_view>& cells(const Row& row) const;
  std::vector<std::string_view>& own_cells(Row& row);
  std::string_view keep(std::string text) const;
  std::string_view raw_cell(std::string_view value, std::string_view old) const;

  std::string source_, line_end_ = "\n";
  std::vector<std::string> columns_;
  std::string_view head_;  ///< byte order mark and header line as read; empty once the header changed
  bool bom_ = false, last_line_open_ = false, changed_ = false;
  std::shared_ptr<const std::string> text_;
  mutable std::vector<Row> rows_;
  mutable std::shared_ptr<std::deque<std::string>> kept_;
};

/// A whole file as text, `.gz` unpacked. Throws Error("file.unreadable"), Error("file.gzip") for a damaged or endless one.
std::string read_text(const std::string& path);

/// A cell as it stands in a line: its outer quotes gone, doubled ones single.
std::string cell_value(std::string_view raw);
/// Throws Error("db.lfs_pointer") when the text is a Git-LFS pointer, which stands where a file was not fetched.
void refuse_lfs_pointer(std::string_view text, const std::string& what);

/// `; the nearest is "..."` for an error about a missing column, or "" when nothing is near.
std::string nearest_column(std::string_view column, const std::vector<std::string>& columns);

/// Six decimals, as every number we compute is written.
std::string fixed6(double value);
/// A finite number in a cell; nullopt otherwise.
std::optional<double> number_in(std::string_view cell);

}  // namespace fuselab::perfdb
