// Where a database's files lie, and the versions that a directory's name states.
//
//     <root>/<device>/vllm_ascend/vllm<V>_torch<T>_cann<C>/     compute data of an Ascend stack
//     <root>/<device>/fuselab/fuselab<V>_torch<T>_<isa>/        kernels that fuselab measured
//     <root>/<device>/{hccl,nccl,mpi}/<version>/                communication data, shared by reference
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuselab::perfdb {

/// Version words by the part they belong to: {"vllm", "0.18.0"}, {"torch", "2.9.0"}, {"cann", "8.5"}.
using Stack = std::map<std::string, std::string>;

/// `vllm0.18.0_torch2.9.0_cann8.5` -> its parts; nullopt: no such name.
std::optional<Stack> parse_version_dir(std::string_view name);
/// The name back. Prefixes in the values (`vllm0.18.0`, `v0.18.0`, `torch2.9.0+cpu`) and local version parts are taken off.
/// Throws Error("db.bad_version") for a version that is no word of letters, digits and `._+-`.
std::string version_dir(const Stack& stack);
/// A version without prefix and local part, checked. `part` is the word that may stand before it.
std::string plain_version(std::string_view part, std::string_view version);

/// The directory of a stack below `root`. Needs a device and vllm + torch + cann, or fuselab + torch + isa; throws
/// Error("db.no_target") naming what lacks.
std::string compute_dir(const std::string& root, const std::string& device, const Stack& stack);

/// A device as a folder's name. Throws Error("db.bad_device") for one that would leave its place: separators, `..`.
std::string device_dir(std::string_view device);

/// The directory that `communication_data_ref` of a mapping leads to. Throws Error("db.bad_reference") when it is absolute.
std::string communication_dir(const std::string& compute_dir, const std::string& reference);

/// Raw profiler output: PROF_* folders are inputs, never part of a database.
bool is_raw_profile_dir(const std::string& path);

/// One file of an import and the bundle it belongs to.
struct ProfileFile {
  std::string path, bundle;
  bool summary = false;  ///< op_summary of msprof, which a kernel_details of the same bundle outranks
};
struct SkippedFile {
  std::string path, reason;
};
/// `*kernel_details*.csv[.gz]` and `op_summary_*.csv[.gz]` at or below the paths, in order of their names; a file given by name
/// is taken whatever it is called. Throws Error("file.unreadable") for a path that is not there, Error("db.no_profile") when
/// nothing was found.
std::vector<ProfileFile> find_profiles(const std::vector<std::string>& paths, std::vector<SkippedFile>& skipped);

}  // namespace fuselab::perfdb
