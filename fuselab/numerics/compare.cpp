#include "fuselab/numerics/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "fuselab/core/error.h"
#include "fuselab/core/mapped_file.h"
#include "fuselab/core/threads.h"
#include "fuselab/numerics/compare_piece.h"

namespace fuselab::numerics {
namespace {

constexpr std::int64_t kPiece = 1 << 16;  // elements looked at by one thread at a time
constexpr std::int64_t kRound = 64;       // pieces between two calls of the progress function

class Comparer {
 public:
  Comparer(const Tensor& a, const Tensor& b, const CompareLimits& limits, bool mapped)
      : a_(a), b_(b), reader_(a, b, limits), mapped_(mapped) {}

  void run(TensorComparison& out, const std::function<void(std::int64_t)>& done) {
    const std::int64_t pieces = (a_.numel() + kPiece - 1) / kPiece;
    std::vector<Piece> found(static_cast<std::size_t>(pieces));
    std::vector<Counts> counts(static_cast<std::size_t>(std::max(1, max_threads())));
    in_rounds(pieces, done, [&](std::int64_t piece, double* x, double* y, int thread) {
      const std::int64_t n = load(piece, x, y);
      reader_.look(piece * kPiece, n, x, y, found[static_cast<std::size_t>(piece)], counts[static_cast<std::size_t>(thread)]);
    });
    for (std::size_t i = 1; i < counts.size(); ++i) {
      counts[0].absolute.add(counts[i].absolute);
      counts[0].relative.add(counts[i].relative);
      counts[0].ulp.add(counts[i].ulp);
    }
    CannRange range;
    summarise(found, counts[0], out, range);
    if (!is_float(a_.dtype()) || !is_float(b_.dtype()) || out.misaligned > 0 || range.count == 0) return;
    if (out.differing == 0 && a_.dtype() == b_.dtype()) {
      decide_equal(range, out.cann);
      if (done) done(a_.numel());
      return;
    }
    const CannSums none(range, a_.dtype(), b_.dtype());
    std::vector<CannSums> sums(static_cast<std::size_t>(pieces), none);
    in_rounds(pieces, done, [&](std::int64_t piece, double* x, double* y, int) {
      std::int64_t n = load(piece, x, y), kept = found[static_cast<std::size_t>(piece)].range.count;
      if (kept < n) {
        kept = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
          x[kept] = x[i];
          y[kept++] = y[i];
        }
      }
      sums[static_cast<std::size_t>(piece)].add({x, static_cast<std::size_t>(kept)}, {y, static_cast<std::size_t>(kept)});
    });
    CannSums all = none;
    for (const CannSums& s : sums) all.add(s);
    decide(range, all, out.cann);
  }

 private:
  std::int64_t load(std::int64_t piece, double* x, double* y) const {
    const std::int64_t begin = piece * kPiece, n = std::min(kPiece, a_.numel() - begin);
    load_piece(a_, begin, n, x);
    load_piece(b_, begin, n, y);
    return n;
  }

  void forget(const Tensor& t, std::int64_t begin, std::int64_t n) const {
    if (mapped_ && t.contiguous()) {
      const auto width = static_cast<std::int64_t>(size_of(t.dtype()));
      MappedFile::forget(static_cast<const char*>(t.data()) + begin * width, static_cast<std::size_t>(n * width));
    }
  }

  template <typename F>
  void in_rounds(std::int64_t pieces, const std::function<void(std::int64_t)>& done, F&& each) {
    for (std::int64_t first = 0; first < pieces; first += kRound) {
      const std::int64_t n = std::min(kRound, pieces - first);
      parallel_for(n, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
        std::vector<double> x(kPiece), y(kPiece);
        for (std::int64_t i = begin; i < end; ++i) each(first + i, x.data(), y.data(), thread);
      });
      const std::int64_t begin = first * kPiece, count = std::min(n * kPiece, a_.numel() - begin);
      forget(a_, begin, count);
      forget(b_, begin, count);
      if (done) done(count);
    }
  }

  void summarise(const std::vector<Piece>& pieces, Counts& counts, TensorComparison& out, CannRange& range) const {
    long double absolute = 0, relative = 0, ulp = 0, aa = 0, dd = 0;
    double worst_ulp = -1;
    std::int64_t first_misaligned = -1;
    for (const Piece& p : pieces) {
      absolute += p.absolute;
      relative += p.relative;
      ulp += p.ulp;
      aa += p.aa;
      dd += p.dd;
      out.absolute.max = std::max(out.absolute.max, p.max_absolute);
      out.relative.max = std::max(out.relative.max, p.max_relative);
      if (p.max_ulp > worst_ulp) worst_ulp = p.max_ulp, out.worst = p.worst;
      out.differing += p.differing;
      out.aligned_nonfinite += p.aligned;
      out.misaligned += p.misaligned;
      out.beyond += p.beyond;
      if (first_misaligned < 0) first_misaligned = p.first_misaligned;
      range.add(p.range);
    }
    if (first_misaligned >= 0) out.worst = first_misaligned;
    if (out.worst >= 0) {
      out.worst_a = a_.get(out.worst);
      out.worst_b = b_.get(out.worst);
    }
    const auto n = static_cast<long double>(std::max<std::int64_t>(range.count, 1));
    out.ulp.max = std::max(worst_ulp, 0.0);
    out.absolute.mean = static_cast<double>(absolute / n);
    out.relative.mean = static_cast<double>(relative / n);
    out.ulp.mean = static_cast<double>(ulp / n);
    const auto percentiles = [](Spread& s, const LogHistogram& h) {
      s.p50 = h.percentile(0.50);
      s.p99 = h.percentile(0.99);
    };
    percentiles(out.absolute, counts.absolute);
    percentiles(out.relative, counts.relative);
    percentiles(out.ulp, counts.ulp);
    out.relative_rms = dd == 0 ? 0 : aa == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(std::sqrt(dd / aa));
    if (out.misaligned > 0) out.relative_rms = std::numeric_limits<double>::infinity();
    out.ulp_histogram = std::move(counts.ulp);
  }

  const Tensor &a_, &b_;
  PieceReader reader_;
  const bool mapped_;
};

constexpr double kOutlier = 100;  // times the P99 error: the metrics do not see such an element, so it is pointed out

void judge(TensorComparison& t, const CompareLimits& limits) {
  if (t.absolute.p99 > 0 && t.absolute.max > kOutlier * t.absolute.p99) {
    t.notes.push_back(fmt::format("the largest error is {:.2g} times the P99 error: look at {}", t.absolute.max / t.absolute.p99,
                                  index_text(t.worst, t.sizes)));
  }
  std::vector<std::string> reasons;
  if (t.misaligned > 0) {
    reasons.push_back(fmt::format("{} elements are NaN or Inf on one side only, the first at {}: {} against {}", t.misaligned,
                                  index_text(t.worst, t.sizes), t.worst_a, t.worst_b));
  }
  const bool limited = limits.exact || limits.max_ulp >= 0 || limits.rtol >= 0 || limits.atol >= 0;
  if (limits.exact && t.differing > 0) reasons.push_back(fmt::format("{} of {} elements differ", t.differing, t.elements));
  if (limits.max_ulp >= 0 && t.ulp.max > limits.max_ulp) {
    reasons.push_back(fmt::format("max {:.4g} ULP is above {:.4g}", t.ulp.max, limits.max_ulp));
  }
  if ((limits.rtol >= 0 || limits.atol >= 0) && t.beyond > 0) {
    reasons.push_back(fmt::format("{} of {} elements lie outside atol + rtol |a|", t.beyond, t.elements));
  }
  if (!limited && t.misaligned == 0) {
    const bool floats = is_float(t.a_dtype) && is_float(t.b_dtype);
    if (floats && t.elements > t.aligned_nonfinite && !t.cann.passed) reasons.push_back(t.cann.reason);
    if (!floats && t.differing > 0) reasons.push_back(fmt::format("{} of {} elements differ", t.differing, t.elements));
  }
  t.passed = reasons.empty();
  t.reason = fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace

TensorComparison compare_tensors(const std::string& name, const Tensor& a, const Tensor& b, const CompareLimits& limits,
                                 bool mapped, const std::function<void(std::int64_t)>& elements_done) {
  TensorComparison out;
  out.name = name;
  out.a_dtype = a.dtype();
  out.b_dtype = b.dtype();
  out.sizes = a.sizes();
  out.b_sizes = b.sizes();
  out.elements = a.numel();
  if (a.sizes() != b.sizes()) {
    out.status = TensorComparison::Status::mismatch;
    out.reason = fmt::format("sizes [{}] against [{}]", fmt::join(a.sizes(), ", "), fmt::join(b.sizes(), ", "));
    out.relative_rms = std::numeric_limits<double>::infinity();
    return out;
  }
  if (a.dtype() != b.dtype()) {
    out.notes.push_back(fmt::format("dtypes {} and {}: errors in ULP of {}", fuselab::name(a.dtype()), fuselab::name(b.dtype()),
                                    fuselab::name(coarser(a.dtype(), b.dtype()))));
  }
  Comparer(a, b, limits, mapped).run(out, elements_done);
  judge(out, limits);
  return out;
}

void Comparison::finish() {
  failed = equal = 0;
  for (const TensorComparison& t : tensors) {
    failed += !t.passed;
    equal += t.status == TensorComparison::Status::compared && t.differing == 0;
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorComparison& x, const TensorComparison& y) {
    if (x.passed != y.passed) return !x.passed;
    if (x.relative_rms != y.relative_rms) return x.relative_rms > y.relative_rms;
    return x.ulp.max > y.ulp.max;
  });
}

Comparison compare_files(const std::string& a, const std::string& b, const CompareLimits& limits,
                         const CompareProgress& progress) {
  Comparison out;
  out.a = a;
  out.b = b;
  std::vector<NamedTensor> left = open_tensors(a), right = open_tensors(b);
  if (left.size() == 1 && right.size() == 1) right[0].name = left[0].name;
  std::map<std::string, const NamedTensor*> by_name;
  for (const NamedTensor& t : right) by_name.emplace(t.name, &t);
  using Status = TensorComparison::Status;
  const auto note = [&](const std::string& name, Status status, const std::string& reason) {
    TensorComparison t;
    t.name = name;
    t.status = status;
    t.reason = reason;
    t.relative_rms = std::numeric_limits<double>::infinity();
    out.tensors.push_back(std::move(t));
  };
  double at = 0;
  const double step = 1.0 / static_cast<double>(std::max<std::size_t>(left.size(), 1));
  for (const NamedTensor& l : left) {
    const auto found = by_name.find(l.name);
    if (found == by_name.end()) {
      note(l.name, Status::only_in_a, "only in the first");
    } else {
      const NamedTensor& r = *found->second;
      by_name.erase(found);
      try {
        if (!l.problem.empty() || !r.problem.empty()) fail("file.dtype", "{}", l.problem.empty() ? r.problem : l.problem);
        const Tensor x = l.load(), y = r.load();
        std::int64_t done = 0;
        const auto say = [&](std::int64_t n) {
          done += n;
          if (progress) progress(std::min(1.0, at + step * static_cast<double>(done) / (2.0 * static_cast<double>(x.numel()))));
        };
        out.tensors.push_back(compare_tensors(l.name, x, y, limits, l.mapped && r.mapped, say));
        ++out.compared;
      } catch (const Error& e) {
        note(l.name, Status::unreadable, e.what());
      }
    }
    at += step;
    if (progress) progress(std::min(1.0, at));
  }
  for (const NamedTensor& r : right) {
    if (by_name.count(r.name)) note(r.name, Status::only_in_b, "only in the second");
  }
  out.finish();
  return out;
}

}  // namespace fuselab::numerics
