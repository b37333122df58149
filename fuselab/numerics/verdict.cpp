#include "fuselab/numerics/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "fuselab/core/error.h"

namespace fuselab::numerics {
namespace {

bool holds_byte(const void* at, int width, std::uint8_t byte) {
  const auto* bytes = static_cast<const std::uint8_t*>(at);
  return std::all_of(bytes, bytes + width, [&](std::uint8_t b) { return b == byte; });
}

// |a - value| / bound: at most 1 is inside. Rounding of the comparison itself is forgiven.
double bound_ratio(const reference::Output& r, DType t, std::size_t i, double a) {
  const double v = r.value[i], b = r.bound[i];
  if (std::isnan(v) || std::isnan(a)) return std::isnan(v) && std::isnan(a) ? 0 : std::numeric_limits<double>::infinity();
  if (a == v || a == round_to(t, v)) return 0;
  // Values past the dtype's range may become infinite: then infinity is inside when the bound's far end rounds to it.
  if (std::isinf(a)) return round_to(t, a > 0 ? v + b : v - b) == a ? 1 : std::numeric_limits<double>::infinity();
  const double distance = std::fabs(a - v);
  if (distance <= b * (1 + 1e-12)) return b == 0 ? 0 : std::min(1.0, distance / b);
  return b == 0 ? std::numeric_limits<double>::infinity() : distance / b;
}

// Integers and bool are equal to the reference or not; undecided ones are not asked.
bool int_inside(const reference::Output& r, std::size_t i, const Tensor& t) {
  return r.ints[i] == t.get_int(static_cast<std::int64_t>(i));
}

void check_bound(const Evidence& evidence, Verdict& verdict, std::vector<std::uint8_t>& excuse) {
  const reference::Output& r = *evidence.reference;
  const Tensor& actual = evidence.actual;
  const bool exact = !is_float(actual.dtype());
  const std::vector<double> got = actual.doubles(), wanted = evidence.expected.doubles();
  std::int64_t noise = 0;  // both sides inside the bound, and 0 too: nothing but rounding is there to be compared
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (r.undecided[i]) {
      ++verdict.undecided;
      // Behind an undecided decision the two sides may rightly differ by anything: the comparison says nothing.
      if (wanted[i] != got[i]) {
        excuse[i] = 1;
        ++verdict.excused;
      }
      continue;
    }
    const double ratio = exact ? (int_inside(r, i, actual) ? 0 : std::numeric_limits<double>::infinity())
                               : bound_ratio(r, actual.dtype(), i, got[i]);
    verdict.worst_ratio = std::max(verdict.worst_ratio, ratio);
    if (ratio > 1) {
      if (verdict.outside++ == 0) verdict.first_outside = static_cast<std::int64_t>(i);
      continue;
    }
    noise += !exact && std::fabs(r.value[i]) <= r.bound[i] && bound_ratio(r, actual.dtype(), i, wanted[i]) <= 1;
    // The path is right. Where the expected side overflowed or decided otherwise in its own roundings, it is not evidence.
    const bool other_decision = exact && wanted[i] != got[i];
    const bool other_overflow = !exact && std::isfinite(got[i]) != std::isfinite(wanted[i]);
    if (other_decision || other_overflow) {
      excuse[i] = 1;
      ++verdict.excused;
    }
  }
  if (noise > 0 && noise + verdict.undecided == verdict.elements) {
    excuse.assign(excuse.size(), 1);
    verdict.excused = verdict.elements;
    verdict.notes.emplace_back("no element is farther from 0 than its error bound: rounding noise on both sides");
  }
}

std::string value_text(const Tensor& t, std::int64_t i) {
  if (!is_float(t.dtype())) return fmt::format("{}", t.get_int(i));
  return fmt::format("{:.{}g}", t.get(i), t.dtype() == DType::f64 ? 17 : 9);
}

void add_reason(Verdict& verdict, const std::string& text) {
  verdict.reason += verdict.reason.empty() ? "" : "; ";
  verdict.reason += text;
}

}  // namespace

void fill_poison(const Tensor& t, std::uint8_t byte) {
  const std::int64_t bytes = t.extent_bytes();
  if (bytes > 0) std::memset(t.data(), byte, static_cast<std::size_t>(bytes));
}

Unwritten find_unwritten(const Tensor& first_run, const Tensor& second_run) {
  if (first_run.dtype() != second_run.dtype() || first_run.sizes() != second_run.sizes()) {
    fail("numerics.mismatch", "two runs of one path gave tensors of different dtype or sizes");
  }
  Unwritten found;
  const int width = size_of(first_run.dtype());
  for (std::int64_t i = 0; i < first_run.numel(); ++i) {
    const void* a = first_run.at(i);
    const void* b = second_run.at(i);
    if (std::memcmp(a, b, static_cast<std::size_t>(width)) == 0) continue;
    if (holds_byte(a, width, kPoison[0]) && holds_byte(b, width, kPoison[1])) {
      if (found.count++ == 0) found.first = i;
    } else if (found.unstable++ == 0) {
      found.first_unstable = i;
    }
  }
  return found;
}

Verdict judge(const Evidence& evidence) {
  Verdict verdict;
  const Tensor& actual = evidence.actual;
  verdict.elements = actual.numel();
  std::vector<std::uint8_t> excuse;
  const reference::Output* r = evidence.reference;
  const bool comparable = evidence.expected.dtype() == actual.dtype() && evidence.expected.sizes() == actual.sizes();
  if (r && comparable && actual.numel() > 0) {
    if (r->sizes != actual.sizes() || r->dtype != actual.dtype()) {
      fail("numerics.mismatch", "the fp64 reference of {} has another dtype or other sizes than the result", r->name);
    }
    excuse.assign(static_cast<std::size_t>(actual.numel()), 0);
    check_bound(evidence, verdict, excuse);
    if (is_float(actual.dtype())) {
      verdict.expected_error = error_stats(evidence.expected, r->value, r->undecided);
      verdict.actual_error = error_stats(actual, r->value, r->undecided);
    }
  }
  verdict.cann = cann_metrics(evidence.expected, actual, excuse);
  if (!verdict.cann.passed) add_reason(verdict, verdict.cann.reason);
  verdict.notes.insert(verdict.notes.end(), verdict.cann.notes.begin(), verdict.cann.notes.end());
  for (const std::string& warning : verdict.cann.warnings) {
    // A concentrated error is news only when some element is outside its bound.
    if (warning.starts_with("RMSE/MAE") && r && verdict.outside == 0) continue;
    verdict.warnings.push_back(warning);
  }
  if (verdict.outside > 0) {
    const std::int64_t i = verdict.first_outside;
    const auto at = static_cast<std::size_t>(i);
    std::string wanted = is_float(actual.dtype()) ? fmt::format("fp64 {:.9g} +- {:.3g}", r->value[at], r->bound[at])
                                                  : fmt::format("exactly {}", r->ints[at]);
    add_reason(verdict, fmt::format("{} of {} elements outside the error bound, first at {}: got {}, {}", verdict.outside,
                                    verdict.elements, index_text(i, actual.sizes()), value_text(actual, i), wanted));
  }
  if (evidence.second_run.defined()) {
    verdict.unwritten = find_unwritten(actual, evidence.second_run);
    const Unwritten& u = verdict.unwritten;
    if (u.count > 0) {
      add_reason(verdict, fmt::format("{} elements were not written, first at {}", u.count, index_text(u.first, actual.sizes())));
    }
    if (u.unstable > 0) {
      add_reason(verdict, fmt::format("{} elements differ between two runs, first at {}", u.unstable,
                                      index_text(u.first_unstable, actual.sizes())));
    }
  }
  if (verdict.undecided > 0) {
    verdict.notes.push_back(fmt::format("{} of {} elements undecided", verdict.undecided, verdict.elements));
    if (static_cast<double>(verdict.undecided) > kThresholds.undecided_share_warns * static_cast<double>(verdict.elements)) {
      verdict.warnings.push_back(
          fmt::format("{:.1f}% of the elements are undecided and were not held to a bound",
                      100.0 * static_cast<double>(verdict.undecided) / static_cast<double>(verdict.elements)));
    }
  }
  if (verdict.excused > 0) {
    verdict.notes.push_back(
        fmt::format("{} elements not compared with the expected side, which decided or overflowed otherwise", verdict.excused));
  }
  verdict.passed = verdict.reason.empty();
  return verdict;
}

std::string precision_line(const std::string& output, const std::string& path, const Verdict& verdict) {
  const CannResult& cann = verdict.cann;
  if (cann.kind == CannResult::Kind::empty && verdict.passed) {
    return fmt::format("output:{} {} check passed: empty tensor", output, path);
  }
  std::string line = fmt::format("output:{} {} {}:", output, path, verdict.passed ? "PASSED" : "FAILED");
  if (!verdict.passed) line += fmt::format(" {}", verdict.reason);
  if (cann.kind == CannResult::Kind::exact && verdict.passed) line += " equal";
  if (cann.kind == CannResult::Kind::metrics && cann.has_metrics) {
    const CannMetrics& m = cann.metrics;
    line += fmt::format(" CosineSim={:.8f} RelEuclid={:.3e} KLDiv={:.3e} MAE={:.3e} RMSE={:.3e}", m.cosine, m.rel_euclid,
                        m.kl_div, m.mae, m.rmse);
  }
  for (const std::string& note : verdict.notes) line += fmt::format(" [NOTE: {}]", note);
  for (const std::string& warning : verdict.warnings) line += fmt::format(" [WARN: {}]", warning);
  return line;
}

std::string skipped_line(const std::string& output) { return fmt::format("output:{} skipped", output); }

std::string fp64_line(const std::string& output, const reference::Output& reference, const std::vector<PathErrors>& paths) {
  std::string line = fmt::format("output:{} fp64:", output);
  for (std::size_t p = 0; p < paths.size(); ++p) {
    const Spread& ulp = paths[p].errors.ulp;
    line += fmt::format("{} {} max={:.3g} p99={:.3g} ulp", p ? ";" : "", paths[p].name, ulp.max, ulp.p99);
    if (p == 0) continue;
    const double base = paths[0].errors.ulp.max;
    if (base > 0) {
      line += fmt::format(" (ratio {:.2f})", ulp.max / base);
    } else {
      line += ulp.max == 0 ? " (both exact)" : " (ratio inf)";
    }
  }
  if (paths.empty() || paths.back().errors.worst < 0) return line;
  const std::int64_t worst = paths.back().errors.worst;
  line += fmt::format("; worst {}", index_text(worst, reference.sizes));
  for (const PathErrors& path : paths) line += fmt::format(" {}={}", path.name, value_text(path.result, worst));
  return line + fmt::format(" fp64={:.17g}", reference.value[static_cast<std::size_t>(worst)]);
}

std::string summary_line(const std::vector<std::string>& failed_outputs) {
  if (failed_outputs.empty()) return "Precision check passed.";
  return fmt::format("Precision check failed: {}", fmt::join(failed_outputs, ", "));
}

}  // namespace fuselab::numerics
