#include "fuselab/perfdb/communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "fuselab/perfdb/kernel_file.h"
#include "fuselab/perfdb/table.h"

namespace fuselab::perfdb {
namespace {

std::optional<std::int64_t> whole(std::string_view cell) {
  const std::optional<double> v = number_in(cell);
  if (!v || *v != std::floor(*v) || *v < 0 || *v > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*v);
}

double linear(const CommunicationFile::Row& a, const CommunicationFile::Row& b, std::int64_t bytes) {
  const double t = static_cast<double>(bytes - a.bytes) / static_cast<double>(b.bytes - a.bytes);
  return a.latency_us + t * (b.latency_us - a.latency_us);
}

}  // namespace

CommunicationFile CommunicationFile::read(const std::string& path) {
  const Table table = Table::read(path);
  CommunicationFile out;
  out.path = path;
  const std::size_t bytes = table.need("message_bytes"), ranks = table.need("num_devices");
  const auto tier = table.find("topology_tier"), dtype = table.find("dtype");
  out.has_tier = tier.has_value();
  bool any_latency = false;
  for (const std::string_view c : kLatencyColumns) any_latency = any_latency || table.find(c);
  if (!any_latency) static_cast<void>(table.need("Duration(us)"));
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const auto b = whole(table.get(r, bytes)), n = whole(table.get(r, ranks));
    const auto latency = latency_of(table, r, {});
    if (!b || !n || !latency) continue;
    Row row{*b,
            *n,
            tier ? whole(table.get(r, *tier)) : std::nullopt,
            dtype ? canonical_dtype(table.get(r, *dtype)) : "",
            latency->first,
            table.line(r)};
    out.rows.push_back(std::move(row));
  }
  out.measure_spread();
  return out;
}

void CommunicationFile::measure_spread() {
  std::map<std::tuple<std::int64_t, std::int64_t, std::string>, std::vector<const Row*>> curves;
  for (const Row& r : rows) curves[{r.ranks, r.tier.value_or(-1), r.dtype}].push_back(&r);
  std::vector<double> errors;
  for (auto& [key, curve] : curves) {
    std::sort(curve.begin(), curve.end(), [](const Row* a, const Row* b) { return a->bytes < b->bytes; });
    for (std::size_t i = 1; i + 1 < curve.size(); ++i) {
      if (curve[i - 1]->bytes == curve[i + 1]->bytes) continue;
      errors.push_back(std::fabs(std::log(linear(*curve[i - 1], *curve[i + 1], curve[i]->bytes) / curve[i]->latency_us)));
    }
  }
  if (errors.empty()) return;
  std::sort(errors.begin(), errors.end());
  spread_ = errors[std::min(errors.size() - 1, static_cast<std::size_t>(0.9 * static_cast<double>(errors.size())))];
}

Answer CommunicationFile::lookup(std::int64_t bytes, std::int64_t ranks, std::optional<std::int64_t> tier,
                                 const std::string& dtype) const {
  std::vector<const Row*> fits;
  for (const Row& r : rows) {
    if (r.ranks != ranks || (has_tier && tier && r.tier != tier) || (!dtype.empty() && r.dtype != dtype)) continue;
    fits.push_back(&r);
  }
  if (fits.empty())
    return Answer::miss("shape_mismatch: no row of these ranks" + std::string(tier ? " and tier" : "") +
                        (dtype.empty() ? "" : " and dtype"));
  std::stable_sort(fits.begin(), fits.end(), [](const Row* a, const Row* b) { return a->bytes < b->bytes; });
  const auto anchor = [&](const Row& r) { return fmt::format("{}:{}", path, r.line); };
  // The latency of one message size; several rows for it (dtypes, tiers) must be told apart by the caller.
  const auto at = [&](std::size_t i, bool& ambiguous) {
    for (std::size_t k = 0; k < fits.size(); ++k) {
      if (fits[k]->bytes == fits[i]->bytes && (fits[k]->tier != fits[i]->tier || fits[k]->dtype != fits[i]->dtype))
        ambiguous = true;
    }
    return fits[i];
  };
  const auto above = std::lower_bound(fits.begin(), fits.end(), bytes, [](const Row* r, std::int64_t b) { return r->bytes < b; });
  bool ambiguous = false;
  Answer out;
  if (above != fits.end() && (*above)->bytes == bytes) {
    // The last of several measurements of one point is the newest.
    const auto last =
        std::upper_bound(fits.begin(), fits.end(), bytes, [](std::int64_t b, const Row* r) { return b < r->bytes; }) - 1;
    const Row& r = *at(static_cast<std::size_t>(last - fits.begin()), ambiguous);
    if (ambiguous) return Answer::miss("ambiguous: several rows for these bytes and ranks; ask for a dtype or a tier");
    out.source = Source::measured;
    out.latency_us = out.lo = out.hi = r.latency_us;
    out.method = "exact";
    out.anchors = {anchor(r)};
    return out;
  }
  if (above == fits.begin() || above == fits.end()) {
    return Answer::miss(fmt::format("shape_mismatch: {} bytes are outside the measured {} to {}", bytes, fits.front()->bytes,
                                    fits.back()->bytes));
  }
  const auto hi_index = static_cast<std::size_t>(above - fits.begin());
  const Row &b = *at(hi_index, ambiguous), &a = *at(hi_index - 1, ambiguous);
  if (ambiguous) return Answer::miss("ambiguous: several rows for the neighbouring bytes; ask for a dtype or a tier");
  out.source = Source::interpolated;
  out.latency_us = linear(a, b, bytes);
  out.lo = out.latency_us * std::exp(-spread_);
  out.hi = out.latency_us * std::exp(spread_);
  out.method = "linear between neighbours";
  out.anchors = {anchor(a), anchor(b)};
  return out;
}

}  // namespace fuselab::perfdb
