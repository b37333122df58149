// What a device can do at best: peaks per dtype, bandwidth of its memory, memory size, cost of a launch, links. From
// `devices/<device>.yaml` (published figures with their source) or from `device_profile` in a directory's provenance.yaml.
#pragma once
#include <map>
#include <optional>
#include <string>

namespace fuselab::perfdb {

struct DeviceProfile {
  std::string name, source;
  std::map<std::string, double> flops;  ///< dense operations per second by dtype as cells write it, without DT_
  double memory_bytes_per_s = 0;
  double memory_bytes = 0;
  double launch_us = 0;
  std::map<int, double> link_bytes_per_s;  ///< by topology tier, one direction per device

  /// Peak of a dtype, operations per second; of any 8-bit float for one of them; 0 when it is not known.
  double peak_flops(const std::string& dtype) const;
};

/// Throws Error("file.unreadable"), Error("perfdb.bad_yaml") with the line, Error("perfdb.bad_device") for a figure that is not a
/// positive number.
DeviceProfile read_device(const std::string& path);

/// The profile of a database directory: `device_profile` of its provenance.yaml; nothing when there is none.
std::optional<DeviceProfile> device_of_directory(const std::string& directory);

}  // namespace fuselab::perfdb
