// `fuselab db`: the performance database. One file per subcommand.
#pragma once
#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

#include "fuselab/perfdb/paths.h"

namespace fuselab::cli {

/// The flags that name a directory of the database, as the RFC has them.
struct DbTarget {
  std::string path, root = ".", device, vllm, torch, cann, isa;

  void add_to(CLI::App& command);
  /// The directory. Throws Error("db.no_target") naming what lacks.
  std::string directory() const;
  perfdb::Stack stack() const;  ///< the versions given
};

/// A bar on stderr when that is a terminal, nothing otherwise.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  void show(double share, const std::string& detail = "");

 private:
  std::string what_;
  bool on_;
  int last_ = -1;
};

/// Now as UTC, `2026-02-03T04:05:06Z`; SOURCE_DATE_EPOCH instead of the clock where it is set.
std::string utc_now();

void add_db_import(CLI::App& db);
void add_db_query(CLI::App& db);
void add_db_mapping(CLI::App& db);
void add_db_enrich(CLI::App& db);
void add_db_lint(CLI::App& db);
void add_db_loo(CLI::App& db);
void add_db_rewrite(CLI::App& db);
void add_db_trace(CLI::App& db);

}  // namespace fuselab::cli
