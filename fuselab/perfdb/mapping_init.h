// A first op_mapping.yaml for a directory: every kernel by its own name, to be completed by hand.
#pragma once
#include <string>
#include <vector>

namespace fuselab::perfdb {

/// The text: `profiling.<Type>` maps to the type of every CSV. `top` are lines of `key: value` for the head of the file.
std::string first_mapping(const std::vector<std::string>& kernels, const std::vector<std::pair<std::string, std::string>>& top);

/// Writes it into the directory, from the CSVs there and the versions of its name. False: there is one already, which stays.
/// Throws Error("db.no_database") for a directory without CSVs, Error("file.write").
bool write_first_mapping(const std::string& directory, const std::string& date);

/// Operators that only one of two mappings has, and those whose fields differ, one line each: `+ op`, `- op`, `~ op: field a ->
/// b`.
std::vector<std::string> mapping_diff(const std::string& old_file, const std::string& new_file);

}  // namespace fuselab::perfdb
