#include "fuselab/perfdb/profile_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "fuselab/core/error.h"
#include "fuselab/core/hash.h"
#include "fuselab/perfdb/profile_reader.h"
#include "fuselab/perfdb/signature.h"
#include "fuselab/perfdb/table.h"

namespace fuselab::perfdb {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// A number as the profilers write it: digits with a point. One division of two exact doubles is correctly rounded (Clinger,
/// 1990); all else goes through from_chars.
std::optional<double> fast_number(std::string_view cell) {
  static constexpr double kTens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  std::uint64_t digits = 0;
  int count = 0, decimals = -1;
  for (const char c : cell) {
    if (c == '.' && decimals < 0) {
      decimals = 0;
    } else if (c >= '0' && c <= '9' && ++count <= 15) {
      digits = digits * 10 + static_cast<std::uint64_t>(c - '0');
      if (decimals >= 0) ++decimals;
    } else {
      return number_in(unquoted(cell));
    }
  }
  if (count == 0) return std::nullopt;
  return static_cast<double>(digits) / kTens[std::max(decimals, 0)];
}

/// A raw cell of a part's text: its value where only the quotes must go; doubled quotes stay, unquoted() takes the outer ones.
std::string_view value_of(std::string_view cell) {
  while (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
  return cell;
}

bool nothing(std::string_view cell) {
  if (cell.empty()) return true;
  return cell.size() <= 12 && (says_nothing(value_of(cell)) && cell.find_first_of("0123456789;(") == std::string_view::npos);
}

}  // namespace

const std::vector<std::string_view> kCounters = {
    "aicore_time(us)",      "aic_total_cycles",  "aic_mac_time(us)",     "aic_mac_ratio",        "aic_scalar_time(us)",
    "aic_scalar_ratio",     "aic_mte1_time(us)", "aic_mte1_ratio",       "aic_mte2_time(us)",    "aic_mte2_ratio",
    "aic_fixpipe_time(us)", "aic_fixpipe_ratio", "aic_icache_miss_rate", "aiv_time(us)",         "aiv_total_cycles",
    "aiv_vec_time(us)",     "aiv_vec_ratio",     "aiv_scalar_time(us)",  "aiv_scalar_ratio",     "aiv_mte2_time(us)",
    "aiv_mte2_ratio",       "aiv_mte3_time(us)", "aiv_mte3_ratio",       "aiv_icache_miss_rate", "cube_utilization(%)"};

Stats statistics(std::vector<double> values) {
  if (values.empty()) return {};
  const auto n = static_cast<double>(values.size());
  long double sum = 0;
  for (const double v : values) sum += static_cast<long double>(v);
  const double mean = static_cast<double>(sum / static_cast<long double>(n));
  long double squares = 0;
  for (const double v : values) {
    const long double d = static_cast<long double>(v) - sum / static_cast<long double>(n);
    squares += d * d;
  }
  const std::size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half), values.end());
  double median = values[half];
  if (values.size() % 2 == 0) {
    const double below = *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(half));
    median = below + (median - below) / 2;
  }
  return {mean, median, static_cast<double>(std::sqrt(squares / static_cast<long double>(n)))};
}

struct ProfileScan::Columns {
  std::size_t count = 0, type = kNone, name = kNone, state = kNone, core = kNone, start = kNone, duration = kNone;
  std::array<std::size_t, 6> slots{};
  std::vector<std::pair<std::size_t, std::size_t>> counters;  ///< column, number in counters_
};

namespace {

/// Numbers of what is equal in a hash table with open addressing: only indices are stored, the caller compares.
class IndexTable {
 public:
  IndexTable() : slots_(1024, kFree) {}
  /// The index for which `same(index)` holds among those put under `hash`, or `fresh` after it was put there.
  template <typename Same, typename HashOf>
  std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t fresh, Same same, HashOf hash_of) {
    if (count_ * 2 >= slots_.size()) grow(hash_of);
    std::size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != kFree; at = (at + 1) & (slots_.size() - 1)) {
      if (hash_of(slots_[at]) == hash && same(slots_[at])) return slots_[at];
    }
    slots_[at] = fresh;
    ++count_;
    return fresh;
  }

 private:
  static constexpr std::uint32_t kFree = static_cast<std::uint32_t>(-1);
  template <typename HashOf>
  void grow(HashOf hash_of) {
    std::vector<std::uint32_t> old(slots_.size() * 4, kFree);
    old.swap(slots_);
    for (const std::uint32_t i : old) {
      if (i == kFree) continue;
      std::size_t at = hash_of(i) & (slots_.size() - 1);
      while (slots_[at] != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = i;
    }
  }
  std::vector<std::uint32_t> slots_;
  std::size_t count_ = 0;
};

}  // namespace

/// The cells that name a row's group, as they stand in the text.
struct ProfileScan::Key {
  std::uint64_t hash = 0;
  std::string_view type, kernel_hash;
  std::array<std::string_view, 6> slots;
  bool operator==(const Key& o) const {
    return hash == o.hash && type == o.type && kernel_hash == o.kernel_hash && slots == o.slots;
  }
};

/// What one piece of a file holds.
struct ProfileScan::Part {
  std::vector<Key> keys;  ///< views into the piece
  std::vector<std::string_view> states, cores;
  std::vector<std::pair<std::uint32_t, double>> rows;  ///< group and duration, in order
  std::vector<ProfileGroup::Counter> counters;         ///< group times counters of the file
  std::vector<std::string> communication;              ///< start and type, in order
  ScanCounts counts;
};

/// Texts of the keys seen so far, each once, and their groups.
struct ProfileScan::Known {
  IndexTable table;
  std::vector<Key> keys;  ///< views into `texts`
  std::vector<std::uint32_t> groups;
  std::deque<std::string> texts;
  std::unordered_map<std::string, std::uint32_t> by_signature;

  std::string_view keep(std::string_view s) { return texts.emplace_back(s); }
};

ProfileScan::~ProfileScan() = default;

ProfileScan::ProfileScan(int threads, std::function<void(std::uint64_t, std::uint64_t)> progress)
    : threads_(threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))),
      progress_(std::move(progress)),
      known_(std::make_unique<Known>()) {
  for (const std::string_view c : kCounters) counters_.emplace_back(c);
}

ProfileScan::Columns ProfileScan::columns_of(std::string_view header, const std::string& what) {
  const Table table = Table::parse(std::string(header), what);
  const std::vector<std::string>& names = table.columns();
  Columns out;
  out.count = names.size();
  const auto any = [&](std::initializer_list<std::string_view> words) {
    for (const std::string_view w : words) {
      if (const auto at = table.find(w)) return *at;
    }
    return kNone;
  };
  const auto need = [&](std::initializer_list<std::string_view> words) {
    const std::size_t at = any(words);
    if (at == kNone) {
      fail("db.missing_column", "{}: there is no column \"{}\"{}.", what, *words.begin(), nearest_column(*words.begin(), names));
    }
    return at;
  };
  out.type = need({"Type", "OP Type"});
  out.duration = need({"Duration(us)", "Task Duration(us)"});
  if (any({kSlotColumns[0]}) == kNone && any({kSlotColumns[3]}) == kNone) {
    fail("db.level0", "{}: the profile has no shapes (it was recorded at level 0); record it at level 1 or higher.", what);
  }
  for (std::size_t k = 0; k < 6; ++k) out.slots[k] = need({kSlotColumns[k]});
  out.name = any({"Name", "Op Name"});
  out.state = any({"OP State"});
  out.core = any({"Accelerator Core", "Task Type"});
  out.start = any({"Start Time(us)", "Task Start Time(us)", "Task Start Time"});
  static constexpr std::string_view kNoCounters[] = {
      "Step Id",   "Device_id", "Model ID",      "Task ID",       "Stream ID",     "Wait Time(us)", "Task Wait Time(us)",
      "Block Dim", "Block Num", "Mix Block Dim", "Mix Block Num", "HF32 Eligible", "Context ID"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t known[] = {out.type, out.duration, out.name, out.state, out.core, out.start};
    if (names[i].empty() || std::find(std::begin(known), std::end(known), i) != std::end(known)) continue;
    if (std::find(out.slots.begin(), out.slots.end(), i) != out.slots.end()) continue;
    if (std::find(std::begin(kNoCounters), std::end(kNoCounters), names[i]) != std::end(kNoCounters)) continue;
    auto at = std::find(counters_.begin(), counters_.end(), names[i]);
    if (at == counters_.end()) at = counters_.insert(counters_.end(), names[i]);
    out.counters.emplace_back(i, static_cast<std::size_t>(at - counters_.begin()));
  }
  return out;
}

ProfileScan::Part ProfileScan::scan_part(std::string_view rows, const Columns& columns, const std::string& what) const {
  Part part;
  IndexTable found;
  const std::size_t counters = columns.counters.size();
  std::vector<std::string_view> cells(columns.count);
  const char *at = rows.data(), *const end = at + rows.size();
  const auto line_text = [&](const char* from) {
    return std::string(from, std::min<std::size_t>(40, static_cast<std::size_t>(end - from)));
  };
  while (at < end) {
    const char* const row = at;
    std::size_t n = 0;
    bool done = false;
    while (!done) {
      const char* begin = at;
      if (at < end && *at == '"') {
        for (++at;; ++at) {
          at = static_cast<const char*>(std::memchr(at, '"', static_cast<std::size_t>(end - at)));
          if (at == nullptr)
            fail("csv.malformed", "{}: a quote is never closed in the row that begins '{}'.", what, line_text(row));
          if (at + 1 < end && at[1] == '"') {
            ++at;
            continue;
          }
          ++at;
          break;
        }
        if (at < end && *at != ',' && *at != '\n' && *at != '\r') {
          fail("csv.malformed", "{}: text stands behind a closing quote in the row that begins '{}'.", what, line_text(row));
        }
      } else {
        while (at < end && *at != ',' && *at != '\n' && *at != '\r') ++at;
      }
      if (n < columns.count) cells[n] = {begin, static_cast<std::size_t>(at - begin)};
      ++n;
      done = at == end || *at != ',';
      if (!done) ++at;
    }
    if (at < end && *at == '\r') ++at;
    if (at < end && *at == '\n') ++at;
    if (n == 1 && cells[0].empty()) continue;
    if (n != columns.count) {
      fail("csv.malformed",
           "{}: {} cells under a header of {} columns in the row that begins '{}'; a file cut off ends like this.", what, n,
           columns.count, line_text(row));
    }
    ++part.counts.rows;
    const std::string_view type = unquoted(cells[columns.type]);
    if (type.empty() || type == "N/A") {
      ++part.counts.without_type;
      continue;
    }
    const std::string_view name = columns.name == kNone ? std::string_view() : value_of(cells[columns.name]);
    if (type.starts_with("hcom_") || name.find("AivKernel") != std::string_view::npos) {
      const bool twin = name.find("AivKernel") != std::string_view::npos;
      if (twin || columns.start == kNone) {
        ++(twin ? part.counts.communication_twins : part.counts.communication);
      } else {
        const std::string_view start = unquoted(cells[columns.start]);
        part.communication.push_back(fmt::format("{}|{}", start.substr(0, start.find('.')), type));
      }
      continue;
    }
    if (nothing(cells[columns.slots[0]]) && nothing(cells[columns.slots[3]])) {
      const bool without_inputs = cells[columns.slots[0]].size() >= 2 && !cells[columns.slots[3]].empty() &&
                                  value_of(cells[columns.slots[0]]).empty() && value_of(cells[columns.slots[3]]).empty() &&
                                  value_of(cells[columns.slots[1]]).find("N/A") == std::string_view::npos;
      if (!without_inputs) {
        ++part.counts.without_shapes;
        continue;
      }
    }
    const std::optional<double> duration = fast_number(cells[columns.duration]);
    if (!duration || !(*duration > 0)) {
      ++part.counts.bad_duration;
      continue;
    }
    ++part.counts.used;
    std::string_view hash_word;
    if (type.starts_with("autofused_")) {
      const std::size_t cut = name.rfind('_');
      if (cut != std::string_view::npos) hash_word = name.substr(cut + 1);
    }
    Key key;
    key.type = type;
    key.kernel_hash = hash_word;
    key.hash = hash64(type, hash64(hash_word));
    for (std::size_t k = 0; k < 6; ++k) {
      key.slots[k] = cells[columns.slots[k]];
      key.hash = hash64(key.slots[k], key.hash);
    }
    const auto fresh = static_cast<std::uint32_t>(part.keys.size());
    const std::uint32_t group = found.find_or_add(
        key.hash, fresh, [&](std::uint32_t i) { return part.keys[i] == key; },
        [&](std::uint32_t i) { return i == fresh ? key.hash : part.keys[i].hash; });
    if (group == fresh) {
      part.keys.push_back(key);
      part.states.emplace_back();
      part.cores.emplace_back();
      part.counters.resize(part.counters.size() + counters);
    }
    const auto take = [&](std::string_view& into, std::size_t column) {
      if (into.empty() && column != kNone && unquoted(cells[column]) != "N/A") into = unquoted(cells[column]);
    };
    take(part.states[group], columns.state);
    take(part.cores[group], columns.core);
    part.rows.emplace_back(group, *duration);
    ProfileGroup::Counter* const sums = part.counters.data() + group * counters;
    for (std::size_t i = 0; i < counters; ++i) {
      if (const std::optional<double> v = fast_number(cells[columns.counters[i].first])) {
        sums[i].sum += *v;
        ++sums[i].rows;
      }
    }
  }
  return part;
}

std::uint32_t ProfileScan::group_of_signature(const Key& key) {
  const std::string type = normalised_type(key.type);
  std::array<std::string, 6> text;
  for (std::size_t k = 0; k < 6; ++k) text[k] = cell_value(key.slots[k]);
  const std::string sign = signature(type, text[0], text[1], text[2], text[3], text[4], text[5], key.kernel_hash);
  const auto [at, is_new] = known_->by_signature.emplace(sign, static_cast<std::uint32_t>(groups_.size()));
  if (is_new) {
    ProfileGroup& group = groups_.emplace_back();
    group.type = type;
    group.slots = std::move(text);
    group.kernel_hash = key.kernel_hash;
    group.source = files_.size() - 1;
  }
  return at->second;
}

void ProfileScan::merge(Part&& part, const Columns& columns) {
  Known& known = *known_;
  std::vector<std::uint32_t> group_of(part.keys.size());
  const std::size_t counters = columns.counters.size();
  for (std::size_t i = 0; i < part.keys.size(); ++i) {
    const Key& key = part.keys[i];
    const auto fresh = static_cast<std::uint32_t>(known.keys.size());
    const std::uint32_t at = known.table.find_or_add(
        key.hash, fresh, [&](std::uint32_t k) { return known.keys[k] == key; },
        [&](std::uint32_t k) { return k == fresh ? key.hash : known.keys[k].hash; });
    if (at == fresh) {
      Key kept = key;
      kept.type = known.keep(key.type);
      kept.kernel_hash = known.keep(key.kernel_hash);
      for (std::string_view& s : kept.slots) s = known.keep(s);
      known.keys.push_back(kept);
      known.groups.push_back(group_of_signature(key));
    }
    group_of[i] = known.groups[at];
    ProfileGroup& group = groups_[group_of[i]];
    if (group.state.empty()) group.state = part.states[i];
    if (group.core.empty()) group.core = part.cores[i];
    group.counters.resize(counters_.size());
    for (std::size_t c = 0; c < counters; ++c) {
      ProfileGroup::Counter& sum = group.counters[columns.counters[c].second];
      sum.sum += part.counters[i * counters + c].sum;
      sum.rows += part.counters[i * counters + c].rows;
    }
  }
  for (const auto& [i, duration] : part.rows) groups_[group_of[i]].durations.push_back(duration);
  for (std::string& c : part.communication)
    ++(communication_[std::move(c)]++ ? counts_.communication_twins : counts_.communication);
  const auto add = [&](std::int64_t ScanCounts::* field) { counts_.*field += part.counts.*field; };
  for (const auto field : {&ScanCounts::rows, &ScanCounts::used, &ScanCounts::without_shapes, &ScanCounts::communication,
                           &ScanCounts::communication_twins, &ScanCounts::bad_duration, &ScanCounts::without_type}) {
    add(field);
  }
}

void ProfileScan::add(const std::string& path) {
  ProfileReader reader(path);
  const Columns columns = columns_of(reader.header(), path);
  files_.push_back(path);
  communication_.clear();  // start times of two files have nothing to do with each other
  const ScanCounts before = counts_;
  while (true) {
    std::vector<ProfileReader::Piece> pieces;
    while (static_cast<int>(pieces.size()) < threads_) {
      if (auto piece = reader.next()) {
        pieces.push_back(std::move(*piece));
      } else {
        break;
      }
    }
    if (pieces.empty()) break;
    std::vector<Part> parts(pieces.size());
    std::vector<std::exception_ptr> errors(pieces.size());
    const auto work = [&](std::size_t i) {
      try {
        parts[i] = scan_part(pieces[i].text(), columns, path);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    };
    std::vector<std::thread> workers;
    for (std::size_t i = 1; i < pieces.size(); ++i) workers.emplace_back(work, i);
    work(0);
    for (std::thread& w : workers) w.join();
    for (const std::exception_ptr& e : errors) {
      if (e) std::rethrow_exception(e);
    }
    for (Part& part : parts) merge(std::move(part), columns);
    for (ProfileReader::Piece& piece : pieces) reader.done(piece);
    if (progress_) progress_(reader.bytes_done(), reader.bytes());
  }
  if (counts_.used == before.used && counts_.without_shapes > before.without_shapes &&
      counts_.communication == before.communication) {
    fail("db.level0", "{}: none of {} rows has shapes (recorded at level 0?); record the profile at level 1 or higher.", path,
         counts_.rows - before.rows);
  }
}

}  // namespace fuselab::perfdb
