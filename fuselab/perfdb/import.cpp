#include "fuselab/perfdb/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>
#include <utility>

#include "fuselab/core/error.h"
#include "fuselab/perfdb/fia.h"
#include "fuselab/perfdb/mapping_init.h"
#include "fuselab/perfdb/provenance.h"
#include "fuselab/perfdb/signature.h"

namespace fuselab::perfdb {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAverage = "Profiling Average Duration(us)", kMedian = "Profiling Median Duration(us)",
                           kStd = "Profiling Std Duration(us)";

std::vector<std::string> base_columns() {
  std::vector<std::string> out = {"OP State", "Accelerator Core"};
  out.insert(out.end(), kSlotColumns.begin(), kSlotColumns.end());
  return out;
}

/// The number of a column, which is added behind `after` (or last) when it is not there.
std::size_t ensure(Table& table, std::string_view name, std::initializer_list<std::string_view> after) {
  if (const auto at = table.find(name)) return *at;
  for (const std::string_view a : after) {
    if (const auto at = table.find(a)) return table.add_column(name, *at + 1);
  }
  return table.add_column(name);
}

class Writer {
 public:
  Writer(Table& table, const ProfileScan& scan, const std::string& type) : table_(table), scan_(scan), type_(type) {
    average_ = ensure(table, kAverage, {"Average Duration(us)", "Output Formats"});
    median_ = ensure(table, kMedian, {kAverage});
    std_ = ensure(table, kStd, {kMedian});
    average_ = *table.find(kAverage);
    for (std::size_t i = 0; i < scan.counters().size(); ++i) counters_.push_back(ensure_counter(i));
    if (type == kFusedInferAttention) add_fia_columns(table);
    // Columns may have moved while others were added.
    average_ = *table.find(kAverage);
    median_ = *table.find(kMedian);
    std_ = *table.find(kStd);
    for (std::size_t i = 0; i < counters_.size(); ++i) {
      if (counters_[i] != kNoColumn) counters_[i] = *table.find(counter_name(i));
    }
  }

  void write(const std::vector<const ProfileGroup*>& groups, ImportedFile& report, std::vector<Replaced>& replaced) {
    const bool hashed = std::any_of(groups.begin(), groups.end(), [](const ProfileGroup* g) { return !g->kernel_hash.empty(); });
    if (hashed) ensure(table_, "Runtime kernel_hash", {});
    const RowSigner sign(table_, type_);
    std::unordered_map<std::string, std::size_t> rows;
    for (std::size_t r = 0; r < table_.rows(); ++r) rows.emplace(sign(table_, r), r);
    for (const ProfileGroup* g : groups) {
      const std::string key = signature(type_, g->slots[0], g->slots[1], g->slots[2], g->slots[3], g->slots[4], g->slots[5],
                                        extra_of("", g->kernel_hash));
      auto it = rows.find(key);
      if (it == rows.end()) {
        it = rows.emplace(key, append(*g)).first;
        ++report.added;
      } else {
        ++report.updated;
        if (!table_.get(it->second, average_).empty()) {
          replaced.push_back({report.name, it->second, std::string(table_.get(it->second, average_)),
                              std::string(table_.get(it->second, median_)), std::string(table_.get(it->second, std_))});
        }
      }
      fill(it->second, *g);
    }
    report.rows = static_cast<std::int64_t>(table_.rows());
  }

  static std::string extra_of(std::string_view ep, std::string_view hash) { return fmt::format("{}#{}", ep, hash); }

 private:
  static constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);

  std::string counter_name(std::size_t i) const { return "Profiling Average " + scan_.counters()[i]; }
  std::size_t ensure_counter(std::size_t i) {
    const std::string name = counter_name(i);
    if (const auto at = table_.find(name)) return *at;
    // A counter of the contract stands in every file, any other only where a profile has it.
    bool used = i < kCounters.size();
    for (const ProfileGroup& g : scan_.groups()) {
      if (used) break;
      used = g.type == type_ && i < g.counters.size() && g.counters[i].rows > 0;
    }
    if (!used) return kNoColumn;
    return i == 0 ? ensure(table_, name, {kStd}) : ensure(table_, name, {counter_name(i - 1)});
  }
  std::size_t append(const ProfileGroup& g) {
    std::vector<std::string> values(table_.columns().size());
    const auto put = [&](std::string_view column, const std::string& v) {
      if (const auto at = table_.find(column)) values[*at] = v;
    };
    put("OP State", g.state);
    put("Accelerator Core", g.core);
    for (std::size_t k = 0; k < 6; ++k) put(kSlotColumns[k], g.slots[k]);
    put("Runtime kernel_hash", g.kernel_hash);
    return table_.append(values);
  }
  void fill(std::size_t row, const ProfileGroup& g) {
    const Stats stats = statistics(g.durations);
    table_.set(row, average_, fixed6(stats.mean));
    table_.set(row, median_, fixed6(stats.median));
    table_.set(row, std_, fixed6(stats.std));
    for (std::size_t i = 0; i < counters_.size(); ++i) {
      if (counters_[i] == kNoColumn) continue;
      const bool known = i < g.counters.size() && g.counters[i].rows > 0;
      table_.set(row, counters_[i], known ? fixed6(g.counters[i].sum / static_cast<double>(g.counters[i].rows)) : "");
    }
    if (type_ == kFusedInferAttention)
      fill_fia_shapes(table_, row, g.slots[0], fs::path(scan_.files()[g.source]).parent_path().filename().string());
  }

  Table& table_;
  const ProfileScan& scan_;
  std::string type_;
  std::size_t average_, median_, std_;
  std::vector<std::size_t> counters_;
};

void compare_stacks(const Stack& known, const Stack& other, const std::string& of, const ImportOptions& options,
                    std::vector<std::string>& notes) {
  for (const auto& [part, version] : other) {
    const auto it = known.find(part);
    if (it == known.end() || it->second.empty() || version.empty()) continue;
    const std::string a = plain_version(part, it->second), b = plain_version(part, version);
    if (a == b || a.starts_with(b + ".") || b.starts_with(a + ".")) continue;
    const std::string what = fmt::format("{}: {} {} differs from {} of {}", of, part, b, a, options.target);
    if (!options.allow_stack_mismatch) {
      fail("db.stack_mismatch", "{}; one directory holds one stack. Choose another directory, or --allow-stack-mismatch.", what);
    }
    notes.push_back(what + " (allowed)");
  }
}

void count_notes(const ScanCounts& c, std::vector<std::string>& notes) {
  const auto note = [&](std::int64_t n, const char* what) {
    if (n > 0) notes.push_back(fmt::format("{} {}", n, what));
  };
  note(c.bad_duration, "rows have no duration that is a finite positive number: not averaged");
  note(c.without_shapes, "rows have no shapes (N/A): not used");
  note(c.communication, "rows are collectives (hcom_*): left to `fuselab db comm`");
  note(c.communication_twins, "rows are twins of a collective: counted once");
  note(c.without_type, "rows have no kernel type: not used");
}

}  // namespace

std::vector<std::string> imported_columns() {
  std::vector<std::string> out = base_columns();
  for (const std::string_view c : {kAverage, kMedian, kStd}) out.emplace_back(c);
  for (const std::string_view c : kCounters) out.push_back("Profiling Average " + std::string(c));
  return out;
}

RowSigner::RowSigner(const Table& table, std::string type)
    : type_(std::move(type)), ep_(table.find("EP Size")), hash_(table.find("Runtime kernel_hash")) {
  for (std::size_t k = 0; k < 6; ++k) slots_[k] = table.need(kSlotColumns[k]);
}

std::string RowSigner::operator()(const Table& t, std::size_t row) const {
  const auto cell = [&](std::size_t k) { return t.get(row, slots_[k]); };
  return signature(type_, cell(0), cell(1), cell(2), cell(3), cell(4), cell(5),
                   Writer::extra_of(ep_ ? t.get(row, *ep_) : "", hash_ ? t.get(row, *hash_) : ""));
}

Stack stack_of_bundle(const std::string& bundle) {
  Stack out;
  std::error_code error;
  std::vector<fs::path> files;
  for (auto it = fs::directory_iterator(bundle, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("profiler_info") && name.ends_with(".json")) files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const nlohmann::json info = nlohmann::json::parse(read_text(file.string()), nullptr, false);
    if (!info.is_object()) continue;
    const auto take = [&](const char* part, std::initializer_list<const char*> keys) {
      for (const char* key : keys) {
        if (!out.contains(part) && info.contains(key) && info[key].is_string()) out[part] = info[key].get<std::string>();
      }
    };
    take("cann", {"cann_version", "CANN Version"});
    take("torch", {"torch_version", "torch_npu_version"});
    take("vllm", {"vllm_ascend_version", "vllm_version"});
  }
  return out;
}

ImportReport import_profiles(const ImportOptions& options) {
  if (is_raw_profile_dir(options.target)) {
    fail("db.raw_profile", "{}: the target lies in a raw profile folder (PROF_*); the database has its own place.",
         options.target);
  }
  ImportReport report;
  const std::vector<ProfileFile> files = find_profiles(options.paths, report.skipped);
  Stack known = options.stack;
  if (const auto named = parse_version_dir(fs::path(options.target).filename().string())) {
    if (!options.stack.empty()) compare_stacks(*named, options.stack, "the given stack", options, report.notes);
    known = *named;
  }
  std::set<std::string> bundles;
  for (const ProfileFile& f : files) {
    if (bundles.insert(f.bundle).second) compare_stacks(known, stack_of_bundle(f.bundle), f.bundle, options, report.notes);
  }
  std::string current;
  ProfileScan scan(options.threads, [&](std::uint64_t done, std::uint64_t bytes) {
    if (options.progress) options.progress(current, done, bytes);
  });
  for (const ProfileFile& f : files) {
    current = f.path;
    scan.add(f.path);
    report.read.push_back(f.path);
  }
  report.counts = scan.counts();
  count_notes(report.counts, report.notes);

  std::vector<std::string> types;
  std::unordered_map<std::string, std::vector<const ProfileGroup*>> by_type;
  for (const ProfileGroup& g : scan.groups()) {
    if (by_type[g.type].empty()) types.push_back(g.type);
    by_type[g.type].push_back(&g);
  }
  // What is there is read before anything is written: a damaged file stops the import while the directory is as it was.
  const auto path_of = [&](const std::string& type) {
    return (fs::path(options.target) / (file_name_of(type) + ".csv")).string();
  };
  std::unordered_map<std::string, Table> existing;
  for (const std::string& type : types) {
    if (fs::exists(path_of(type))) existing.emplace(type, Table::read(path_of(type)));
  }
  for (auto& [type, table] : existing) RowSigner(table, type);
  std::error_code error;
  fs::create_directories(options.target, error);
  if (error) fail("file.write", "{}: cannot make the folder: {}.", options.target, error.message());
  std::vector<Replaced> replaced;
  for (const std::string& type : types) {
    ImportedFile file;
    file.name = file_name_of(type) + ".csv";
    const auto there = existing.find(type);
    Table table = there != existing.end() ? std::move(there->second) : Table(imported_columns());
    Writer(table, scan, type).write(by_type[type], file, replaced);
    table.write(path_of(type));
    report.files.push_back(std::move(file));
  }
  if (!types.empty() &&
      write_first_mapping(options.target, options.time.substr(0, std::min<std::size_t>(10, options.time.size())))) {
    report.notes.push_back("a first op_mapping.yaml was written: every kernel answers to its own name");
  }
  record_import(options, report, {bundles.begin(), bundles.end()}, replaced);
  return report;
}

}  // namespace fuselab::perfdb
