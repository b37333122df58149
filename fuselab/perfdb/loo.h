// How well a database predicts: rows are hidden, predicted from the rest, and compared. No sampling and no seed: every row of a
// task is judged. An answer never uses the rows hidden with its own, neither as neighbours nor when its method was chosen.
//
//   task            kind           hidden together                     judged
//   gemm-m          matmul         one row                             rows between others along m
//   gemm-nk         matmul         all rows of one (n, k)              all rows
//   ctx, gen        attention      one row                             between others along seq (ctx: or batch)
//   ctx-seq,gen-seq attention      every batch of one (heads, seq)     between others along seq
//   moe, ew, comm,  the others     one row (comm: its dtypes too)      between others along the curve
//   generic
//   extra1, extra3, all            rows past 1/2, 1/8 of the largest   those rows, on curves with two rows left
//   extrahalf                      x, or past the middle octave
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fuselab/perfdb/predict.h"

namespace fuselab::perfdb {

struct LooErrors {
  std::size_t n = 0;                             ///< answered
  double median = 0, p90 = 0, p99 = 0, max = 0;  ///< |predicted - measured| / measured, percent; linear percentiles
};

struct LooResult {
  std::string task, file, regime;
  FamilyKind kind = FamilyKind::kGeneric;
  std::size_t scored = 0, missed = 0;
  LooErrors ours, linear;  ///< linear: of the rows that it answers
  double inside = 0;       ///< share of truths within the interval, percent of the answered
  double width = 0;        ///< median of (high - low) / predicted
  std::string method;      ///< of the first fold
};

struct LooOptions {
  std::string task;  ///< only this one; empty: all
  double coverage = 0.9;
  int folds = 5;  ///< times that methods are chosen, each time without a part of the rows
  std::function<void(double share, const std::string& what)> progress;
};

/// The tasks of every family in the directory's CSV files, in the order of file names. Files that are no kernel's are left out.
/// Throws Error("perfdb.no_directory"), Error("perfdb.unknown_task") and what read_families throws.
std::vector<LooResult> leave_one_out(const std::string& directory, const LooOptions& options);
/// The same for one family. `largest`, `smallest`: the ends of the first curve axis in the whole file.
std::vector<LooResult> leave_one_out(const Family& family, const DeviceProfile* device, double smallest, double largest,
                                     const LooOptions& options);

}  // namespace fuselab::perfdb
