// provenance.yaml: where a directory's rows came from. Entries are added at the end of the file; what stands there stays.
#pragma once
#include <string>
#include <vector>

namespace fuselab::perfdb {

struct ImportOptions;
struct ImportReport;

/// Profile columns of a row before an import replaced them.
struct Replaced {
  std::string file;
  std::size_t row = 0;
  std::string average, median, std;
};

/// Adds one entry to the list `imports`: tool, command, time, stack, bundles with their hashes and what else they hold, row
/// counts. Throws Error("file.write").
void record_import(const ImportOptions& options, const ImportReport& report, const std::vector<std::string>& bundles,
                   const std::vector<Replaced>& replaced);

/// Text as a YAML scalar: plain where that is safe, else in double quotes.
std::string yaml_scalar(std::string_view text);

/// Adds `entry` (lines indented by two, beginning with `- `) to the block list under a top-level key, which is made at the end of
/// the file when it is not its last key.
std::string with_list_entry(std::string text, const std::string& key, const std::string& entry);

/// The file with the value of a top-level key replaced or, where there is none, added at the top; comments and order stay.
std::string with_top_value(const std::string& text, const std::string& key, const std::string& value);

}  // namespace fuselab::perfdb
