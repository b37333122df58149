#include "fuselab/profile/kernel_details.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <stdexcept>

#include "fuselab/core/csv.h"
#include "fuselab/core/error.h"
#include "fuselab/core/mapped_file.h"

namespace fuselab::profile {
namespace {

/// What a column means, by any of the names it has had.
enum class Field : std::uint8_t {
  step,
  device,
  task,
  stream,
  name,
  type,
  state,
  core,
  start,
  duration,
  wait,
  blocks,
  mix_blocks,
  in_shapes,
  in_types,
  in_formats,
  out_shapes,
  out_types,
  out_formats,
  counter
};

const std::pair<std::string_view, Field> kNames[] = {
    {"Step Id", Field::step},
    {"Device_id", Field::device},
    {"Task ID", Field::task},
    {"Stream ID", Field::stream},
    {"Name", Field::name},
    {"Op Name", Field::name},
    {"Type", Field::type},
    {"OP Type", Field::type},
    {"OP State", Field::state},
    {"Accelerator Core", Field::core},
    {"Task Type", Field::core},
    {"Start Time(us)", Field::start},
    {"Task Start Time(us)", Field::start},
    {"Task Start Time", Field::start},
    {"Duration(us)", Field::duration},
    {"Task Duration(us)", Field::duration},
    {"Average Duration(us)", Field::duration},
    {"Profiling Average Duration(us)", Field::duration},
    {"Wait Time(us)", Field::wait},
    {"Task Wait Time(us)", Field::wait},
    {"Block Dim", Field::blocks},
    {"Block Num", Field::blocks},
    {"Mix Block Dim", Field::mix_blocks},
    {"Mix Block Num", Field::mix_blocks},
    {"Input Shapes", Field::in_shapes},
    {"Input Data Types", Field::in_types},
    {"Input Formats", Field::in_formats},
    {"Output Shapes", Field::out_shapes},
    {"Output Data Types", Field::out_types},
    {"Output Formats", Field::out_formats},
};

Field field_of(std::string_view column) {
  for (const auto& [name, field] : kNames) {
    if (name == column) return field;
  }
  return Field::counter;
}

/// Blanks at both ends, a tab among them, and quotes that were written into the value.
std::string_view trimmed(std::string_view v) {
  const auto odd = [](char c) { return c == ' ' || c == '\t' || c == '"' || c == '\r'; };
  while (!v.empty() && odd(v.front())) v.remove_prefix(1);
  while (!v.empty() && odd(v.back())) v.remove_suffix(1);
  return v;
}

bool missing(std::string_view v) { return v.empty() || v == "N/A" || v == "NA" || v == "nan"; }

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t at = text.find(';');
    out.push_back(trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

class RowParser {
 public:
  RowParser(const std::string& what, const std::vector<Field>& fields, const std::vector<std::string>& columns)
      : what_(what), fields_(fields), columns_(columns) {}

  KernelRow parse(const std::vector<std::string_view>& cells, std::size_t line) {
    line_ = line;
    if (cells.size() != columns_.size()) bad(fmt::format("{} cells under {} columns", cells.size(), columns_.size()));
    KernelRow row;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      column_ = i;
      const std::string_view v = trimmed(cells[i]);
      const bool list = fields_[i] >= Field::in_shapes && fields_[i] <= Field::out_formats;
      if (list ? v == "N/A" || (v.empty() && cells[i].empty()) : missing(v)) continue;
      take(row, fields_[i], v);
    }
    return row;
  }

 private:
  [[noreturn]] void bad(const std::string& why) const { fail("profile.malformed", "{}:{}: {}.", what_, line_, why); }

  std::optional<std::int64_t> integer(std::string_view v) const {
    std::int64_t out = 0;
    const auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), out);
    if (error == std::errc{} && end == v.data() + v.size()) return out;
    const double wide = number(v);  // some files write 20.0
    if (wide != std::floor(wide) || std::fabs(wide) > 9e15) bad(fmt::format("{} is '{}', no whole number", columns_[column_], v));
    return static_cast<std::int64_t>(wide);
  }
  double number(std::string_view v) const {
    double out = 0;
    const auto [end, error] = std::from_chars(v.data(), v.data() + v.size(), out);
    if (error != std::errc{} || end != v.data() + v.size()) bad(fmt::format("{} is '{}', no number", columns_[column_], v));
    return out;
  }
  double time(std::string_view v) const {
    const double out = number(v);
    if (!(out >= 0) || !std::isfinite(out))
      bad(fmt::format("{} is '{}', a time is finite and not negative", columns_[column_], v));
    return out;
  }
  std::vector<OperandInfo>& sized(std::vector<OperandInfo>& operands, std::size_t n) const {
    if (operands.size() < n) operands.resize(n);
    return operands;
  }
  void shapes(std::vector<OperandInfo>& into, std::string_view v) const {
    try {
      std::vector<std::vector<std::int64_t>> all = parse_shapes(v);
      sized(into, all.size());
      for (std::size_t i = 0; i < all.size(); ++i) into[i].sizes = std::move(all[i]);
    } catch (const std::invalid_argument&) {
      bad(fmt::format("{} is '{}', no list of sizes", columns_[column_], v));
    }
  }
  void texts(std::vector<OperandInfo>& into, std::string_view v, std::string OperandInfo::* member) const {
    const std::vector<std::string_view> all = split(v);
    sized(into, all.size());
    for (std::size_t i = 0; i < all.size(); ++i) into[i].*member = std::string(all[i]);
  }

  void take(KernelRow& row, Field field, std::string_view v) const {
    switch (field) {
      case Field::step:
        row.step = integer(v);
        break;
      case Field::device:
        row.device = integer(v);
        break;
      case Field::task:
        row.task = integer(v);
        break;
      case Field::stream:
        row.stream = integer(v);
        break;
      case Field::name:
        row.name = std::string(v);
        break;
      case Field::type:
        row.type = std::string(v);
        break;
      case Field::state:
        row.state = std::string(v);
        break;
      case Field::core:
        row.core = std::string(v);
        break;
      case Field::start:
        row.start_ns = parse_milli(v);
        if (!row.start_ns) bad(fmt::format("{} is '{}', no number", columns_[column_], v));
        break;
      case Field::duration:
        row.duration_us = time(v);
        break;
      case Field::wait:
        row.wait_us = time(v);
        break;
      case Field::blocks:
        row.blocks = integer(v);
        break;
      case Field::mix_blocks:
        row.mix_blocks = integer(v);
        break;
      case Field::in_shapes:
        shapes(row.inputs, v);
        break;
      case Field::in_types:
        texts(row.inputs, v, &OperandInfo::dtype);
        break;
      case Field::in_formats:
        texts(row.inputs, v, &OperandInfo::format);
        break;
      case Field::out_shapes:
        shapes(row.outputs, v);
        break;
      case Field::out_types:
        texts(row.outputs, v, &OperandInfo::dtype);
        break;
      case Field::out_formats:
        texts(row.outputs, v, &OperandInfo::format);
        break;
      case Field::counter:
        row.counters.emplace(columns_[column_], std::string(v));
        break;
    }
  }

  const std::string& what_;
  const std::vector<Field>& fields_;
  const std::vector<std::string>& columns_;
  std::size_t line_ = 0, column_ = 0;
};

}  // namespace

std::optional<std::int64_t> parse_milli(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  std::int64_t value = 0;
  int digits = 0, decimals = -1;
  for (const char c : text) {
    if (c == '.' && decimals < 0) {
      decimals = 0;
      continue;
    }
    if (c < '0' || c > '9') return std::nullopt;
    ++digits;
    if (decimals >= 3) {
      if (decimals++ == 3 && c >= '5') ++value;  // the first digit that is dropped rounds
      continue;
    }
    if (decimals >= 0) ++decimals;
    if (__builtin_mul_overflow(value, std::int64_t{10}, &value) || __builtin_add_overflow(value, std::int64_t{c - '0'}, &value))
      return std::nullopt;
  }
  if (digits == 0) return std::nullopt;
  for (int d = std::max(decimals, 0); d < 3; ++d) {
    if (__builtin_mul_overflow(value, std::int64_t{10}, &value)) return std::nullopt;
  }
  return negative ? -value : value;
}

std::vector<std::vector<std::int64_t>> parse_shapes(std::string_view text) {
  std::vector<std::vector<std::int64_t>> out;
  for (std::string_view shape : split(text)) {
    out.emplace_back();
    while (!shape.empty()) {
      const std::size_t comma = shape.find(',');
      const std::string_view size = trimmed(shape.substr(0, comma));
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(size.data(), size.data() + size.size(), value);
      if (error != std::errc{} || end != size.data() + size.size() || value < 0) throw std::invalid_argument("size");
      out.back().push_back(value);
      if (comma == std::string_view::npos) break;
      shape.remove_prefix(comma + 1);
      if (shape.empty()) throw std::invalid_argument("size");
    }
  }
  return out;
}

bool KernelTable::has(std::string_view column) const {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

KernelTable parse_kernel_details(std::string_view text, const std::string& what) {
  KernelTable table;
  table.source = what;
  CsvReader reader(text, what);
  std::vector<std::string_view> cells;
  if (!reader.next(cells)) fail("profile.empty", "{}: no kernels in profile, the file is empty.", what);
  std::vector<Field> fields;
  std::set<std::string> seen;
  for (const std::string_view cell : cells) {
    const std::string column(trimmed(cell));
    if (!seen.insert(column).second) fail("profile.malformed", "{}: the column '{}' is there twice.", what, column);
    table.columns.push_back(column);
    fields.push_back(field_of(column));
  }
  for (const Field one : {Field::duration}) {
    const auto at = std::count(fields.begin(), fields.end(), one);
    if (at == 1) continue;
    if (at == 0) {
      fail("profile.no_column", "{} has no column 'Duration(us)' (nor 'Task Duration(us)' or 'Average Duration(us)'); it has {}.",
           what, fmt::join(table.columns, ", "));
    }
    // A database's own figure stands beside the profiler's: the plain name wins, the other is a counter.
    const auto first = std::find(fields.begin(), fields.end(), one);
    std::replace(first + 1, fields.end(), one, Field::counter);
  }
  RowParser parser(what, fields, table.columns);
  while (reader.next(cells)) table.rows.push_back(parser.parse(cells, reader.line()));
  if (table.rows.empty()) fail("profile.empty", "{}: no kernels in profile, it has a header and no row.", what);
  return table;
}

KernelTable read_kernel_details(const std::string& path) {
  const MappedFile file(path);
  return parse_kernel_details({file.data(), file.size()}, path);
}

std::vector<std::pair<std::int64_t, double>> step_sums(const KernelTable& table) {
  if (!table.has("Step Id")) {
    fail("profile.no_column", "{} has no column 'Step Id'; it has {}.", table.source, fmt::join(table.columns, ", "));
  }
  std::map<std::int64_t, double> sums;
  for (const KernelRow& row : table.rows) {
    if (row.step && row.duration_us) sums[*row.step] += *row.duration_us;
  }
  if (sums.empty()) fail("profile.empty", "{}: no kernels in profile, no row has both a step and a duration.", table.source);
  return {sums.begin(), sums.end()};
}

}  // namespace fuselab::profile
