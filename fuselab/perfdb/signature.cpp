#include "fuselab/perfdb/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "fuselab/core/hash.h"

namespace fuselab::perfdb {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  return s;
}

std::string upper(std::string_view s) {
  std::string out(trimmed(s));
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

void append_slot(std::string& out, const Slot& s) {
  if (s.present) out += dims_text(s.dims);
  out += ':';
  out += s.dtype;
  out += ':';
  out += s.format;
  out += ';';
}

void append_side(std::string& out, std::string_view shapes, std::string_view dtypes, std::string_view formats) {
  if (const auto slots = parse_slots(shapes, dtypes, formats)) {
    for (const Slot& s : *slots) append_slot(out, s);
    return;
  }
  for (const std::string_view text : {shapes, dtypes, formats}) {
    out += unquoted(text);
    out += '/';
  }
}

}  // namespace

std::string_view unquoted(std::string_view cell) {
  cell = trimmed(cell);
  while (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = trimmed(cell.substr(1, cell.size() - 2));
  if (cell == "\"") return {};
  return cell;
}

bool says_nothing(std::string_view cell) {
  const std::string_view text = unquoted(cell);
  return text.empty() || text == "N/A" || text == "NULL" || text == "None" || text == "NA" || text == "nan";
}

std::vector<std::string_view> split_slots(std::string_view cell) {
  cell = unquoted(cell);
  std::vector<std::string_view> slots;
  while (true) {
    const std::size_t at = cell.find(';');
    slots.push_back(trimmed(cell.substr(0, at)));
    if (at == std::string_view::npos) return slots;
    cell.remove_prefix(at + 1);
  }
}

std::string canonical_dtype(std::string_view word) {
  std::string w = upper(unquoted(word));
  if (w.starts_with("DT_")) w.erase(0, 3);
  if (w.starts_with("TORCH.")) w.erase(0, 6);
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kSame = {{{"FLOAT32", "FLOAT"},
                                                                                           {"FP32", "FLOAT"},
                                                                                           {"FP16", "FLOAT16"},
                                                                                           {"HALF", "FLOAT16"},
                                                                                           {"BFLOAT16", "BF16"},
                                                                                           {"FLOAT64", "DOUBLE"},
                                                                                           {"FP8_E4M3", "FLOAT8_E4M3FN"},
                                                                                           {"FLOAT8_E4M3", "FLOAT8_E4M3FN"},
                                                                                           {"BOOLEAN", "BOOL"},
                                                                                           {"UNDEFINED", ""},
                                                                                           {"NULL", ""},
                                                                                           {"N/A", ""},
                                                                                           {"NONE", ""},
                                                                                           {"LONG", "INT64"}}};
  for (const auto& [from, to] : kSame) {
    if (w == from) return std::string(to);
  }
  return w;
}

std::string canonical_format(std::string_view word) {
  std::string w = upper(unquoted(word));
  if (w.starts_with("FORMAT_")) w.erase(0, 7);
  if (w == "NULL" || w == "N/A" || w == "NONE" || w == "UNDEFINED") w.clear();
  return w;
}

std::optional<double> dtype_bytes(std::string_view dtype) {
  static constexpr std::array<std::pair<std::string_view, double>, 22> kBytes = {
      {{"BF16", 2},      {"FLOAT16", 2},       {"FLOAT", 4},         {"DOUBLE", 8},      {"INT8", 1},   {"UINT8", 1},
       {"INT16", 2},     {"UINT16", 2},        {"INT32", 4},         {"UINT32", 4},      {"INT64", 8},  {"UINT64", 8},
       {"BOOL", 1},      {"FLOAT8_E4M3FN", 1}, {"FLOAT8_E5M2", 1},   {"FLOAT8_E8M0", 1}, {"INT4", 0.5}, {"UINT4", 0.5},
       {"COMPLEX64", 8}, {"COMPLEX128", 16},   {"FLOAT4_E2M1", 0.5}, {"HIFLOAT8", 1}}};
  for (const auto& [name, bytes] : kBytes) {
    if (dtype == name) return bytes;
  }
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> parse_dims(std::string_view slot) {
  slot = trimmed(slot);
  if (slot.size() >= 2 && slot.front() == '(' && slot.back() == ')') slot = trimmed(slot.substr(1, slot.size() - 2));
  std::vector<std::int64_t> dims;
  if (slot.empty()) return dims;
  while (true) {
    const std::size_t at = slot.find(',');
    const std::string_view word = trimmed(slot.substr(0, at));
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || error != std::errc() || end != word.data() + word.size() || value < 0) return std::nullopt;
    dims.push_back(value);
    if (at == std::string_view::npos) return dims;
    slot.remove_prefix(at + 1);
  }
}

std::string dims_text(const std::vector<std::int64_t>& dims) {
  return dims.empty() ? "()" : fmt::format("{}", fmt::join(dims, ","));
}

std::vector<std::int64_t> restore_nz(const std::vector<std::int64_t>& dims) {
  const std::size_t n = dims.size();
  if (n < 4) return dims;
  std::vector<std::int64_t> out(dims.begin(), dims.end() - 4);
  std::int64_t rows = 0, columns = 0;
  if (__builtin_mul_overflow(dims[n - 4], dims[n - 1], &rows) || __builtin_mul_overflow(dims[n - 3], dims[n - 2], &columns)) {
    return dims;
  }
  out.push_back(rows);
  out.push_back(columns);
  return out;
}

std::optional<std::vector<Slot>> parse_slots(std::string_view shapes, std::string_view dtypes, std::string_view formats) {
  const std::vector<std::string_view> s = split_slots(shapes), d = split_slots(dtypes), f = split_slots(formats);
  std::vector<Slot> slots(s.size());
  for (std::size_t i = 0; i < s.size(); ++i) {
    Slot& slot = slots[i];
    if (s[i].empty() || s[i] == "N/A" || s[i] == "NULL" || s[i] == "None") continue;
    auto dims = parse_dims(s[i]);
    if (!dims) return std::nullopt;
    slot.dims = std::move(*dims);
    slot.present = !slot.dims.empty();
    if (!slot.present) continue;  // `()` is a scalar: it shows as an empty slot elsewhere
    if (i < d.size()) slot.dtype = canonical_dtype(d[i]);
    if (i < f.size()) slot.format = canonical_format(f[i]);
    if (slot.format == "FRACTAL_NZ") slot.dims = restore_nz(slot.dims);
  }
  slots.resize(used_slots(slots));
  return slots;
}

std::string normalised_type(std::string_view type) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kNames = {
      {{"split_qkv_rmsnorm_rope_kernel_0", "split_qkv_rmsnorm_rope_kernel"}, {"muls_add_kernel_1", "muls_add_kernel"}}};
  type = trimmed(type);
  for (const auto& [from, to] : kNames) {
    if (type == from) return std::string(to);
  }
  return std::string(type);
}

std::string signature(std::string_view type, std::string_view in_shapes, std::string_view in_dtypes, std::string_view in_formats,
                      std::string_view out_shapes, std::string_view out_dtypes, std::string_view out_formats,
                      std::string_view extra) {
  std::string out(type);
  out += '|';
  append_side(out, in_shapes, in_dtypes, in_formats);
  out += '|';
  append_side(out, out_shapes, out_dtypes, out_formats);
  out += '|';
  out += trimmed(extra);
  return out;
}

std::string signature(std::string_view type, const std::vector<Slot>& inputs, const std::vector<Slot>& outputs,
                      std::string_view extra) {
  std::string out(type);
  for (const std::vector<Slot>* side : {&inputs, &outputs}) {
    out += '|';
    for (std::size_t i = 0; i < used_slots(*side); ++i) append_slot(out, (*side)[i]);
  }
  out += '|';
  out += trimmed(extra);
  return out;
}

std::string file_name_of(std::string_view type) {
  std::string out(type);
  bool changed = false;
  for (char& c : out) {
    if (static_cast<unsigned char>(c) >= 0x20 && std::string_view("<>:\"/\\|?*").find(c) == std::string_view::npos && c != 0x7f)
      continue;
    c = '_';
    changed = true;
  }
  while (!out.empty() && (out.back() == '.' || out.back() == ' ')) out.pop_back(), changed = true;
  if (out.empty() || out == "." || out == "..") {
    return type.empty() ? "UNKNOWN_TYPE" : fmt::format("UNKNOWN_TYPE_{:08x}", hash64(type) >> 32);
  }
  if (out.size() > 120) out.resize(120), changed = true;
  return changed ? fmt::format("{}_{:08x}", out, hash64(type) >> 32) : out;
}

}  // namespace fuselab::perfdb
