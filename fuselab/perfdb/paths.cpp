#include "fuselab/perfdb/paths.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <utility>

#include "fuselab/core/error.h"

namespace fuselab::perfdb {
namespace {

namespace fs = std::filesystem;

bool is_version(std::string_view v) {
  // [0-9A-Za-z]+([._+-][0-9A-Za-z]+)*
  bool letter = false;
  for (const char c : v) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      letter = true;
    } else if (letter && (c == '.' || c == '_' || c == '+' || c == '-')) {
      letter = false;
    } else {
      return false;
    }
  }
  return letter;
}

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool is_csv(const std::string& name) { return name.ends_with(".csv") || name.ends_with(".csv.gz"); }

/// The folder that holds a bundle: above ASCEND_PROFILER_OUTPUT, or above PROF_*.
std::string bundle_of(const fs::path& file) {
  for (fs::path p = file.parent_path(); p.has_relative_path(); p = p.parent_path()) {
    const std::string name = p.filename().string();
    if (name == "ASCEND_PROFILER_OUTPUT" || name.starts_with("PROF_")) return p.parent_path().string();
    if (p == p.parent_path()) break;
  }
  return file.parent_path().string();
}

}  // namespace

std::string plain_version(std::string_view part, std::string_view version) {
  std::string_view v = version;
  if (v.starts_with(part)) v.remove_prefix(part.size());
  if (v.size() > 1 && (v.front() == 'v' || v.front() == 'V') && std::isdigit(static_cast<unsigned char>(v[1])))
    v.remove_prefix(1);
  if (part == "torch") v = v.substr(0, v.find('+'));
  if (!is_version(v)) {
    fail("db.bad_version", "{} version \"{}\": a version is letters and digits with single `.`, `_`, `+` or `-` between.", part,
         version);
  }
  return std::string(v);
}

std::optional<Stack> parse_version_dir(std::string_view name) {
  const auto parts = [&](std::initializer_list<std::string_view> words) -> std::optional<Stack> {
    Stack out;
    std::string_view rest = name;
    for (auto it = words.begin(); it != words.end(); ++it) {
      if (!rest.starts_with(*it)) return std::nullopt;
      rest.remove_prefix(it->size());
      std::size_t end = rest.size();
      if (it + 1 != words.end()) {
        end = rest.find("_" + std::string(*(it + 1)));
        if (end == std::string_view::npos) return std::nullopt;
      }
      if (!is_version(rest.substr(0, end))) return std::nullopt;
      out[it->empty() ? "isa" : std::string(*it)] = rest.substr(0, end);
      rest.remove_prefix(std::min(rest.size(), end + 1));
    }
    return out;
  };
  if (auto found = parts({"vllm", "torch", "cann"})) return found;
  if (!name.starts_with("fuselab")) return std::nullopt;
  const std::size_t isa = name.rfind('_');
  const std::size_t torch = name.find("_torch");
  if (torch == std::string_view::npos || isa <= torch + 6) return std::nullopt;
  Stack out = {{"fuselab", std::string(name.substr(7, torch - 7))},
               {"torch", std::string(name.substr(torch + 6, isa - torch - 6))},
               {"isa", std::string(name.substr(isa + 1))}};
  for (const auto& [part, version] : out) {
    if (!is_version(version)) return std::nullopt;
  }
  return out;
}

std::string version_dir(const Stack& stack) {
  const auto get = [&](const char* part) {
    const auto it = stack.find(part);
    return it == stack.end() ? std::string() : plain_version(part, it->second);
  };
  if (stack.contains("fuselab")) return "fuselab" + get("fuselab") + "_torch" + get("torch") + "_" + get("isa");
  return "vllm" + get("vllm") + "_torch" + get("torch") + "_cann" + get("cann");
}

std::string device_dir(std::string_view device) {
  const bool plain = std::all_of(device.begin(), device.end(),
                                 [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-' || c == '.' || c == '+'; });
  if (device.empty() || !plain || device.front() == '.') {
    fail("db.bad_device", "\"{}\" is no name of a device: letters, digits and `_-.+`, no separator.", device);
  }
  return std::string(device);
}

std::string compute_dir(const std::string& root, const std::string& device, const Stack& stack) {
  if (device.empty()) fail("db.no_target", "no target: give --database-path DIR, or --device and the versions of its stack.");
  const bool own = stack.contains("fuselab");
  for (const char* part : own ? std::vector<const char*>{"torch", "isa"} : std::vector<const char*>{"vllm", "torch", "cann"}) {
    if (!stack.contains(part) || stack.at(part).empty()) {
      fail("db.no_target", "no target: the {} version is missing (--{}-version), or give --database-path DIR.", part, part);
    }
  }
  return (fs::path(root) / device_dir(device) / (own ? "fuselab" : "vllm_ascend") / version_dir(stack)).string();
}

std::string communication_dir(const std::string& compute_dir, const std::string& reference) {
  const fs::path path(reference);
  if (path.is_absolute())
    fail("db.bad_reference", "communication_data_ref \"{}\" is absolute; it is relative to its file.", reference);
  return (fs::path(compute_dir) / path).lexically_normal().string();
}

bool is_raw_profile_dir(const std::string& path) {
  for (const fs::path& part : fs::path(path)) {
    if (part.string().starts_with("PROF_")) return true;
  }
  return false;
}

std::vector<ProfileFile> find_profiles(const std::vector<std::string>& paths, std::vector<SkippedFile>& skipped) {
  std::vector<ProfileFile> found;
  std::set<std::string> seen;
  const auto take = [&](const fs::path& file, bool by_name) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(file, error);
    if (!seen.insert((error ? file : real).string()).second) return;
    const std::string name = lower(file.filename().string());
    const bool details = name.find("kernel_details") != std::string::npos, summary = name.starts_with("op_summary");
    if (by_name || (is_csv(name) && (details || summary)))
      found.push_back({file.string(), bundle_of(fs::absolute(file)), !details && summary});
  };
  for (const std::string& given : paths) {
    std::error_code error;
    const fs::path path(given);
    if (fs::is_regular_file(path, error)) {
      take(path, true);
      continue;
    }
    if (!fs::is_directory(path, error)) fail("file.unreadable", "{}: there is no such file or folder.", given);
    std::vector<fs::path> files;
    for (auto it = fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied, error);
         it != fs::recursive_directory_iterator(); it.increment(error)) {
      if (error) break;
      if (it->is_regular_file(error)) files.push_back(it->path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) take(file, false);
  }
  std::set<std::string> with_details;
  for (const ProfileFile& f : found) {
    if (!f.summary) with_details.insert(f.bundle);
  }
  std::erase_if(found, [&](const ProfileFile& f) {
    if (!f.summary || !with_details.contains(f.bundle)) return false;
    skipped.push_back({f.path, "a kernel_details of the same bundle is read instead"});
    return true;
  });
  if (found.empty()) {
    fail("db.no_profile", "{}: no *kernel_details*.csv and no op_summary_*.csv is there or below.",
         paths.empty() ? std::string("no path") : paths.front());
  }
  return found;
}

}  // namespace fuselab::perfdb
