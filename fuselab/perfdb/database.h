// A directory of the database, ready for lookups.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fuselab/perfdb/communication.h"
#include "fuselab/perfdb/interpolate.h"
#include "fuselab/perfdb/kernel_file.h"
#include "fuselab/perfdb/mapping.h"
#include "fuselab/perfdb/query.h"

namespace fuselab::perfdb {

class Database {
 public:
  /// Reads the mapping; kernel files are read when they are first asked for. Throws Error("db.no_database"), the errors of
  /// Mapping::read.
  explicit Database(const std::string& directory);

  const std::string& directory() const { return directory_; }
  const Mapping& mapping() const { return mapping_; }
  /// Types that have a CSV here, sorted.
  std::vector<std::string> kernels() const;

  /// Never throws for what is not there: that is a miss with its reason. Safe from several threads.
  Answer query(const Query& q) const;

  /// The file of a kernel, nullptr: there is none. Throws for a damaged one.
  const KernelFile* kernel(const std::string& type) const;
  const CommunicationFile* communication(const std::string& type) const;
  /// Predictions between the rows of a kernel, nullptr: there is no file.
  const Interpolator* interpolator(const std::string& type) const;

 private:
  Answer compute(const OperatorEntry& op, const Query& q) const;
  Answer elementwise(const OperatorEntry& op, const Query& q) const;
  Answer collective(const std::string& kernel, const Query& q) const;
  Answer composite(const OperatorEntry& op, const Query& q) const;

  std::string directory_, communication_directory_;
  Mapping mapping_;
  std::set<std::string> collectives_;  ///< kernels that the mapping looks up as communication
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<KernelFile>> files_;
  mutable std::map<std::string, std::unique_ptr<CommunicationFile>> communications_;
  mutable std::map<std::string, std::unique_ptr<Interpolator>> interpolators_;
};

}  // namespace fuselab::perfdb
