// The verdict on one output of one compiled path: CANN metrics, the fp64 error bound, unwritten elements. All must hold.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fuselab/core/tensor.h"
#include "fuselab/numerics/cann.h"
#include "fuselab/numerics/ulp.h"
#include "fuselab/reference/reference.h"

namespace fuselab::numerics {

/// Output buffers are filled with these bytes before the two runs of a path.
inline constexpr std::uint8_t kPoison[2] = {0x7b, 0xd4};
/// Fills every byte between the first and the last element.
void fill_poison(const Tensor& t, std::uint8_t byte);

struct Unwritten {
  std::int64_t count = 0, first = -1;              ///< elements that hold the poison of both runs
  std::int64_t unstable = 0, first_unstable = -1;  ///< others whose bits differ: the result depends on what was in the buffer
};
/// Two runs of one path on the same inputs over kPoison[0] and kPoison[1].
Unwritten find_unwritten(const Tensor& first_run, const Tensor& second_run);

/// What is known of one output of one path.
struct Evidence {
  Tensor expected;                               ///< torch or unfused
  Tensor actual;                                 ///< the path's result
  Tensor second_run;                             ///< the same over the other poison; undefined: not checked
  const reference::Output* reference = nullptr;  ///< nullptr: no fp64 reference, the bound is not checked
};

struct Verdict {
  bool passed = false;
  std::string reason;  ///< of the first thing that failed
  CannResult cann;
  std::int64_t elements = 0, undecided = 0;
  std::int64_t outside = 0, first_outside = -1;  ///< decided elements outside their bound
  double worst_ratio = 0;                        ///< largest |actual - fp64| / bound over decided elements
  Unwritten unwritten;
  std::int64_t excused = 0;  ///< elements where the expected side, not the path, is outside the fp64 bound or undecided
  ErrorStats expected_error, actual_error;  ///< against fp64, when there is a reference
  std::vector<std::string> notes, warnings;
};

Verdict judge(const Evidence& evidence);

/// `output:<name> precision PASSED: CosineSim=… RelEuclid=… KLDiv=… MAE=… RMSE=… [NOTE: …] [WARN: …]`; `path` is "precision" for
/// the recompiled path and "artifact" for the text in the script.
std::string precision_line(const std::string& output, const std::string& path, const Verdict& verdict);
/// `output:<name> skipped`, for what is no tensor.
std::string skipped_line(const std::string& output);

/// A path of the fp64 line: its name as printed, its result and its errors.
struct PathErrors {
  std::string name;
  Tensor result;
  ErrorStats errors;
};
/// `output:<name> fp64: torch max=… p99=… ulp; compiled max=… p99=… ulp (ratio …); …; worst [i,j] torch=… compiled=… fp64=…`.
/// The first path is what the ratios are against; "worst" is the worst element of the last path.
std::string fp64_line(const std::string& output, const reference::Output& reference, const std::vector<PathErrors>& paths);
/// `Precision check passed.` or `Precision check failed: a, b`.
std::string summary_line(const std::vector<std::string>& failed_outputs);

}  // namespace fuselab::numerics
