#include "fuselab/perfdb/interpolate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "fuselab/core/error.h"
#include "fuselab/perfdb/family.h"

namespace fuselab::perfdb {
namespace {

std::string joined(const std::vector<Slot>& slots, std::string (*text)(const Slot&)) {
  std::string out;
  for (std::size_t i = 0; i < slots.size(); ++i) out += (i ? ";" : "") + text(slots[i]);
  return out;
}
std::string shape(const Slot& s) { return s.present ? dims_text(s.dims) : std::string(); }
std::string dtype(const Slot& s) { return s.present ? s.dtype : "DT_UNDEFINED"; }
std::string format(const Slot& s) { return s.present ? s.format : "NULL"; }

bool same_words(const std::vector<Slot>& query, const std::vector<Slot>& row) {
  if (query.size() != row.size()) return false;
  for (std::size_t i = 0; i < query.size(); ++i) {
    if (query[i].present != row[i].present) return false;
    if (!query[i].dtype.empty() && query[i].dtype != row[i].dtype) return false;
    if (!query[i].format.empty() && query[i].format != row[i].format) return false;
  }
  return true;
}

}  // namespace

/// A query with every cell that a row would have.
struct Interpolator::Completed {
  std::map<std::string, std::string, std::less<>> cells;
};

Interpolator::Interpolator(const KernelFile& file, std::optional<DeviceProfile> device) : file_(file) {
  for (Family& family : read_families(file.path)) {
    if (family.size() >= 3) predictors_.push_back(std::make_unique<FamilyPredictor>(without_duplicates(family), device));
  }
}

std::optional<Interpolator::Completed> Interpolator::complete(const Query& q, std::string& why) const {
  const KernelFileRow* like = nullptr;
  for (const KernelFileRow& row : file_.rows) {
    if (!same_words(q.inputs, row.inputs) || (!q.outputs.empty() && !same_words(q.outputs, row.outputs))) continue;
    if (like && (joined(like->inputs, format) != joined(row.inputs, format) ||
                 joined(like->outputs, dtype) != joined(row.outputs, dtype))) {
      why = "ambiguous: rows of several formats or output dtypes fit; give formats and outputs";
      return std::nullopt;
    }
    if (!like) like = &row;
  }
  if (!like) {
    why = "shape_mismatch: no row has these dtypes, formats and slots";
    return std::nullopt;
  }
  std::vector<Slot> inputs = q.inputs, outputs = q.outputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inputs[i].dtype = like->inputs[i].dtype, inputs[i].format = like->inputs[i].format;
  if (outputs.empty()) {
    outputs = like->outputs;
    for (Slot& out : outputs) {
      if (inputs.size() == 2 && inputs[0].dims.size() == 2 && inputs[1].dims.size() == 2 && out.dims.size() == 2) {
        const bool stored_nk = inputs[1].dims[1] == inputs[0].dims[1];
        out.dims = {inputs[0].dims[0], inputs[1].dims[stored_nk ? 0 : 1]};
      } else if (!inputs.empty() && out.dims == like->inputs[0].dims) {
        out.dims = inputs[0].dims;
      } else if (!std::all_of(file_.rows.begin(), file_.rows.end(), [&](const KernelFileRow& r) {
                   return r.outputs.size() == like->outputs.size() && r.outputs[0].dims == like->outputs[0].dims;
                 })) {
        why = "shape_mismatch: the outputs are needed to tell the sizes";
        return std::nullopt;
      }
    }
  } else {
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs[i].dtype = like->outputs[i].dtype, outputs[i].format = like->outputs[i].format;
  }
  Completed out;
  out.cells["Input Shapes"] = joined(inputs, shape);
  out.cells["Input Data Types"] = joined(inputs, dtype);
  out.cells["Input Formats"] = joined(inputs, format);
  out.cells["Output Shapes"] = joined(outputs, shape);
  out.cells["Output Data Types"] = joined(outputs, dtype);
  out.cells["Output Formats"] = joined(outputs, format);
  for (std::size_t i = 0; i < file_.regime_columns.size(); ++i) {
    const std::string& column = file_.regime_columns[i];
    if (const std::string* asked = context_of(q, column)) {
      out.cells[column] = *asked;
      continue;
    }
    for (const KernelFileRow& row : file_.rows) {
      if (row.regime[i] == like->regime[i]) continue;
      why = "semantic_context_missing: rows differ in \"" + column + "\"; give it as context";
      return std::nullopt;
    }
    out.cells[column] = like->regime[i];
  }
  return out;
}

Answer Interpolator::answer(const Query& q) const {
  std::string why;
  const std::optional<Completed> row = complete(q, why);
  if (!row) return Answer::miss(why);
  std::optional<Point> point;
  try {
    point = describe([&](std::string_view column) -> std::string_view {
      const auto it = row->cells.find(column);
      return it == row->cells.end() ? std::string_view() : std::string_view(it->second);
    });
  } catch (const Error& e) {
    return Answer::miss(std::string("shape_mismatch: ") + e.what());
  }
  if (!point) return Answer::miss("shape_mismatch: no family describes these tensors");
  for (const auto& predictor : predictors_) {
    const Family& family = predictor->family();
    if (family.kind != point->kind || family.regime != point->regime || family.axes.size() != point->x.size()) continue;
    const std::optional<Prediction> p = predictor->predict(point->x.data(), point->flops, point->bytes, &why);
    if (!p) return Answer::miss("out_of_range: " + why);
    Answer out;
    out.source = p->estimate.extrapolated ? Source::extrapolated : Source::interpolated;
    out.latency_us = p->estimate.latency_us;
    out.lo = p->estimate.low_us;
    out.hi = p->estimate.high_us;
    out.method = p->method;
    for (const std::int64_t line : p->estimate.anchors) out.anchors.push_back(fmt::format("{}:{}", file_.path, line));
    return out;
  }
  return Answer::miss("shape_mismatch: no rows of this regime, or fewer than three");
}

}  // namespace fuselab::perfdb
