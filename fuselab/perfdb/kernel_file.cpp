#include "fuselab/perfdb/kernel_file.h"

#include <algorithm>

#include "fuselab/core/hash.h"

namespace fuselab::perfdb {
namespace {

/// Runtime columns that say where a row is from, not what it measures.
bool describes_source(std::string_view column) {
  return column == "Runtime source_profile" || column == "Runtime metadata_completeness" ||
         column == "Runtime operator_input_shapes_raw";
}

constexpr std::size_t kAll = static_cast<std::size_t>(-1);

std::uint64_t hash_of(const std::vector<Slot>& slots, std::size_t count) {
  const std::size_t n = std::min(used_slots(slots), count);
  std::uint64_t hash = n;
  for (std::size_t i = 0; i < n; ++i) {
    hash = hash64(slots[i].dims.data(), slots[i].dims.size() * sizeof(std::int64_t), hash + 1);
    hash = hash64(slots[i].dtype, hash);
  }
  return hash;
}

}  // namespace

std::optional<std::pair<double, std::uint8_t>> latency_of(const Table& table, std::size_t row, const KernelPolicy& policy) {
  std::array<std::uint8_t, 3> order = {0, 1, 2};
  if (policy.prefer_profiling_rows) order = {1, 0, 2};
  for (const std::uint8_t k : order) {
    const auto at = table.find(kLatencyColumns[k]);
    if (!at) continue;
    const std::optional<double> v = number_in(table.get(row, *at));
    if (!v || !(*v > 0)) continue;
    if (k == 1 && policy.max_duration_to_core_ratio) {
      const auto core = table.find("Accelerator Core"), aic = table.find("Profiling Average aicore_time(us)"),
                 aiv = table.find("Profiling Average aiv_time(us)");
      if (core && aic && aiv && table.get(row, *core) == "MIX_AIC") {
        const double a = number_in(table.get(row, *aic)).value_or(0), b = number_in(table.get(row, *aiv)).value_or(0);
        if (a > 0 && b > 0 && *v > *policy.max_duration_to_core_ratio * std::max(a, b)) return std::pair(std::max(a, b), k);
      }
    }
    return std::pair(*v, k);
  }
  return std::nullopt;
}

KernelFile KernelFile::read(const std::string& path, const std::string& type, const KernelPolicy& policy) {
  const Table table = Table::read(path);
  KernelFile out;
  out.type = type;
  out.path = path;
  std::array<std::size_t, 6> slots{};
  for (std::size_t k = 0; k < 6; ++k)
    slots[k] = table.need(std::array{"Input Shapes", "Input Data Types", "Input Formats", "Output Shapes", "Output Data Types",
                                     "Output Formats"}[k]);
  std::vector<std::size_t> regime;
  for (std::size_t c = 0; c < table.columns().size(); ++c) {
    const std::string& name = table.columns()[c];
    const bool is_regime =
        name == "EP Size" || name == "avg_seq_len" || (name.starts_with("Runtime ") && !describes_source(name));
    if (!is_regime) continue;
    regime.push_back(c);
    out.regime_columns.push_back(name);
  }
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const auto latency = latency_of(table, r, policy);
    if (!latency) {
      ++out.without_time;
      continue;
    }
    const auto cell = [&](std::size_t k) { return table.get(r, slots[k]); };
    auto inputs = parse_slots(cell(0), cell(1), cell(2)), outputs = parse_slots(cell(3), cell(4), cell(5));
    if (!inputs || !outputs) {
      ++out.unreadable;
      continue;
    }
    KernelFileRow row;
    row.row = r;
    row.line = table.line(r);
    row.latency_us = latency->first;
    row.column = latency->second;
    row.inputs = std::move(*inputs);
    row.outputs = std::move(*outputs);
    for (const std::size_t c : regime) row.regime.emplace_back(table.get(r, c));
    out.rows.push_back(std::move(row));
  }
  return out;
}

const std::vector<std::uint32_t>* KernelFile::find(const std::vector<Slot>& inputs, std::optional<std::size_t> count) const {
  const std::size_t n = count.value_or(kAll);
  const Index* index = nullptr;
  {
    const std::lock_guard lock(lazy_->mutex);
    const auto [at, is_new] = lazy_->by_count.try_emplace(n);
    if (is_new) {
      at->second.reserve(rows.size() * 2);
      for (std::size_t r = 0; r < rows.size(); ++r)
        at->second[hash_of(rows[r].inputs, n)].push_back(static_cast<std::uint32_t>(r));
    }
    index = &at->second;  // never changed again, and a map's elements stay where they are
  }
  const auto it = index->find(hash_of(inputs, n));
  return it == index->end() ? nullptr : &it->second;
}

}  // namespace fuselab::perfdb
