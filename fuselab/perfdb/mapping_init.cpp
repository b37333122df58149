#include "fuselab/perfdb/mapping_init.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "fuselab/core/error.h"
#include "fuselab/core/whole_file.h"
#include "fuselab/perfdb/mapping.h"
#include "fuselab/perfdb/paths.h"
#include "fuselab/perfdb/provenance.h"

namespace fuselab::perfdb {
namespace {

namespace fs = std::filesystem;

std::string list(const std::vector<std::string>& words) { return fmt::format("[{}]", fmt::join(words, ", ")); }

/// An entry's fields as words, in a fixed order.
std::vector<std::pair<std::string, std::string>> fields(const OperatorEntry& e) {
  static constexpr const char* kModes[] = {"compute", "elementwise", "attention_special", "moe_fused", "mtp_projection"};
  return {{"kernel_type", e.kernel_type},
          {"alternate_kernel_types", list(e.alternates)},
          {"sub_kernels", list(e.sub_kernels)},
          {"tc_input_count", e.tc_input_count ? fmt::format("{}", *e.tc_input_count) : ""},
          {"query_mode", kModes[static_cast<std::size_t>(e.mode)]},
          {"category", e.communication ? "communication" : "compute"},
          {"composite", e.composite ? "true" : "false"},
          {"decomposer", e.decomposer ? "true" : "false"},
          {"zero_cost", e.zero_cost ? "true" : "false"},
          {"accepted_miss", e.accepted_miss.value_or("")},
          {"notes", e.notes}};
}

}  // namespace

std::string first_mapping(const std::vector<std::string>& kernels, const std::vector<std::pair<std::string, std::string>>& top) {
  std::string out = "# A first mapping: every kernel answers to its own name. Add the operators that run as these kernels.\n";
  for (const auto& [key, value] : top) out += fmt::format("{}: \"{}\"\n", key, value);
  out += "\noperator_mappings:\n";
  for (const std::string& k : kernels) {
    out += fmt::format("  {}:\n    kernel_type: {}\n    notes: \"[LOW] from a profile, by its own name\"\n",
                       yaml_scalar("profiling." + k), yaml_scalar(k));
  }
  return out;
}

bool write_first_mapping(const std::string& directory, const std::string& date) {
  std::error_code error;
  const fs::path path = fs::path(directory) / "op_mapping.yaml";
  if (fs::exists(path, error)) return false;
  std::vector<std::string> kernels;
  for (auto it = fs::directory_iterator(directory, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    if (it->path().extension() == ".csv") kernels.push_back(it->path().stem().string());
  }
  if (kernels.empty()) fail("db.no_database", "{}: there is no kernel's CSV to map.", directory);
  std::sort(kernels.begin(), kernels.end());
  std::vector<std::pair<std::string, std::string>> top;
  const fs::path whole = fs::weakly_canonical(directory, error);
  if (const auto stack = parse_version_dir(whole.filename().string())) {
    static constexpr std::pair<const char*, const char*> kNames[] = {
        {"vllm", "version"}, {"fuselab", "version"}, {"cann", "cann_version"}, {"torch", "pytorch_version"}};
    for (const auto& [part, name] : kNames) {
      if (const auto it = stack->find(part); it != stack->end()) top.emplace_back(name, it->second);
    }
    top.emplace_back("device", whole.parent_path().parent_path().filename().string());
  }
  if (!date.empty()) top.emplace_back("collection_date", date);
  write_whole(path.string(), {first_mapping(kernels, top)});
  return true;
}

std::vector<std::string> mapping_diff(const std::string& old_file, const std::string& new_file) {
  const Mapping a = Mapping::read(old_file), b = Mapping::read(new_file);
  std::vector<std::string> out;
  for (const auto& [name, entry] : b.operators) {
    if (!a.find(name)) out.push_back("+ " + name);
  }
  for (const auto& [name, entry] : a.operators) {
    const OperatorEntry* other = b.find(name);
    if (!other) {
      out.push_back("- " + name);
      continue;
    }
    const auto before = fields(entry), after = fields(*other);
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i].second == after[i].second) continue;
      const bool text = before[i].first == "notes";
      out.push_back(text ? fmt::format("~ {}: notes", name)
                         : fmt::format("~ {}: {} {} -> {}", name, before[i].first, before[i].second, after[i].second));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace fuselab::perfdb
