#include "fuselab/perfdb/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/perfdb/import.h"
#include "fuselab/perfdb/kernel_file.h"
#include "fuselab/perfdb/mapping.h"
#include "fuselab/perfdb/paths.h"

namespace fuselab::perfdb {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kListed = 10;  // of one rule in one file

bool known_dtype(const std::string& word) {
  static const std::set<std::string> kOthers = {"", "STRING", "BIT", "INT1", "UINT1", "INT2", "QINT8", "QINT32", "RESOURCE"};
  return kOthers.contains(word) || dtype_bytes(word).has_value();
}

bool known_format(const std::string& word) {
  static const std::set<std::string> kWords = {
      "",      "ND",          "NCHW",          "NHWC",           "HWCN",       "NC1HWC0", "NCDHW",
      "NDHWC", "NDC1HWC0",    "FRACTAL_Z",     "FRACTAL_Z_3D",   "FRACTAL_NZ", "NCL",     "NZ",
      "DHWCN", "NC1HWC0_C04", "FRACTAL_Z_C04", "FRACTAL_ZN_RNN", "ND_RNN_BIAS"};
  return kWords.contains(word);
}

std::size_t without_trailing(const std::vector<std::string_view>& slots, std::string (*canonical)(std::string_view)) {
  std::size_t n = slots.size();
  while (n > 0 && canonical(slots[n - 1]).empty()) --n;
  return n;
}

class Linter {
 public:
  explicit Linter(const std::string& directory) : directory_(directory) {}

  LintReport run() {
    std::error_code error;
    if (!fs::is_directory(directory_, error)) fail("db.no_database", "{}: there is no such directory.", directory_);
    if (is_raw_profile_dir(directory_)) add(true, "raw_profile", "", 0, "the directory lies in raw profiler output (PROF_*)");
    std::vector<std::string> csvs, mappings;
    for (auto it = fs::directory_iterator(directory_, error); !error && it != fs::directory_iterator(); it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (it->is_directory()) {
        if (name.starts_with("PROF_"))
          add(true, "raw_profile", name, 0, "raw profiler output is an input, not part of a database: move it away");
        continue;
      }
      if (name.ends_with(".csv")) csvs.push_back(name);
      if (name.starts_with("op_mapping") && (name.ends_with(".yaml") || name.ends_with(".yml"))) mappings.push_back(name);
      if (name.ends_with(".part")) add(false, "left_over", name, 0, "a write that was interrupted left this file: remove it");
    }
    std::sort(csvs.begin(), csvs.end());
    std::sort(mappings.begin(), mappings.end());
    for (const std::string& name : csvs) csv(name);
    if (csvs.empty()) add(true, "no_csv", "", 0, "there is no CSV in the directory");
    if (mappings.size() > 1) {
      add(true, "two_mappings", "", 0, fmt::format("several mappings: {}; one directory has one", fmt::join(mappings, ", ")));
    } else if (mappings.empty() && !compute_.empty()) {
      add(true, "no_mapping", "", 0, "there is no op_mapping.yaml; `fuselab db mapping init` writes a first one");
    }
    for (const std::string& name : mappings) mapping(name);
    const std::string own = fs::path(directory_).lexically_normal().filename().string();
    const std::string base = own.empty() ? fs::path(directory_).lexically_normal().parent_path().filename().string() : own;
    if (report_.without_time > report_.measured && base.find("generated") == std::string::npos &&
        base.find("staging") == std::string::npos) {
      add(true, "generated_name", "", 0,
          fmt::format("{} rows without a time against {} measured: the directory's name must say `generated` or `staging`",
                      report_.without_time, report_.measured));
    }
    for (const auto& [key, count] : counts_) {
      if (count > kListed)
        report_.findings.push_back(
            {key.error, key.rule, key.file, 0, fmt::format("{} more of these ({} in all)", count - kListed, count)});
    }
    std::stable_sort(report_.findings.begin(), report_.findings.end(),
                     [](const Finding& a, const Finding& b) { return a.file < b.file; });
    return std::move(report_);
  }

 private:
  struct Key {
    std::string file, rule;
    bool error;
    auto operator<=>(const Key&) const = default;
  };

  void add(bool error, const std::string& rule, const std::string& file, std::size_t line, const std::string& text) {
    if (++counts_[{file, rule, error}] <= kListed) report_.findings.push_back({error, rule, file, line, text});
  }

  void csv(const std::string& name) {
    ++report_.files;
    try {
      const Table table = Table::read((fs::path(directory_) / name).string());
      const std::string type = name.substr(0, name.size() - 4);
      if (table.find("message_bytes") || type.starts_with("hcom_")) {
        communication(table, name);
      } else {
        compute_.insert(type);
        compute(table, name, type);
      }
    } catch (const Error& e) {
      add(true, e.code(), name, 0, e.what());
    }
  }

  void latency_cells(const Table& table, const std::string& name) {
    bool any = false;
    for (const std::string_view column : kLatencyColumns) {
      const auto at = table.find(column);
      any = any || at;
      for (std::size_t r = 0; at && r < table.rows(); ++r) {
        const std::string_view cell = table.get(r, *at);
        const auto value = number_in(cell);
        if (!says_nothing(cell) && (!value || *value < 0))
          add(true, "bad_latency", name, table.line(r), fmt::format("{}: \"{}\" is no time", column, cell.substr(0, 40)));
      }
    }
    if (!any) add(true, "no_latency_column", name, 1, fmt::format("none of the columns {}", fmt::join(kLatencyColumns, ", ")));
    for (std::size_t r = 0; r < table.rows(); ++r) ++(latency_of(table, r, {}) ? report_.measured : report_.without_time);
    report_.rows += table.rows();
  }

  void compute(const Table& table, const std::string& name, const std::string& type) {
    const RowSigner sign(table, type);
    latency_cells(table, name);
    std::vector<std::size_t> regime;
    for (std::size_t c = 0; c < table.columns().size(); ++c) {
      const std::string& column = table.columns()[c];
      const bool tells_source = column == "Runtime source_profile" || column == "Runtime metadata_completeness" ||
                                column == "Runtime operator_input_shapes_raw";
      if (column == "avg_seq_len" || (column.starts_with("Runtime ") && !tells_source)) regime.push_back(c);
    }
    const auto label = table.find("Runtime metadata_completeness");
    static const std::set<std::string_view> kLabels = {
        "", "profile_shapes_only", "runtime_values", "runtime_values_dumped", "shape_grid_scene_generated", "complete", "legacy"};
    std::map<std::string, std::size_t> seen;
    for (std::size_t r = 0; r < table.rows(); ++r) {
      const std::size_t line = table.line(r);
      std::string key = sign(table, r);
      for (const std::size_t c : regime) key.append("\x1f").append(table.get(r, c));
      const auto [it, fresh] = seen.emplace(std::move(key), line);
      if (!fresh)
        add(true, "duplicate_signature", name, line, fmt::format("the same kernel on the same data as line {}", it->second));
      side(table, name, r, "Input");
      side(table, name, r, "Output");
      if (label && !kLabels.contains(table.get(r, *label)))
        add(false, "completeness", name, line,
            fmt::format("Runtime metadata_completeness: \"{}\" is no known label", table.get(r, *label)));
    }
  }

  void side(const Table& table, const std::string& name, std::size_t r, const std::string& which) {
    const std::size_t line = table.line(r);
    const std::string_view shapes = table.get(r, table.need(which + " Shapes"));
    if (unquoted(shapes) == "N/A") {
      add(false, "no_shapes", name, line, which + " Shapes: N/A, no lookup finds this row");
      return;
    }
    const auto s = split_slots(shapes), d = split_slots(table.get(r, table.need(which + " Data Types"))),
               f = split_slots(table.get(r, table.need(which + " Formats")));
    std::size_t present = s.size();
    while (present > 0 && says_nothing(s[present - 1])) --present;
    for (std::size_t i = 0; i < s.size(); ++i) {
      if (!says_nothing(s[i]) && !parse_dims(s[i]))
        add(true, "bad_shape", name, line,
            fmt::format("{} Shapes, slot {}: \"{}\" is no list of sizes", which, i, s[i].substr(0, 40)));
    }
    const std::size_t dtypes = without_trailing(d, canonical_dtype), formats = without_trailing(f, canonical_format);
    if (d.size() < present || dtypes > s.size())
      add(true, "slot_alignment", name, line, fmt::format("{}: {} shapes and {} dtypes", which, s.size(), d.size()));
    if (f.size() < present || formats > s.size())
      add(true, "slot_alignment", name, line, fmt::format("{}: {} shapes and {} formats", which, s.size(), f.size()));
    for (const std::string_view word : d) {
      if (!known_dtype(canonical_dtype(word)))
        add(false, "unknown_dtype", name, line, fmt::format("{} Data Types: \"{}\"", which, word.substr(0, 40)));
    }
    for (const std::string_view word : f) {
      if (!known_format(canonical_format(word)))
        add(false, "unknown_format", name, line, fmt::format("{} Formats: \"{}\"", which, word.substr(0, 40)));
    }
  }

  void communication(const Table& table, const std::string& name) {
    const std::size_t bytes = table.need("message_bytes"), ranks = table.need("num_devices");
    const auto tier = table.find("topology_tier"), dtype = table.find("dtype"), bandwidth = table.find("bandwidth_gbps");
    latency_cells(table, name);
    if (name.starts_with("hcom_") && name.size() > 5 && name[5] >= 'A' && name[5] <= 'Z')
      add(false, "communication_name", name, 0, "collectives are written hcom_allReduce_: another version's spelling?");
    const auto whole = [&](std::size_t r, std::size_t c, std::string_view column) {
      const auto v = number_in(table.get(r, c));
      const bool good = v && *v >= 0 && *v == std::floor(*v);
      if (!good)
        add(true, "bad_number", name, table.line(r),
            fmt::format("{}: \"{}\" is no whole number", column, table.get(r, c).substr(0, 40)));
      return good ? *v : -1.0;
    };
    std::map<std::string, std::size_t> points, tiers, dtypes;
    for (std::size_t r = 0; r < table.rows(); ++r) {
      const std::size_t line = table.line(r);
      const double b = whole(r, bytes, "message_bytes"), n = whole(r, ranks, "num_devices");
      if (b < 0 || n < 0) continue;
      const std::string point = fmt::format("{}|{}", b, n),
                        with_dtype = fmt::format("{}|{}", point, dtype ? canonical_dtype(table.get(r, *dtype)) : ""),
                        full = fmt::format("{}|{}", with_dtype, tier ? table.get(r, *tier) : "");
      const auto [same, fresh] = points.emplace(full, line);
      if (!fresh) {
        add(true, "ambiguous_communication", name, line,
            fmt::format("the same bytes, ranks{} and dtype as line {}", tier ? ", tier" : "", same->second));
      } else if (const auto [it, one] = tiers.emplace(with_dtype, line); !one) {
        add(false, "needs_tier", name, line,
            fmt::format("only the tier tells this row from line {}: lookups must know it", it->second));
      } else if (const auto [at, alone] = dtypes.emplace(point + "|" + std::string(tier ? table.get(r, *tier) : ""), line);
                 !alone) {
        add(false, "needs_dtype", name, line,
            fmt::format("only the dtype tells this row from line {}: lookups must ask for it", at->second));
      }
      const auto latency = latency_of(table, r, {});
      if (!bandwidth || !latency || says_nothing(table.get(r, *bandwidth))) continue;
      const double want = b / latency->first / 1e3;  // bytes per microsecond are 1e-3 GB/s
      const auto have = number_in(table.get(r, *bandwidth));
      if (!have || std::abs(*have - want) > std::max(0.01 * want, 2e-6))
        add(true, "bandwidth", name, line,
            fmt::format("bandwidth_gbps is {}, bytes / duration is {:.6f}", table.get(r, *bandwidth), want));
    }
  }

  void mapping(const std::string& name) {
    Mapping m;
    try {
      m = Mapping::read((fs::path(directory_) / name).string());
    } catch (const Error& e) {
      add(true, e.code(), name, 0, e.what());
      return;
    }
    for (const std::string& w : m.warnings) {
      std::string_view text = w;
      if (text.starts_with(m.path)) text.remove_prefix(m.path.size());
      add(false, "mapping", name, 0, std::string(text.starts_with(":") ? text.substr(1) : text));
    }
    std::string there;
    if (const std::string ref = m.get("communication_data_ref"); !ref.empty()) {
      std::error_code error;
      try {
        there = communication_dir(directory_, ref);
        if (!fs::is_directory(there, error))
          add(true, "communication_data_ref", name, 0, fmt::format("communication_data_ref \"{}\" leads to no directory", ref));
      } catch (const Error& e) {
        add(true, e.code(), name, 0, e.what());
      }
    }
    std::set<std::string> referenced, missing;
    const auto refer = [&](const OperatorEntry& e, const std::string& kernel) {
      if (kernel.empty() || !referenced.insert(kernel).second) return;
      std::error_code error;
      const std::string file = file_name_of(kernel) + ".csv";
      const bool found =
          fs::exists(fs::path(directory_) / file, error) || (!there.empty() && fs::exists(fs::path(there) / file, error));
      if (!found) add(false, "missing_file", name, e.line, fmt::format("{}: there is no {}", e.name, file));
    };
    for (const auto& [op, e] : m.operators) {
      refer(e, e.kernel_type);
      for (const std::string& k : e.alternates) refer(e, k);
      for (const std::string& k : e.sub_kernels) refer(e, k);
      for (const auto& [rank, list] : e.by_input_rank) {
        for (const std::string& k : list) refer(e, k);
      }
      refer(e, e.mtp_projection_kernel_type);
    }
    for (const std::string& type : compute_) {
      const bool used = std::any_of(referenced.begin(), referenced.end(),
                                    [&](const std::string& k) { return k == type || file_name_of(k) == type; });
      if (!used) add(false, "unreferenced_file", type + ".csv", 0, "no entry of the mapping leads to this file");
    }
  }

  std::string directory_;
  LintReport report_;
  std::set<std::string> compute_;
  std::map<Key, std::size_t> counts_;
};

}  // namespace

std::size_t LintReport::errors() const {
  return static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(), [](const Finding& f) { return f.error; }));
}

LintReport lint(const std::string& directory) { return Linter(directory).run(); }

}  // namespace fuselab::perfdb
