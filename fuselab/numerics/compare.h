// Two sets of tensors, compared name by name in pieces: dumps of a model larger than the memory are no problem.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fuselab/numerics/cann.h"
#include "fuselab/numerics/histogram.h"
#include "fuselab/numerics/tensor_file.h"
#include "fuselab/numerics/ulp.h"

namespace fuselab::numerics {

/// What a tensor must hold to pass. The defaults are the CANN metrics and equal non-finite values; a limit given replaces the
/// metrics, and every limit given must hold.
struct CompareLimits {
  bool exact = false;           ///< the same bits, any NaN being equal to any NaN
  double max_ulp = -1;          ///< largest error in ULP; below 0: no limit
  double rtol = -1, atol = -1;  ///< |a - b| <= atol + rtol |a|; one alone: the other counts as 0
};

/// A (expected) against B (actual). Errors are those of B; an ULP is one of the less precise dtype of the two, at A's value (1
/// for integers and bool, which are compared exactly).
struct TensorComparison {
  enum class Status : std::uint8_t { compared, only_in_a, only_in_b, mismatch /* sizes */, unreadable };
  std::string name;
  Status status = Status::compared;
  std::string reason;  ///< why it did not pass, or cannot be compared
  bool passed = false;
  DType a_dtype = DType::f32, b_dtype = DType::f32;
  std::vector<std::int64_t> sizes, b_sizes;
  std::int64_t elements = 0, differing = 0;  ///< differing: other values (NaN equals NaN; -0 differs from +0)
  std::int64_t aligned_nonfinite = 0;        ///< NaN with NaN, Inf with the same Inf
  std::int64_t misaligned = 0;               ///< one side NaN or Inf and the other not
  std::int64_t beyond = 0;                   ///< outside atol + rtol |a|, where a limit was given
  Spread absolute, relative, ulp;            ///< over finite pairs; percentiles by LogHistogram
  double relative_rms = 0;                   ///< rms(a - b) / rms(a): what the list is sorted by
  std::int64_t worst = -1;                   ///< row-major index of the largest ULP error, or of the first misaligned element
  double worst_a = 0, worst_b = 0;
  CannResult cann;             ///< of floats
  LogHistogram ulp_histogram;  ///< of floats
  std::vector<std::string> notes;
};

struct Comparison {
  std::string a, b;
  std::vector<TensorComparison> tensors;  ///< worst first
  std::int64_t compared = 0, equal = 0, failed = 0;
  bool passed() const { return failed == 0; }
  void finish();  ///< counts and sorts what is in `tensors`
};

/// Called after each piece with the share done in [0, 1].
using CompareProgress = std::function<void(double)>;

/// One pair of tensors; `mapped` says that their memory is a file's pages, let go once read.
TensorComparison compare_tensors(const std::string& name, const Tensor& a, const Tensor& b, const CompareLimits& limits = {},
                                 bool mapped = false, const std::function<void(std::int64_t)>& elements_done = {});

/// Tensors of two files or folders, joined by name; when both hold exactly one tensor, names do not matter.
/// Throws what open_tensors throws.
Comparison compare_files(const std::string& a, const std::string& b, const CompareLimits& limits = {},
                         const CompareProgress& progress = {});

/// Lines for people, a JSON document, a page with a histogram per tensor that needs no network.
std::string report_text(const Comparison& comparison, std::size_t rows);
std::string report_json(const Comparison& comparison);
std::string report_html(const Comparison& comparison);

}  // namespace fuselab::numerics
