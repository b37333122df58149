// What is wrong with a directory of the database, found without changing it.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace fuselab::perfdb {

struct Finding {
  bool error = false;    ///< false: a warning
  std::string rule;      ///< stable: duplicate_signature, slot_alignment, ...
  std::string file;      ///< in the directory; empty: the directory itself
  std::size_t line = 0;  ///< from 1; 0: the whole file
  std::string text;
};

struct LintReport {
  std::vector<Finding> findings;  ///< by file, in order of lines
  std::size_t files = 0, rows = 0, measured = 0, without_time = 0;
  std::size_t errors() const;
};

/// A directory of compute data (it has an op_mapping.yaml) or of communication data. Throws Error("db.no_database") when it is no
/// directory; all else is a finding. Of one rule in one file at most ten are listed, the eleventh says how many more there are.
LintReport lint(const std::string& directory);

}  // namespace fuselab::perfdb
