// The op table as JSON: what front ends in other languages map their operators with.
#pragma once
#include <string>

namespace fuselab::ops {

/// An array of rows: {"name", "kind", "args": [{"name", "optional", "scalar_ok"}], "attrs": [{"name", "type", "fallback"}],
/// "results", "type", "shape", "reduce", "more" (results after the first), "lower", "lower_int", "lower_bool", "ulp", "ulp_f64",
/// "monotone", "period", "decides", "low_precision_meaning", "special" (texts "inputs -> outputs"), "aten", "aten_names",
/// "aten_ignored", "aten_result", "onnx", "ascend_ir", "cann", "doc"}. A required attribute has no "fallback".
std::string table_json();

}  // namespace fuselab::ops
