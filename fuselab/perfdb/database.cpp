#include "fuselab/perfdb/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "fuselab/core/error.h"
#include "fuselab/perfdb/match.h"
#include "fuselab/perfdb/paths.h"

namespace fuselab::perfdb {
namespace {

namespace fs = std::filesystem;

std::optional<std::int64_t> number_of(const Query& q, const char* key) {
  const auto it = q.context.find(key);
  if (it == q.context.end()) return std::nullopt;
  const std::optional<double> v = number_in(it->second);
  if (!v) return std::nullopt;
  return static_cast<std::int64_t>(*v);
}

/// What the query says of the regime agrees with the row; what it leaves open agrees with any.
bool same_regime(const KernelFile& file, const KernelFileRow& row, const Query& q) {
  for (std::size_t i = 0; i < row.regime.size(); ++i) {
    const std::string& value = row.regime[i];
    const std::string* asked = value.empty() ? nullptr : context_of(q, file.regime_columns[i]);
    if (!asked) continue;
    const std::optional<double> a = number_in(*asked), b = number_in(value);
    if (a && b ? *a != *b : *asked != value) return false;
  }
  return true;
}

std::string anchor(const KernelFile& file, const KernelFileRow& row) { return fmt::format("{}:{}", file.path, row.line); }

Answer from_row(const KernelFile& file, const KernelFileRow& row, const Match& match) {
  Answer out;
  out.source = match.rank <= 1 ? Source::measured : Source::approximated;
  out.latency_us = out.lo = out.hi = row.latency_us;
  if (out.source == Source::approximated) {
    // The same blocks run; how much of them is idle is not known. Half a factor each way says so.
    out.lo /= 1.5;
    out.hi *= 1.5;
  }
  out.method = match.rule;
  out.anchors = {anchor(file, row)};
  return out;
}

}  // namespace

std::string_view name_of(Source source) {
  static constexpr std::string_view kNames[] = {"MEASURED", "APPROXIMATED", "INTERPOLATED", "EXTRAPOLATED",
                                                "PARTIAL",  "ZERO_COST",    "MISS"};
  return kNames[static_cast<std::size_t>(source)];
}

Database::Database(const std::string& directory) : directory_(directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) fail("db.no_database", "{}: there is no such directory.", directory);
  const fs::path mapping = fs::path(directory) / "op_mapping.yaml";
  if (!fs::exists(mapping, error)) {
    fail("db.no_database", "{}: there is no op_mapping.yaml; `fuselab db mapping init` writes a first one.", directory);
  }
  mapping_ = Mapping::read(mapping.string());
  for (const auto& [name, entry] : mapping_.operators) {
    if (entry.communication) collectives_.insert(entry.kernel_type);
  }
  const std::string reference = mapping_.get("communication_data_ref");
  communication_directory_ = reference.empty() ? directory : communication_dir(directory, reference);
}

std::vector<std::string> Database::kernels() const {
  std::vector<std::string> out;
  std::error_code error;
  for (auto it = fs::directory_iterator(directory_, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->path().extension() == ".csv") out.push_back(it->path().stem().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

const KernelFile* Database::kernel(const std::string& type) const {
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(type);
  if (it != files_.end()) return it->second.get();
  const fs::path path = fs::path(directory_) / (file_name_of(type) + ".csv");
  std::error_code error;
  std::unique_ptr<KernelFile> file;
  if (fs::exists(path, error)) file = std::make_unique<KernelFile>(KernelFile::read(path.string(), type, mapping_.policy(type)));
  return files_.emplace(type, std::move(file)).first->second.get();
}

const CommunicationFile* Database::communication(const std::string& type) const {
  const std::lock_guard lock(mutex_);
  const auto it = communications_.find(type);
  if (it != communications_.end()) return it->second.get();
  std::unique_ptr<CommunicationFile> file;
  for (const std::string& directory : {communication_directory_, directory_}) {
    const fs::path path = fs::path(directory) / (file_name_of(type) + ".csv");
    std::error_code error;
    if (!file && fs::exists(path, error)) file = std::make_unique<CommunicationFile>(CommunicationFile::read(path.string()));
  }
  return communications_.emplace(type, std::move(file)).first->second.get();
}

const Interpolator* Database::interpolator(const std::string& type) const {
  const KernelFile* file = kernel(type);
  if (!file) return nullptr;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Interpolator>& made = interpolators_[type];
  if (!made) made = std::make_unique<Interpolator>(*file, device_of_directory(directory_));
  return made.get();
}

Answer Database::query(const Query& q) const {
  const OperatorEntry* op = mapping_.find(q.op);
  OperatorEntry own;
  if (!op) {
    // A kernel type that no operator maps to may be asked for by its own name.
    if (!kernel(q.op)) return Answer::miss("unmapped");
    own.name = own.kernel_type = q.op;
    op = &own;
  }
  if (op->composite) return composite(*op, q);
  if (op->communication) return collective(op->kernel_type, q);
  if (op->mode == QueryMode::elementwise) return elementwise(*op, q);
  if (op->zero_cost) {
    Answer out;
    out.source = Source::zero_cost;
    out.method = "zero_cost";
    return out;
  }
  if (op->accepted_miss) {
    Answer out = Answer::miss("accepted_miss: " + *op->accepted_miss);
    out.accepted = true;
    return out;
  }
  return compute(*op, q);
}

Answer Database::compute(const OperatorEntry& op, const Query& q) const {
  const std::size_t first_rank = q.inputs.empty() ? 0 : q.inputs[0].dims.size();
  std::optional<std::size_t> count;
  if (op.tc_input_count) count = static_cast<std::size_t>(*op.tc_input_count);
  bool any_file = false;
  struct Best {
    const KernelFile* file = nullptr;
    const KernelFileRow* row = nullptr;
    Match match{99, ""};
    std::uint8_t column = 0;
  } best;
  std::string ambiguous;
  for (const std::string& name : op.kernels(first_rank)) {
    const KernelFile* file = kernel(name);
    if (!file) continue;
    any_file = true;
    const auto consider = [&](const KernelFileRow& row, const Match& m) {
      if (!same_regime(*file, row, q)) return;
      if (best.row && m.rank == best.match.rank && row.column == best.column && best.file == file &&
          row.regime != best.row->regime && row.latency_us != best.row->latency_us) {
        ambiguous = name;
      }
      if (best.row &&
          std::pair(m.rank, static_cast<int>(row.column)) >= std::pair(best.match.rank, static_cast<int>(best.column)))
        return;
      if (best.row && m.rank < best.match.rank) ambiguous.clear();
      best = {file, &row, m, row.column};
    };
    if (const auto* same = file->find(q.inputs, count)) {
      for (const std::uint32_t r : *same) {
        const KernelFileRow& row = file->rows[r];
        const auto m = match_slots(name, q.inputs, q.outputs, row.inputs, row.outputs, count);
        if (m && m->rank == 0) consider(row, *m);
      }
    }
    if (best.row && best.match.rank == 0) continue;  // nothing that is less than exact can win
    for (const KernelFileRow& row : file->rows) {
      if (const auto m = match_slots(name, q.inputs, q.outputs, row.inputs, row.outputs, count)) consider(row, *m);
    }
  }
  if (!any_file) return Answer::miss("csv_not_found");
  if (!ambiguous.empty() && best.row) return Answer::miss("ambiguous_semantic_match:" + ambiguous);
  if (best.row && best.match.rank <= 1) return from_row(*best.file, *best.row, best.match);
  // Between measured rows: the first kernel whose family has an answer. A row of other ranks or a padded one is the last resort.
  Answer missed = Answer::miss("shape_mismatch");
  Query cut = q;
  if (count && cut.inputs.size() > *count) cut.inputs.resize(*count);
  for (const std::string& name : op.kernels(first_rank)) {
    const Interpolator* between = interpolator(name);
    if (!between) continue;
    Answer a = between->answer(cut);
    if (a.source != Source::miss) return a;
    if (missed.reason == "shape_mismatch") missed = std::move(a);
  }
  return best.row ? from_row(*best.file, *best.row, best.match) : missed;
}

Answer Database::elementwise(const OperatorEntry& op, const Query& q) const {
  Answer out = compute(op, q);
  if (out.source == Source::measured || q.outputs.empty() || !q.outputs[0].present) return out;
  const KernelFile* file = kernel(op.kernel_type);
  if (!file) return out;
  // By the output alone: the same elements written at the same width, whatever the inputs' broadcast. Never measured.
  for (const KernelFileRow& row : file->rows) {
    if (row.outputs.empty() || row.outputs[0].dims != q.outputs[0].dims || row.outputs[0].dtype != q.outputs[0].dtype) continue;
    if (!same_regime(*file, row, q)) continue;
    out = from_row(*file, row, Match{3, "same output"});
    return out;
  }
  return out;
}

Answer Database::collective(const std::string& kernel, const Query& q) const {
  const CommunicationFile* file = communication(kernel);
  if (!file) return Answer::miss("csv_not_found");
  std::optional<std::int64_t> bytes = number_of(q, "message_bytes");
  const std::optional<std::int64_t> ranks = number_of(q, "ranks");
  std::string dtype;
  if (const auto it = q.context.find("dtype"); it != q.context.end()) dtype = canonical_dtype(it->second);
  if (!bytes && !q.inputs.empty() && q.inputs[0].present) {
    const std::optional<double> width = dtype_bytes(q.inputs[0].dtype);
    if (!width) return Answer::miss("shape_mismatch: the width of " + q.inputs[0].dtype + " is not known");
    double elements = 1;
    for (const std::int64_t d : q.inputs[0].dims) elements *= static_cast<double>(d);
    bytes = static_cast<std::int64_t>(elements * *width);
    if (kernel.find("reduceScatter") != std::string::npos && ranks && *ranks > 0) *bytes /= *ranks;  // per-rank output
  }
  if (!bytes || !ranks) return Answer::miss("shape_mismatch: message_bytes (or a tensor) and ranks are needed");
  return file->lookup(*bytes, *ranks, number_of(q, "tier"), dtype);
}

Answer Database::composite(const OperatorEntry& op, const Query& q) const {
  if (op.decomposer) return Answer::miss("unsupported_decomposer: give the kernels one by one");
  // All sub-kernels add up; what is missing makes the answer partial, or a miss where all are required.
  Answer sum;
  sum.method = "sum of sub-kernels";
  std::size_t hits = 0;
  Source worst = Source::measured;
  std::string missing;
  for (const std::string& name : op.sub_kernels) {
    const bool is_collective = name.starts_with("hcom_") || collectives_.contains(name);
    OperatorEntry part;
    part.name = part.kernel_type = name;
    part.tc_input_count = op.tc_input_count;
    Query inner = q;
    inner.outputs.clear();  // the composite's outputs are not each part's
    const Answer a = is_collective ? collective(name, q) : compute(part, inner);
    if (a.source == Source::miss) {
      missing += (missing.empty() ? "" : ", ") + name + " (" + a.reason + ")";
      continue;
    }
    ++hits;
    sum.latency_us += a.latency_us;
    sum.lo += a.lo;
    sum.hi += a.hi;
    sum.anchors.insert(sum.anchors.end(), a.anchors.begin(), a.anchors.end());
    worst = std::max(worst, a.source);
  }
  if (hits == op.sub_kernels.size() && hits > 0) {
    sum.source = worst;
    return sum;
  }
  if (hits == 0 || op.require_all_sub_kernels) return Answer::miss("sub_kernel_miss: " + missing);
  sum.source = Source::partial;
  sum.reason = "sub_kernel_miss: " + missing;
  return sum;
}

}  // namespace fuselab::perfdb
