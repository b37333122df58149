#include "fuselab/perfdb/device.h"

#include <yaml-cpp/yaml.h>

#include <cmath>
#include <filesystem>
#include <string_view>

#include "fuselab/core/error.h"
#include "fuselab/core/mapped_file.h"

namespace fuselab::perfdb {
namespace {

YAML::Node load(const std::string& path) {
  const MappedFile file(path);
  constexpr std::size_t kLargest = 4u << 20;
  if (file.size() > kLargest)
    fail("perfdb.bad_yaml", "{} has {} bytes; a device or provenance file has less than 4 MiB.", path, file.size());
  try {
    return YAML::Load(std::string(file.data(), file.size()));
  } catch (const YAML::Exception& e) {
    fail("perfdb.bad_yaml", "{}, line {}: {}.", path, e.mark.line + 1, e.msg);
  }
}

double figure(const YAML::Node& node, const std::string& path, const std::string& key) {
  double value = 0;
  if (!node.IsScalar() || !YAML::convert<double>::decode(node, value) || !std::isfinite(value) || value <= 0) {
    fail("perfdb.bad_device", "{}: {} is not a positive number.", path, key);
  }
  return value;
}

double optional_figure(const YAML::Node& root, const char* key, const std::string& path) {
  const YAML::Node node = root[key];
  return node ? figure(node, path, key) : 0;
}

}  // namespace

double DeviceProfile::peak_flops(const std::string& dtype) const {
  const auto found = flops.find(dtype);
  if (found != flops.end()) return found->second;
  const bool fp8 = dtype.rfind("FLOAT8", 0) == 0, half = dtype == "FLOAT16" || dtype == "FP16" || dtype == "BF16";
  for (const auto& [name, value] : flops) {
    if (fp8 && name.rfind("FLOAT8", 0) == 0) return value;
    if (half && (name == "FLOAT16" || name == "BF16")) return value;
  }
  return 0;
}

DeviceProfile read_device(const std::string& path) {
  const YAML::Node root = load(path);
  if (!root.IsMap()) fail("perfdb.bad_device", "{} is not a map of a device's figures.", path);
  DeviceProfile out;
  out.name = root["name"] ? root["name"].as<std::string>("") : std::filesystem::path(path).stem().string();
  out.source = root["source"] ? root["source"].as<std::string>("") : "";
  if (root["flops"]) {
    for (const auto& entry : root["flops"]) {
      const std::string key = entry.first.as<std::string>("");
      out.flops[key] = figure(entry.second, path, "flops." + key);
    }
  }
  out.memory_bytes_per_s = optional_figure(root, "memory_bytes_per_s", path);
  out.memory_bytes = optional_figure(root, "memory_bytes", path);
  out.launch_us = optional_figure(root, "launch_us", path);
  if (root["links"]) {
    for (const auto& entry : root["links"]) {
      out.link_bytes_per_s[entry.first.as<int>(0)] = figure(entry.second, path, "links");
    }
  }
  return out;
}

std::optional<DeviceProfile> device_of_directory(const std::string& directory) {
  const std::string path = (std::filesystem::path(directory) / "provenance.yaml").string();
  if (!std::filesystem::exists(path)) return std::nullopt;
  const YAML::Node root = load(path);
  if (!root.IsMap() || !root["device_profile"] || !root["device_profile"].IsMap()) return std::nullopt;
  const YAML::Node profile = root["device_profile"];
  DeviceProfile out;
  out.name = root["device"] ? root["device"].as<std::string>("") : "";
  out.source = path;
  out.memory_bytes_per_s = optional_figure(profile, "mem_bw", path);
  const std::pair<const char*, const char*> kPeaks[] = {{"bfloat16_tc_flops", "BF16"}, {"float16_tc_flops", "FLOAT16"},
                                                        {"fp8_tc_flops", "FLOAT8"},    {"int8_tc_flops", "INT8"},
                                                        {"fp4_tc_flops", "FLOAT4"},    {"float32_flops", "FLOAT"}};
  for (const auto& [key, dtype] : kPeaks) {
    if (const double value = optional_figure(profile, key, path); value > 0) out.flops[dtype] = value;
  }
  if (const double link = optional_figure(profile, "intra_node_bw", path); link > 0) out.link_bytes_per_s[1] = link;
  return out;
}

}  // namespace fuselab::perfdb
