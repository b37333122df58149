#include "fuselab/perfdb/table.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "fuselab/core/csv.h"
#include "fuselab/core/error.h"
#include "fuselab/core/mapped_file.h"
#include "fuselab/core/whole_file.h"

namespace fuselab::perfdb {
namespace {

constexpr std::string_view kBom = "\xef\xbb\xbf";
constexpr std::size_t kLargest = std::size_t{1} << 28;  // of a file of the database; profiles are streamed, not held

/// The end of the line that begins at `at`, behind its line end; quoted line ends do not count.
std::size_t line_after(std::string_view text, std::size_t at, const std::string& what, std::size_t line) {
  bool quoted = false;
  for (std::size_t i = at; i < text.size(); ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted) continue;
    if (text[i] == '\n') return i + 1;
    if (text[i] == '\r') return i + 1 < text.size() && text[i + 1] == '\n' ? i + 2 : i + 1;
  }
  if (quoted) fail("csv.malformed", "{}:{}: a quote is never closed.", what, line);
  return text.size();
}

std::string_view end_of(std::string_view line) {
  std::size_t n = line.size();
  if (n > 0 && line[n - 1] == '\n') --n;
  if (n > 0 && line[n - 1] == '\r') --n;
  return line.substr(n);
}

std::vector<std::string_view> split_cells(std::string_view line) {
  std::vector<std::string_view> cells;
  std::size_t begin = 0;
  bool quoted = false;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i < line.size() && (quoted || line[i] != ',')) continue;
    cells.push_back(line.substr(begin, i - begin));
    begin = i + 1;
  }
  return cells;
}

}  // namespace

Table::Table(std::vector<std::string> columns, std::string line_end)
    : line_end_(std::move(line_end)), columns_(std::move(columns)), kept_(std::make_shared<std::deque<std::string>>()) {
  changed_ = true;
}

Table Table::read(const std::string& path) { return parse(read_text(path), path); }

Table Table::parse(std::string given, const std::string& what) {
  Table t({});
  t.source_ = what;
  t.changed_ = false;
  t.text_ = std::make_shared<const std::string>(std::move(given));
  const std::string_view text = *t.text_;
  refuse_lfs_pointer(text, what);
  if (text.find('\0') != std::string_view::npos) fail("csv.malformed", "{}: a zero byte is in the text: this is no CSV.", what);
  std::size_t at = text.starts_with(kBom) ? kBom.size() : 0;
  t.bom_ = at > 0;
  if (text.size() == at) fail("db.no_header", "{}: the file is empty, a CSV has a header line at least.", what);
  const std::size_t header_end = line_after(text, at, what, 1);
  t.head_ = text.substr(0, header_end);
  const std::string_view header = text.substr(at, header_end - at), ending = end_of(header);
  if (!ending.empty()) t.line_end_ = ending;
  std::set<std::string> seen;
  for (const std::string_view cell : split_cells(header.substr(0, header.size() - ending.size()))) {
    t.columns_.push_back(cell_value(cell));
    if (!t.columns_.back().empty() && !seen.insert(t.columns_.back()).second) {
      fail("db.duplicate_column", "{}:1: the column \"{}\" stands in the header twice.", what, t.columns_.back());
    }
  }
  std::size_t line = 1 + static_cast<std::size_t>(std::count(header.begin(), header.end(), '\n'));
  for (at = header_end; at < text.size();) {
    const std::size_t next = line_after(text, at, what, line);
    Row row;
    row.raw = text.substr(at, next - at);
    row.end = end_of(row.raw);
    row.line = line;
    const std::string_view body = row.raw.substr(0, row.raw.size() - row.end.size());
    line += static_cast<std::size_t>(std::count(row.raw.begin(), row.raw.end(), '\n'));
    at = next;
    if (body.empty()) {  // an empty line belongs to the text before it
      if (t.rows_.empty()) {
        t.head_ = text.substr(0, next);
      } else {
        Row& last = t.rows_.back();
        const std::size_t old = last.end.size();
        last.raw = {last.raw.data(), last.raw.size() + row.raw.size()};
        last.end = {last.end.data(), old + row.raw.size()};
      }
      continue;
    }
    if (static_cast<std::size_t>(std::count(body.begin(), body.end(), ',')) >= t.columns_.size()) {
      row.cells = split_cells(body);
      if (row.cells.size() > t.columns_.size()) {
        fail("csv.malformed", "{}:{}: {} cells under a header of {} columns.", what, row.line, row.cells.size(),
             t.columns_.size());
      }
    }
    t.rows_.push_back(std::move(row));
  }
  t.last_line_open_ = !t.rows_.empty() && t.rows_.back().end.empty();
  return t;
}

std::optional<std::size_t> Table::find(std::string_view column) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i] == column) return i;
  }
  return std::nullopt;
}

std::size_t Table::need(std::string_view column) const {
  if (const auto at = find(column)) return *at;
  fail("db.missing_column", "{}: there is no column \"{}\"{}.", source_, column, nearest_column(column, columns_));
}

const std::vector<std::string_view>& Table::cells(const Row& row) const {
  if (row.cells.empty() && !row.raw.empty()) {
    const_cast<Row&>(row).cells = split_cells(row.raw.substr(0, row.raw.size() - row.end.size()));
  }
  return row.cells;
}

std::vector<std::string_view>& Table::own_cells(Row& row) {
  cells(row);
  row.raw = {};
  row.cells.resize(columns_.size());
  changed_ = true;
  return row.cells;
}

std::string_view Table::keep(std::string text) const {
  kept_->push_back(std::move(text));
  return kept_->back();
}

std::string_view Table::raw_cell(std::string_view value, std::string_view old) const {
  std::string cell = csv_field(value);
  if (!old.empty() && old.front() == '"' && (cell.empty() || cell.front() != '"')) cell = fmt::format("\"{}\"", cell);
  return keep(std::move(cell));
}

std::string_view Table::get(std::size_t row, std::size_t column) const {
  const std::vector<std::string_view>& c = cells(rows_[row]);
  if (column >= c.size()) return {};
  const std::string_view cell = c[column];
  if (cell.size() < 2 || cell.front() != '"') return cell;
  const std::string_view inner = cell.substr(1, cell.size() - 2);
  return inner.find('"') == std::string_view::npos ? inner : keep(cell_value(cell));
}

void Table::set(std::size_t row, std::size_t column, std::string_view value) {
  if (get(row, column) == value) return;
  std::vector<std::string_view>& c = own_cells(rows_[row]);
  c[column] = raw_cell(value, c[column]);
}

std::size_t Table::add_column(std::string_view name, std::optional<std::size_t> before) {
  const std::size_t at = before.value_or(columns_.size());
  for (Row& row : rows_) own_cells(row).insert(row.cells.begin() + static_cast<std::ptrdiff_t>(at), std::string_view());
  columns_.insert(columns_.begin() + static_cast<std::ptrdiff_t>(at), std::string(name));
  head_ = {};
  changed_ = true;
  return at;
}

std::size_t Table::append(const std::vector<std::string>& values) {
  Row row;
  for (const std::string& v : values) row.cells.push_back(raw_cell(v, {}));
  row.cells.resize(columns_.size());
  row.end = keep(line_end_);
  if (last_line_open_ && !rows_.empty()) rows_.back().end = row.end;
  last_line_open_ = false;
  rows_.push_back(std::move(row));
  changed_ = true;
  return rows_.size() - 1;
}

void Table::erase(std::size_t row) {
  rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(row));
  changed_ = true;
}

std::string Table::text() const {
  if (!changed_ && text_) return *text_;
  std::string out;
  out.reserve(text_ ? text_->size() + text_->size() / 8 : 4096);
  if (!head_.empty()) {
    out += head_;
    if (end_of(head_).empty()) out += line_end_;
  } else {
    if (bom_) out += kBom;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i) out += ',';
      out += csv_field(columns_[i]);
    }
    out += line_end_;
  }
  for (const Row& row : rows_) {
    if (!row.raw.empty()) {
      out += row.raw;
      if (end_of(row.raw).empty()) out += row.end;
      continue;
    }
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      if (i) out += ',';
      out += row.cells[i];
    }
    out += row.end;
  }
  return out;
}

void Table::write(const std::string& path) const {
  const std::string body = text();
  if (!path.ends_with(".gz")) {
    write_whole(path, {body});
    return;
  }
  z_stream z{};
  if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) fail("file.gzip", "{}: cannot compress.", path);
  std::string packed(deflateBound(&z, body.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  z.avail_in = static_cast<uInt>(body.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  const int rc = body.size() < kLargest ? deflate(&z, Z_FINISH) : Z_DATA_ERROR;
  packed.resize(packed.size() - z.avail_out);
  deflateEnd(&z);
  if (rc != Z_STREAM_END) fail("file.gzip", "{}: cannot compress {} bytes.", path, body.size());
  write_whole(path, {packed});
}

std::string read_text(const std::string& path) {
  const MappedFile file(path);
  const std::string_view bytes(file.data(), file.size());
  if (!bytes.starts_with("\x1f\x8b")) {
    if (bytes.size() > kLargest) {
      fail("file.too_large", "{}: {} MiB; a file of the database has at most {} MiB.", path, bytes.size() >> 20, kLargest >> 20);
    }
    return std::string(bytes);
  }
  z_stream z{};
  if (inflateInit2(&z, 15 + 32) != Z_OK) fail("file.gzip", "{}: cannot unpack.", path);
  std::string out;
  std::size_t consumed = 0;
  int rc = Z_OK;
  while (true) {
    if (z.avail_in == 0) {
      const std::size_t n = std::min<std::size_t>(bytes.size() - consumed, std::size_t{1} << 24);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + consumed));
      z.avail_in = static_cast<uInt>(n);
      consumed += n;
    }
    const std::size_t have = out.size(), room = std::max<std::size_t>(have, std::size_t{1} << 16);
    out.resize(have + room);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + have);
    z.avail_out = static_cast<uInt>(room);
    rc = inflate(&z, Z_NO_FLUSH);
    out.resize(have + room - z.avail_out);
    if (rc == Z_STREAM_END && (z.avail_in > 0 || consumed < bytes.size())) rc = inflateReset(&z);  // files are joined like this
    if (rc != Z_OK || out.size() > kLargest) break;
    if (z.avail_in == 0 && consumed == bytes.size() && z.avail_out != 0) break;
  }
  inflateEnd(&z);
  if (out.size() > kLargest) fail("file.gzip", "{}: unpacks to more than {} MiB; unpack it first.", path, kLargest >> 20);
  if (rc != Z_STREAM_END) fail("file.gzip", "{}: the compressed file is damaged or cut off.", path);
  return out;
}

std::string cell_value(std::string_view raw) {
  if (raw.size() < 2 || raw.front() != '"') return std::string(raw);
  std::string out;
  for (std::size_t i = 1; i + 1 < raw.size(); ++i) {
    out += raw[i];
    if (raw[i] == '"') ++i;
  }
  return out;
}

void refuse_lfs_pointer(std::string_view text, const std::string& what) {
  if (!text.starts_with("version https://git-lfs.github.com/spec/")) return;
  fail("db.lfs_pointer", "{}: a Git-LFS pointer stands in the file's place: run `git lfs pull` to fetch the file.", what);
}

std::string nearest_column(std::string_view column, const std::vector<std::string>& columns) {
  // Words in common weigh more than letters: "Task Duration(us)" is near "Duration(us)", "Duration" is too.
  std::string best;
  double best_score = 0;
  for (const std::string& c : columns) {
    if (c.empty()) continue;
    std::vector<std::size_t> row(column.size() + 1), before(column.size() + 1);
    for (std::size_t j = 0; j <= column.size(); ++j) before[j] = 0;
    std::size_t longest = 0;  // the longest common substring
    for (std::size_t i = 1; i <= std::min<std::size_t>(c.size(), 200); ++i) {
      row[0] = 0;
      for (std::size_t j = 1; j <= column.size(); ++j) {
        const bool same =
            std::tolower(static_cast<unsigned char>(c[i - 1])) == std::tolower(static_cast<unsigned char>(column[j - 1]));
        row[j] = same ? before[j - 1] + 1 : 0;
        longest = std::max(longest, row[j]);
      }
      std::swap(row, before);
    }
    const double score = 2.0 * static_cast<double>(longest) / static_cast<double>(c.size() + column.size());
    if (score > best_score) best_score = score, best = c;
  }
  return best_score >= 0.4 ? fmt::format("; the nearest is \"{}\"", best) : std::string();
}

std::string fixed6(double value) { return fmt::format("{:.6f}", value); }

std::optional<double> number_in(std::string_view cell) {
  while (!cell.empty() && static_cast<unsigned char>(cell.front()) <= ' ') cell.remove_prefix(1);
  while (!cell.empty() && static_cast<unsigned char>(cell.back()) <= ' ') cell.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (cell.empty() || error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace fuselab::perfdb
