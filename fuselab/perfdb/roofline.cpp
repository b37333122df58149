#include "fuselab/perfdb/roofline.h"

#include <algorithm>

namespace fuselab::perfdb {

Rates rates_of(const Family& family, const DeviceProfile* device, const std::vector<std::size_t>& rows) {
  Rates best;
  for (std::size_t i : rows) {
    best.flops = std::max(best.flops, family.flops[i] / family.latency_us[i]);
    best.bytes = std::max(best.bytes, family.bytes[i] / family.latency_us[i]);
  }
  if (device == nullptr) return best;
  // Messages travel over links, of which the tier, not the device, tells the rate: what was seen is the better guess there.
  const double peak = device->peak_flops(family.peak);
  if (peak > 0) best.flops = peak / 1e6;
  if (device->memory_bytes_per_s > 0 && family.kind != FamilyKind::kCommunication) best.bytes = device->memory_bytes_per_s / 1e6;
  return best;
}

double roofline_us(const Rates& rates, double flops, double bytes) {
  return std::max(rates.flops > 0 ? flops / rates.flops : 0.0, rates.bytes > 0 ? bytes / rates.bytes : 0.0);
}

}  // namespace fuselab::perfdb
