// Lookups between a kernel file's rows: the query in the terms of its family, answered by the family's predictor.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuselab/perfdb/device.h"
#include "fuselab/perfdb/family_predictor.h"
#include "fuselab/perfdb/kernel_file.h"
#include "fuselab/perfdb/query.h"

namespace fuselab::perfdb {

class Interpolator {
 public:
  /// `file` must outlive it. Reads the families of the file; predictors are fitted when a question comes to them.
  Interpolator(const KernelFile& file, std::optional<DeviceProfile> device);

  /// INTERPOLATED or EXTRAPOLATED with its interval, or a miss that says why. What the query leaves open (outputs, columns) is
  /// taken from the file where all its rows agree, and is a miss where they do not. Thread-safe.
  Answer answer(const Query& q) const;

 private:
  struct Completed;
  std::optional<Completed> complete(const Query& q, std::string& why) const;

  const KernelFile& file_;
  std::vector<std::unique_ptr<FamilyPredictor>> predictors_;
};

}  // namespace fuselab::perfdb
