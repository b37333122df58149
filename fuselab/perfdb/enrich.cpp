#include "fuselab/perfdb/enrich.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/perfdb/fia.h"
#include "fuselab/perfdb/signature.h"

namespace fuselab::perfdb {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kQLengths = "Runtime actual_seq_lengths_values", kKvLengths = "Runtime actual_seq_lengths_kv_values",
                           kTag = "Runtime metadata_completeness";

/// A list of non-negative whole numbers as `1,2,3`; null (where it may be) as nothing.
std::string list_text(const Json& j, const char* name, bool nullable, const std::string& where) {
  if (j.is_null() && nullable) return {};
  bool good = j.is_array();
  std::string out;
  for (std::size_t i = 0; good && i < j.size(); ++i) {
    good = j[i].is_number_integer() && (j[i].is_number_unsigned() || j[i].get<std::int64_t>() >= 0);
    if (good) out += (i ? "," : "") + std::to_string(j[i].get<std::uint64_t>());
  }
  if (!good) {
    fail("db.bad_record", "{}: \"{}\" is a list of whole numbers{}, not {}.", where, name, nullable ? " or null" : "",
         j.dump().substr(0, 60));
  }
  return out;
}

std::string scalar_text(const Json& j, const char* name, const std::string& where) {
  if (j.is_null()) return {};
  if (j.is_string()) return j.get<std::string>();
  if (j.is_number_integer()) return j.dump();
  fail("db.bad_record", "{}: \"{}\" is a whole number or a word, not {}.", where, name, j.dump().substr(0, 60));
}

}  // namespace

FiaRecord parse_fia_record(const std::string& line, const std::string& where) {
  Json j;
  try {
    j = Json::parse(line);
  } catch (const Json::parse_error& e) {
    fail("db.bad_record", "{}: no JSON at byte {} of the line; every line is one object.", where, e.byte);
  }
  if (!j.is_object()) fail("db.bad_record", "{}: a record is an object, not {}.", where, j.type_name());
  const auto need = [&](const char* name, bool nullable) {
    if (!j.contains(name)) fail("db.bad_record", "{}: the field \"{}\" is missing.", where, name);
    return list_text(j[name], name, nullable, where);
  };
  FiaRecord r;
  const std::string q = need("query_shape", false), k = need("key_shape", false), v = need("value_shape", false),
                    kv = need("actual_seq_lengths_kv", true), mask = need("atten_mask_shape", true),
                    table = need("block_table_shape", true);
  const Json& kv_list = j["actual_seq_lengths_kv"];
  const std::string count = kv_list.is_null() ? "" : std::to_string(kv_list.size());
  r.key = fmt::format("{};{};{};{};{};{}", q, k, v, count, mask, table);
  r.values[std::string(kKvLengths)] = kv;
  r.values["Runtime actual_seq_lengths_kv_shape"] = count;
  r.values["Runtime block_table_shape"] = table;
  if (kv_list.is_array() && !kv_list.empty()) {
    double sum = 0;
    for (const Json& n : kv_list) sum += n.get<double>();
    r.values["Runtime avg_seq_len"] = fixed6(sum / static_cast<double>(kv_list.size()));
  }
  if (j.contains("actual_seq_lengths") && !j["actual_seq_lengths"].is_null()) {
    r.values[std::string(kQLengths)] = list_text(j["actual_seq_lengths"], "actual_seq_lengths", true, where);
    r.values["Runtime actual_seq_lengths_shape"] = std::to_string(j["actual_seq_lengths"].size());
  }
  if (j.contains("block_table_valid_blocks")) {
    const Json& blocks = j["block_table_valid_blocks"];
    r.values["Runtime block_table_valid_blocks"] = blocks.is_array() ? list_text(blocks, "block_table_valid_blocks", true, where)
                                                                     : scalar_text(blocks, "block_table_valid_blocks", where);
  }
  for (const char* name : {"num_heads", "num_key_value_heads", "sparse_mode", "input_layout", "block_size"}) {
    if (j.contains(name)) r.values[std::string("Runtime ") + name] = scalar_text(j[name], name, where);
  }
  return r;
}

std::vector<FiaRecord> read_fia_records(const std::string& path) {
  const std::string text = read_text(path);
  std::vector<FiaRecord> out;
  std::map<std::string, std::size_t> seen;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (number == 1 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    FiaRecord r = parse_fia_record(line, fmt::format("{}:{}", path, number));
    const std::string id = fmt::format("{}|{}|{}", r.key, r.values[std::string(kQLengths)], r.values[std::string(kKvLengths)]);
    const auto [it, fresh] = seen.emplace(id, out.size());
    if (fresh) {
      out.push_back(std::move(r));
    } else {
      out[it->second] = std::move(r);
    }
  }
  return out;
}

std::optional<std::string> fia_key(std::string_view input_shapes) {
  const std::vector<std::string_view> slots = split_slots(input_shapes);
  const auto dims = [&](std::size_t i) -> std::optional<std::string> {
    if (i >= slots.size() || says_nothing(slots[i])) return "";
    const auto parsed = parse_dims(slots[i]);
    if (!parsed) return std::nullopt;
    return parsed->empty() ? "" : dims_text(*parsed);
  };
  std::string out;
  for (const std::size_t slot : {0, 1, 2, 6, 4, 14}) {
    const auto text = dims(slot);
    if (!text) return std::nullopt;
    if (slot) out += ';';
    out += *text;
  }
  return out;
}

EnrichReport enrich(Table& table, const std::vector<FiaRecord>& records, const std::string& tag) {
  const std::size_t shapes = table.need("Input Shapes");
  EnrichReport report;
  report.records = records.size();
  std::map<std::string, std::vector<std::size_t>> by_key;
  for (std::size_t i = 0; i < records.size(); ++i) by_key[records[i].key].push_back(i);

  // Rows that are copies of one another apart from their runtime values share the records of their key.
  const auto is_runtime = [](const std::string& c) {
    const auto& all = fia_columns();
    return c != "Runtime source_profile" && std::find(all.begin(), all.end(), c) != all.end();
  };
  std::map<std::string, std::vector<std::size_t>> families;
  std::vector<std::string> order;
  std::set<std::string> used;
  report.rows = table.rows();
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const auto key = fia_key(table.get(r, shapes));
    if (!key || !by_key.contains(*key)) {
      ++report.unmatched;
      continue;
    }
    ++report.matched;
    used.insert(*key);
    std::string family = *key;
    for (std::size_t c = 0; c < table.columns().size(); ++c) {
      if (!is_runtime(table.columns()[c])) family.append("\x1f").append(table.get(r, c));
    }
    if (families[family].empty()) order.push_back(family);
    families[family].push_back(r);
  }
  for (const auto& [key, list] : by_key) report.unused_records += used.contains(key) ? 0 : list.size();
  if (families.empty()) return report;

  add_fia_columns(table);
  const auto fill = [&](std::size_t row, const FiaRecord& r) {
    for (const auto& [column, value] : r.values) {
      if (!value.empty()) table.set(row, *table.find(column), value);
    }
    table.set(row, *table.find(kTag), tag);
  };
  const auto lengths = [&](std::size_t row) {
    return fmt::format("{}|{}", table.get(row, *table.find(kQLengths)), table.get(row, *table.find(kKvLengths)));
  };
  for (const std::string& family : order) {
    std::map<std::string, std::size_t> done;  // rows that hold values already
    std::vector<std::size_t> free;            // rows that hold none
    for (const std::size_t r : families[family]) {
      if (lengths(r) == "|") {
        free.push_back(r);
      } else {
        done.emplace(lengths(r), r);
      }
    }
    const std::size_t first = families[family].front();
    const std::string key = family.substr(0, family.find('\x1f'));
    std::size_t next_free = 0;
    for (const std::size_t i : by_key[key]) {
      const FiaRecord& record = records[i];
      const auto value = [&](std::string_view column) {
        const auto it = record.values.find(std::string(column));
        return it == record.values.end() ? std::string() : it->second;
      };
      const std::string id = fmt::format("{}|{}", value(kQLengths), value(kKvLengths));
      if (const auto it = done.find(id); it != done.end()) {
        fill(it->second, record);
      } else if (next_free < free.size()) {
        fill(free[next_free++], record);
      } else {
        std::vector<std::string> cells;
        for (std::size_t c = 0; c < table.columns().size(); ++c) {
          cells.emplace_back(is_runtime(table.columns()[c]) ? std::string_view() : table.get(first, c));
        }
        const std::size_t row = table.append(cells);
        fill(row, record);
        ++report.added;
      }
    }
  }
  return report;
}

}  // namespace fuselab::perfdb
