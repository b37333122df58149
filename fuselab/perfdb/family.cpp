#include "fuselab/perfdb/family.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "fuselab/core/error.h"
#include "fuselab/perfdb/table.h"

namespace fuselab::perfdb {

std::vector<Family> read_families(const std::string& path) {
  const Table table = Table::read(path);
  std::vector<Family> out;
  std::map<std::string, std::size_t> index;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const Columns columns = [&](std::string_view column) -> std::string_view {
      const auto at = table.find(column);
      return at ? table.get(row, *at) : std::string_view();
    };
    const auto point = describe(columns);
    if (!point || point->latency_us <= 0) continue;
    const auto [slot, fresh] = index.emplace(fmt::format("{} {}", name(point->kind), point->regime), out.size());
    if (fresh) {
      Family family;
      family.kind = point->kind;
      family.file = std::filesystem::path(path).filename().string();
      family.regime = point->regime;
      family.peak = point->peak;
      family.axes = point->axes;
      out.push_back(std::move(family));
    }
    Family& family = out[slot->second];
    if (point->x.size() != family.axes.size()) continue;
    family.x.insert(family.x.end(), point->x.begin(), point->x.end());
    family.latency_us.push_back(point->latency_us);
    family.flops.push_back(point->flops);
    family.bytes.push_back(point->bytes);
    family.line.push_back(static_cast<std::int64_t>(table.line(row)));
  }
  return out;
}

Family without_duplicates(const Family& family) {
  std::map<std::vector<double>, std::vector<std::size_t>> rows;
  const std::size_t d = family.axes.size();
  for (std::size_t i = 0; i < family.size(); ++i) rows[{family.point(i), family.point(i) + d}].push_back(i);
  if (rows.size() == family.size()) return family;
  Family out = family;
  out.x.clear();
  out.latency_us.clear(), out.flops.clear(), out.bytes.clear(), out.line.clear();
  for (auto& [point, members] : rows) {
    std::sort(members.begin(), members.end(), [&](auto a, auto b) { return family.latency_us[a] < family.latency_us[b]; });
    const std::size_t n = members.size(), first = *std::min_element(members.begin(), members.end());
    const double middle = (family.latency_us[members[(n - 1) / 2]] + family.latency_us[members[n / 2]]) / 2;
    out.x.insert(out.x.end(), point.begin(), point.end());
    out.latency_us.push_back(middle);
    out.flops.push_back(family.flops[first]);
    out.bytes.push_back(family.bytes[first]);
    out.line.push_back(family.line[first]);
  }
  return out;
}

}  // namespace fuselab::perfdb
