// The three forms of a comparison: lines, JSON, and an HTML page that needs no network.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fuselab/numerics/compare.h"

namespace fuselab::numerics {
namespace {

using Status = TensorComparison::Status;

std::string sizes_text(const TensorComparison& t) { return fmt::format("[{}]", fmt::join(t.sizes, ",")); }

std::string dtype_text(const TensorComparison& t) {
  std::string out(name(t.a_dtype));
  if (t.a_dtype != t.b_dtype) out += "/" + std::string(name(t.b_dtype));
  return out;
}

std::string number(double v) { return v == 0 ? "0" : fmt::format("{:.3g}", v); }

const char* verdict(const TensorComparison& t) {
  if (!t.passed) return "FAILED";
  return t.differing == 0 ? "equal" : "passed";
}

std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width / 2 - 1) + ".." + text.substr(text.size() - (width - width / 2 - 1));
}

std::string summary(const Comparison& c) {
  const auto tensors = static_cast<std::int64_t>(c.tensors.size());
  return fmt::format("{} tensors: {} compared, {} equal, {} failed", tensors, c.compared, c.equal, c.failed);
}

/// JSON has no infinity: such numbers are strings.
nlohmann::ordered_json json_number(double v) {
  if (std::isfinite(v)) return v;
  return std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf";
}
nlohmann::ordered_json json_spread(const Spread& s) {
  return {{"max", json_number(s.max)}, {"mean", json_number(s.mean)}, {"p50", json_number(s.p50)}, {"p99", json_number(s.p99)}};
}

const char* status_text(Status s) {
  static const char* const kNames[] = {"compared", "only_in_a", "only_in_b", "mismatch", "unreadable"};
  return kNames[static_cast<int>(s)];
}

std::string html(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// Share of elements per octave of ULP error, the height logarithmic: one bar in a million still shows.
std::string histogram_svg(const LogHistogram& h) {
  constexpr int kLow = -3, kHigh = 17, kBar = 14, kHeight = 60;
  const std::vector<LogHistogram::Bucket> buckets = h.octaves(kLow, kHigh);
  const double total = static_cast<double>(std::max<std::int64_t>(h.count(), 1));
  std::string out = fmt::format("<svg width=\"{}\" height=\"{}\" role=\"img\" aria-label=\"histogram of ULP errors\">",
                                buckets.size() * kBar, kHeight + 14);
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const auto& b = buckets[i];
    const std::string range = b.to == 0                 ? "0 ULP"
                              : i == 1                  ? fmt::format("below {:g} ULP", b.to)
                              : i + 1 == buckets.size() ? fmt::format("{:g} ULP and more", b.from)
                                                        : fmt::format("{:g} to {:g} ULP", b.from, b.to);
    if (b.count > 0) {
      const double height = std::max(2.0, kHeight * (1 + std::max(-6.0, std::log10(static_cast<double>(b.count) / total)) / 6));
      out += fmt::format(
          "<rect class=\"{}\" x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\"><title>{}: {} of {}</title></rect>",
          b.to <= 1 ? "good" : "far", i * kBar, kHeight - height, kBar - 2, height, range, b.count, h.count());
    }
    if (b.to == 0 || b.from == 1 || b.from == 32 || b.from == 1024 || b.from == 32768) {
      out +=
          fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", i * kBar, kHeight + 11, b.to == 0 ? "0" : fmt::format("{:g}", b.from));
    }
  }
  return out + "</svg>";
}

}  // namespace

std::string report_text(const Comparison& c, std::size_t rows) {
  std::size_t width = 6;
  const std::size_t shown = std::min(rows, c.tensors.size());
  for (std::size_t i = 0; i < shown; ++i) width = std::max(width, std::min<std::size_t>(c.tensors[i].name.size(), 48));
  std::string out = fmt::format("A {}\nB {}\n", c.a, c.b);
  out += fmt::format("{:<{}}  {:<9} {:>14} {:>9} {:>9} {:>9} {:>9} {:>9}  {}\n", "tensor", width, "dtype", "sizes", "max ULP",
                     "P99 ULP", "max abs", "rel. rms", "differ", "verdict");
  for (std::size_t i = 0; i < shown; ++i) {
    const TensorComparison& t = c.tensors[i];
    if (t.status != Status::compared) {
      out += fmt::format("{:<{}}  FAILED: {}\n", cut(t.name, width), width, t.reason);
      continue;
    }
    const double share = t.elements > 0 ? 100.0 * static_cast<double>(t.differing) / static_cast<double>(t.elements) : 0;
    out += fmt::format("{:<{}}  {:<9} {:>14} {:>9} {:>9} {:>9} {:>9} {:>8.3g}%  {}\n", cut(t.name, width), width, dtype_text(t),
                       sizes_text(t), number(t.ulp.max), number(t.ulp.p99), number(t.absolute.max), number(t.relative_rms), share,
                       verdict(t));
    if (!t.passed) out += fmt::format("    {}\n", t.reason);
    if (!t.passed && t.worst >= 0 && t.misaligned == 0) {
      out += fmt::format("    worst at {}: {:.9g} against {:.9g}\n", index_text(t.worst, t.sizes), t.worst_a, t.worst_b);
    }
    for (const std::string& note : t.notes) out += fmt::format("    note: {}\n", note);
  }
  if (shown < c.tensors.size())
    out += fmt::format("... and {} more (--rows, --json or --html show all)\n", c.tensors.size() - shown);
  return out + summary(c) + "\n";
}

std::string report_json(const Comparison& c) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const TensorComparison& t : c.tensors) {
    nlohmann::ordered_json row = {
        {"name", t.name}, {"status", status_text(t.status)}, {"passed", t.passed}, {"reason", t.reason}};
    if (t.status == Status::compared || t.status == Status::mismatch) {
      row["dtype"] = {name(t.a_dtype), name(t.b_dtype)};
      row["sizes"] = t.sizes;
    }
    if (t.status == Status::mismatch) row["b_sizes"] = t.b_sizes;
    if (t.status == Status::compared) {
      row["elements"] = t.elements;
      row["differing"] = t.differing;
      row["aligned_nonfinite"] = t.aligned_nonfinite;
      row["misaligned"] = t.misaligned;
      row["ulp"] = json_spread(t.ulp);
      row["absolute"] = json_spread(t.absolute);
      row["relative"] = json_spread(t.relative);
      row["relative_rms"] = json_number(t.relative_rms);
      if (t.worst >= 0) {
        row["worst"] = {{"index", index_text(t.worst, t.sizes)}, {"a", json_number(t.worst_a)}, {"b", json_number(t.worst_b)}};
      }
      if (t.cann.has_metrics) {
        const CannMetrics& m = t.cann.metrics;
        row["cann"] = {
            {"passed", t.cann.passed},        {"CosineSim", json_number(m.cosine)}, {"RelEuclid", json_number(m.rel_euclid)},
            {"KLDiv", json_number(m.kl_div)}, {"MAE", json_number(m.mae)},          {"RMSE", json_number(m.rmse)}};
      }
      nlohmann::ordered_json buckets = nlohmann::ordered_json::array();
      for (const auto& b : t.ulp_histogram.octaves(-3, 17)) buckets.push_back({b.from, b.count});
      row["ulp_histogram"] = buckets;
      row["notes"] = t.notes;
    }
    tensors.push_back(std::move(row));
  }
  const nlohmann::ordered_json document = {
      {"a", c.a},         {"b", c.b},           {"passed", c.passed()}, {"compared", c.compared},
      {"equal", c.equal}, {"failed", c.failed}, {"tensors", tensors}};
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string report_html(const Comparison& c) {
  std::string out = R"(<!doctype html><html lang="en"><meta charset="utf-8"><title>fuselab compare</title><style>
body{font:14px system-ui,sans-serif;margin:2em auto;max-width:1200px;padding:0 1em;color:#222}
table{border-collapse:collapse;width:100%}td,th{padding:.35em .6em;border-bottom:1px solid #ddd;text-align:right;vertical-align:top}
td:first-child,th:first-child{text-align:left;word-break:break-all}.FAILED{color:#b00020;font-weight:600}
.reason{color:#b00020;font-size:12px}.note{color:#666;font-size:12px}svg text{font:9px sans-serif;fill:#666}
svg .good{fill:#4c8c4a}svg .far{fill:#c77c11}</style>)";
  out += fmt::format("<h1>{}</h1><p>A: <code>{}</code><br>B: <code>{}</code></p>", c.passed() ? "Passed" : "FAILED", html(c.a),
                     html(c.b));
  out += fmt::format(
      "<p>{}. Errors are B's against A, in units in the last place (ULP) of the less precise dtype. Worst first; the "
      "bars count elements by ULP error, their height is logarithmic (six decades).</p>",
      summary(c));
  out +=
      "<table><tr><th>tensor<th>dtype<th>sizes<th>max ULP<th>P99 ULP<th>max abs<th>rel. rms<th>differ<th>verdict<th>ULP errors";
  for (const TensorComparison& t : c.tensors) {
    out += fmt::format("<tr><td>{}", html(t.name));
    if (!t.reason.empty()) out += fmt::format("<div class=\"reason\">{}</div>", html(t.reason));
    for (const std::string& note : t.notes) out += fmt::format("<div class=\"note\">{}</div>", html(note));
    if (t.status != Status::compared) {
      out += "<td><td><td><td><td><td><td><td class=\"FAILED\">FAILED<td>";
      continue;
    }
    if (t.worst >= 0 && t.differing > 0) {
      out += fmt::format("<div class=\"note\">worst at {}: {:.9g} against {:.9g}</div>", index_text(t.worst, t.sizes), t.worst_a,
                         t.worst_b);
    }
    const double share = t.elements > 0 ? 100.0 * static_cast<double>(t.differing) / static_cast<double>(t.elements) : 0;
    out += fmt::format("<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{:.3g} %<td class=\"{}\">{}<td>{}", dtype_text(t), sizes_text(t),
                       number(t.ulp.max), number(t.ulp.p99), number(t.absolute.max), number(t.relative_rms), share, verdict(t),
                       verdict(t), is_float(t.a_dtype) ? histogram_svg(t.ulp_histogram) : "");
  }
  return out + "</table></html>\n";
}

}  // namespace fuselab::numerics
