#include "fuselab/perfdb/provenance.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "fuselab/core/hash.h"
#include "fuselab/core/version.h"
#include "fuselab/core/whole_file.h"
#include "fuselab/perfdb/import.h"

namespace fuselab::perfdb {
namespace {

namespace fs = std::filesystem;

/// XXH3 of a file's bytes, as `xxhsum -H3` prints it. Read in pieces, so that it is never resident.
std::string hash_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  std::vector<char> buffer(std::size_t{1} << 20);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), file.gcount() > 0) {
    XXH3_64bits_update(state.get(), buffer.data(), static_cast<std::size_t>(file.gcount()));
  }
  return hex(XXH3_64bits_digest(state.get()));
}

/// What of a bundle's other files is there: they matter for attention rows.
bool holds(const std::string& bundle, const char* name) {
  std::error_code error;
  for (const char* folder : {"", "ASCEND_PROFILER_OUTPUT"}) {
    if (fs::exists(fs::path(bundle) / folder / name, error)) return true;
  }
  return false;
}

bool holds_jsonl(const std::string& bundle) {
  std::error_code error;
  for (auto it = fs::directory_iterator(bundle, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->path().extension() == ".jsonl") return true;
  }
  return false;
}

}  // namespace

std::string yaml_scalar(std::string_view text) {
  bool plain =
      !text.empty() && (std::isalpha(static_cast<unsigned char>(text.front())) || text.front() == '/' || text.front() == '_');
  for (const char c : text) {
    plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' || c == '/' || c == '+');
  }
  for (const std::string_view word : {"true", "false", "null", "yes", "no", "on", "off", "True", "False", "Null", "Yes", "No"}) {
    plain = plain && text != word;
  }
  if (plain) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string with_list_entry(std::string text, const std::string& key, const std::string& entry) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  std::size_t last = std::string::npos;  // where the last top-level key begins
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
    const char c = text[at];
    if (c != ' ' && c != '#' && c != '-' && c != '\n' && c != '\r' && c != '\t') last = at;
    at = end + 1;
  }
  const bool is_last = last != std::string::npos && text.compare(last, key.size() + 1, key + ":") == 0;
  if (!is_last) text += key + ":\n";
  return text + entry;
}

std::string with_top_value(const std::string& text, const std::string& key, const std::string& value) {
  const std::string head = key + ":";
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    if (text.compare(at, head.size(), head) == 0) {
      std::size_t stop = end;
      if (stop > at && text[stop - 1] == '\r') --stop;
      const std::size_t comment = text.find(" #", at);
      if (comment < stop) stop = comment;
      return text.substr(0, at) + head + " " + value + text.substr(stop);
    }
    at = end + 1;
  }
  return head + " " + value + "\n" + text;
}

void record_import(const ImportOptions& options, const ImportReport& report, const std::vector<std::string>& bundles,
                   const std::vector<Replaced>& replaced) {
  std::string e = fmt::format("  - tool: fuselab db import\n    version: {}\n", yaml_scalar(std::string(version())));
  if (!options.command.empty()) e += "    command: " + yaml_scalar(options.command) + "\n";
  if (!options.time.empty()) e += "    time: " + yaml_scalar(options.time) + "\n";
  e += "    stack: {";
  bool first = true;
  for (const auto& [part, v] : options.stack) {
    e += fmt::format("{}{}: {}", first ? "" : ", ", part, yaml_scalar(v));
    first = false;
  }
  e += "}\n    bundles:\n";
  for (const std::string& b : bundles) {
    e += fmt::format("      - {{name: {}, operator_details: {}, trace_view: {}, fia_jsonl: {}}}\n",
                     yaml_scalar(fs::path(b).filename().string()), holds(b, "operator_details.csv"), holds(b, "trace_view.json"),
                     holds_jsonl(b));
  }
  e += "    inputs:\n";
  for (const std::string& path : report.read) {
    e += fmt::format("      - {{name: {}, xxh3: {}}}\n", yaml_scalar(fs::path(path).filename().string()),
                     yaml_scalar(hash_of_file(path)));
  }
  e += "    files:\n";
  for (const ImportedFile& f : report.files) {
    e += fmt::format("      {}: {{rows: {}, added: {}, updated: {}, completeness: measured}}\n", yaml_scalar(f.name), f.rows,
                     f.added, f.updated);
  }
  if (!report.notes.empty()) {
    e += "    notes:\n";
    for (const std::string& n : report.notes) e += "      - " + yaml_scalar(n) + "\n";
  }
  if (!replaced.empty()) {
    e += "    replaced:\n";
    for (const Replaced& r : replaced) {
      e += fmt::format("      - {{file: {}, row: {}, average: {}, median: {}, std: {}}}\n", yaml_scalar(r.file), r.row,
                       yaml_scalar(r.average), yaml_scalar(r.median), yaml_scalar(r.std));
    }
  }
  const fs::path path = fs::path(options.target) / "provenance.yaml";
  std::error_code error;
  const std::string old = fs::exists(path, error) ? read_text(path.string()) : std::string();
  write_whole(path.string(), {with_list_entry(old, "imports", e)});
  const fs::path mapping = fs::path(options.target) / "op_mapping.yaml";
  if (!options.time.empty() && fs::exists(mapping, error)) {
    const std::string text = read_text(mapping.string());
    const std::string dated = with_top_value(text, "collection_date", "\"" + options.time.substr(0, 10) + "\"");
    if (dated != text) write_whole(mapping.string(), {dated});
  }
}

}  // namespace fuselab::perfdb
