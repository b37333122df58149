#include "fuselab/perfdb/family.h"

#include <algorithm>
#include <cmath>

#include "fuselab/core/error.h"
#include "fuselab/perfdb/kernel_file.h"
#include "fuselab/perfdb/signature.h"
#include "fuselab/perfdb/table.h"

namespace fuselab::perfdb {
namespace {

using Shape = std::vector<double>;

std::optional<double> number(std::string_view cell) { return number_in(unquoted(cell)); }

std::vector<Shape> shapes(std::string_view cell) {
  std::vector<Shape> out;
  for (const std::string_view slot : split_slots(cell)) {
    const auto dims = parse_dims(slot);
    if (!dims) {
      fail("perfdb.bad_shape", "'{}' is not a list of shapes; write dims with commas and slots with semicolons.",
           unquoted(cell).substr(0, 120));
    }
    out.emplace_back(dims->begin(), dims->end());
  }
  while (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

double product(const Shape& shape, std::size_t begin = 0, std::size_t end = ~std::size_t{0}) {
  double p = 1;
  for (std::size_t i = begin; i < std::min(end, shape.size()); ++i) p *= shape[i];
  return p;
}

std::vector<std::string> list(std::string_view cell) {
  std::vector<std::string> out;
  for (const std::string_view slot : split_slots(cell)) out.push_back(canonical_dtype(unquoted(slot)));
  return out;
}

/// A category given as a word stands on its axis as a number: equal words, equal numbers.
double category(std::string_view word) {
  if (const auto value = number(word)) return *value;
  std::uint64_t hash = 1469598103934665603u;
  for (char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return static_cast<double>(hash >> 44);
}

struct Row {
  const Columns& column;
  std::vector<Shape> in, out;
  std::vector<std::string> in_types, out_types;

  std::string_view runtime(std::string_view what) const {
    const std::string full = "Runtime " + std::string(what);
    const std::string_view value = column(full);
    return value.empty() ? column(what) : value;
  }
  std::optional<double> runtime_number(std::string_view what) const { return number(runtime(what)); }
  double in_bytes(std::size_t slot) const { return slot < in_types.size() ? dtype_bytes(in_types[slot]).value_or(4) : 4; }
  double out_bytes(std::size_t slot) const { return slot < out_types.size() ? dtype_bytes(out_types[slot]).value_or(4) : 4; }
  double traffic() const {
    double sum = 0;
    for (std::size_t i = 0; i < in.size(); ++i) sum += in[i].empty() ? 0 : product(in[i]) * in_bytes(i);
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i].empty() ? 0 : product(out[i]) * out_bytes(i);
    return sum;
  }
};

const Axis kM{"m", AxisRole::kCurve, false}, kN{"n", AxisRole::kSite, false}, kK{"k", AxisRole::kSite, false};

bool matmul(const Row& r, Point& p) {
  if (r.in.size() < 2 || r.out.size() != 1) return false;
  const Shape &a = r.in[0], &b = r.in[1], &c = r.out[0];
  if (a.size() != 2 || b.size() != 2 || c.size() != 2 || a[0] != c[0]) return false;
  // Further slots (scales, bias) may stand behind, none of them another matrix of the size.
  for (std::size_t i = 2; i < r.in.size(); ++i) {
    if (r.in[i].size() > 2 || product(r.in[i]) > product(b)) return false;
  }
  const bool transposed = b[1] == a[1] && b[0] == c[1];
  if (!transposed && !(b[0] == a[1] && b[1] == c[1])) return false;
  p.kind = FamilyKind::kMatmul;
  p.axes = {kM, kN, kK};
  p.x = {c[0], c[1], a[1]};
  p.flops = 2 * c[0] * c[1] * a[1];
  p.bytes = r.traffic();
  p.regime += transposed ? " nk" : " kn";
  return true;
}

bool attention(const Row& r, Point& p) {
  const auto seq = r.runtime_number("avg_seq_len");
  if (!seq || *seq <= 0 || r.in.size() < 3 || r.out.empty()) return false;
  const Shape &q = r.in[0], &k = r.in[1];
  if (q.size() != 3 || k.size() != 3 || q[2] <= 0) return false;
  const double heads = r.runtime_number("num_heads").value_or(q[1]);
  const double kv_heads = r.runtime_number("num_key_value_heads").value_or(heads);
  double batch = r.runtime_number("batch_size").value_or(0);
  if (batch <= 0 && r.in.size() > 6 && r.in[6].size() == 1) batch = r.in[6][0];  // one length per sequence
  if (batch <= 0) return false;
  const double window = r.runtime_number("window_size").value_or(0), dim = q[2];
  const double queries = q[0] / batch;  // per sequence
  const bool prefill = queries > 1 || r.runtime("phase") == "prefill";
  const double seen = window > 0 ? std::min(*seq, window) : *seq;
  const double share = prefill && !(window > 0 && window < *seq) ? 0.5 : 1.0;  // causal: half of the square
  p.kind = FamilyKind::kAttention;
  p.axes = {{"seq", AxisRole::kCurve, false},
            {"batch", AxisRole::kCurve, false},
            {"heads", AxisRole::kSite, false},
            {"kv_heads", AxisRole::kSite, false}};
  p.x = {*seq, batch, heads, kv_heads};
  p.flops = 4 * q[0] * heads * seen * dim * share;
  const double kv_rows = prefill ? batch * *seq : batch * seen;
  p.bytes = q[0] * heads * dim * (r.in_bytes(0) + r.out_bytes(0)) + 2 * kv_rows * kv_heads * dim * r.in_bytes(1);
  p.regime += fmt::format(" d{} window{} {} mask{} {}", dim, window, prefill ? "prefill" : "decode", r.runtime("sparse_mode"),
                          r.runtime("input_layout"));
  return true;
}

bool moe(const Row& r, Point& p) {
  const auto ep = number(r.column("EP Size"));
  if (!ep || *ep <= 0 || r.in.size() < 3 || r.in[0].size() != 2 || r.in[1].size() != 3 || r.in[2].size() != 3) return false;
  const double tokens = r.in[0][0], hidden = r.in[0][1], local = r.in[1][0], inter = r.in[2][2];
  const double topk = r.runtime_number("topk").value_or(r.in.size() > 3 && r.in[3].size() == 2 ? r.in[3][1] : 1);
  const double experts = r.runtime_number("num_experts").value_or(local * *ep);
  p.kind = FamilyKind::kMoe;
  p.axes = {{"tokens", AxisRole::kCurve, false},  {"hidden", AxisRole::kSite, false},
            {"inter", AxisRole::kSite, false},    {"experts", AxisRole::kCategory, false},
            {"topk", AxisRole::kCategory, false}, {"ep", AxisRole::kCategory, false},
            {"tp", AxisRole::kCategory, false},   {"distribution", AxisRole::kCategory, true}};
  p.x = {tokens,
         hidden,
         inter,
         experts,
         topk,
         *ep,
         r.runtime_number("moe_tp_size").value_or(1),
         category(r.runtime("distribution"))};
  const double routed = tokens * topk / *ep, weights = product(r.in[1]) / local + product(r.in[2]) / local;
  p.flops = 2 * routed * weights;
  p.bytes = std::min(local, routed) * weights * r.in_bytes(1) + tokens * hidden * (r.in_bytes(0) + r.out_bytes(0));
  p.regime += fmt::format(" {}", r.runtime("quant_mode"));
  return true;
}

bool elementwise(const Row& r, Point& p) {
  if (r.in.size() != 1 || r.in[0].empty() || r.out.empty()) return false;
  const Shape& a = r.in[0];
  p.kind = FamilyKind::kElementwise;
  p.axes = {kM, kK};
  p.x = {product(a, 0, a.size() - 1), a.back()};
  p.flops = product(a);
  p.bytes = r.traffic();
  // A value per element and a value per row or tensor are different kernels of one name.
  p.regime += fmt::format(" rank{} {}", a.size(), r.out[0] == a ? "same" : "reduced");
  return true;
}

bool communication(const Row& r, Point& p) {
  const auto bytes = number(r.column("message_bytes")), ranks = number(r.column("num_devices"));
  if (!bytes || !ranks || *bytes <= 0 || *ranks <= 0) return false;
  p.kind = FamilyKind::kCommunication;
  p.axes = {{"bytes", AxisRole::kCurve, false},
            {"ranks", AxisRole::kCategory, false},
            {"tier", AxisRole::kCategory, false},
            {"dtype", AxisRole::kCategory, true}};
  p.x = {*bytes, *ranks, category(r.column("topology_tier")), category(canonical_dtype(unquoted(r.column("dtype"))))};
  p.bytes = *bytes;
  return true;
}

void generic(const Row& r, Point& p) {
  // Every dim is an axis; which of them varies is known when the file has been read (axes of one value drop out of all
  // distances).
  p.kind = FamilyKind::kGeneric;
  for (std::size_t slot = 0; slot < r.in.size(); ++slot) {
    p.regime += fmt::format(" {}", r.in[slot].size());
    for (std::size_t d = 0; d < r.in[slot].size(); ++d) {
      p.axes.push_back({fmt::format("in{}.{}", slot, d), p.axes.empty() ? AxisRole::kCurve : AxisRole::kSite, false});
      p.x.push_back(r.in[slot][d]);
    }
  }
  for (std::size_t slot = 0; slot < r.out.size(); ++slot) {
    for (std::size_t d = 0; d < r.out[slot].size(); ++d) {
      p.axes.push_back({fmt::format("out{}.{}", slot, d), AxisRole::kSite, false});
      p.x.push_back(r.out[slot][d]);
    }
  }
  p.bytes = r.traffic();
}

double latency_of(const Columns& row) {
  for (const std::string_view column : kLatencyColumns) {
    const auto value = number(row(column));
    if (value && *value > 0) return *value;
  }
  return 0;
}

}  // namespace

const char* name(FamilyKind kind) {
  static const char* const kNames[] = {"matmul", "attention", "moe", "elementwise", "communication", "generic"};
  return kNames[static_cast<int>(kind)];
}

std::optional<Point> describe(const Columns& row) {
  Point p;
  p.latency_us = latency_of(row);
  Row r{row, {}, {}, {}, {}};
  if (communication(r, p)) return p;
  const std::string_view text = unquoted(row("Input Shapes"));
  if (says_nothing(text)) return std::nullopt;
  r.in = shapes(text);
  const std::string_view out = unquoted(row("Output Shapes"));
  if (!says_nothing(out)) r.out = shapes(out);
  r.in_types = list(row("Input Data Types"));
  r.out_types = list(row("Output Data Types"));
  for (std::size_t i = 0; i < r.in_types.size(); ++i) p.regime += (i ? ";" : "") + r.in_types[i];
  p.regime += " " + std::string(unquoted(row("Input Formats"))) + " ->";
  for (const std::string& type : r.out_types) p.regime += " " + type;
  p.regime += " " + std::string(unquoted(row("Output Formats")));
  const auto typed = std::find_if(r.in_types.begin(), r.in_types.end(), [](const std::string& type) { return !type.empty(); });
  if (typed != r.in_types.end()) p.peak = *typed;
  if (!attention(r, p) && !moe(r, p) && !matmul(r, p) && !elementwise(r, p)) generic(r, p);
  if (p.x.empty()) return std::nullopt;
  for (double& v : p.x) v = std::max(v, 0.0);
  return p;
}

}  // namespace fuselab::perfdb
