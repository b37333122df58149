#include "numerics.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "errors.h"
#include "fuselab/core/error.h"
#include "fuselab/core/random.h"
#include "fuselab/core/tensor.h"
#include "fuselab/graph/text.h"
#include "fuselab/numerics/verdict.h"
#include "fuselab/reference/reference.h"
#include "fuselab/runtime/pool.h"
#include "seen.h"
#include "tensors.h"

namespace nb = nanobind;

namespace fuselab::python {
namespace {

/// A new Python tensor of the same kind as the arguments (`api`), or `_core.Tensor`.
template <typename T>
nb::object made(const DLPackExchangeAPI* api, DType dtype, const std::vector<std::int64_t>& sizes, const std::vector<T>& values) {
  const std::size_t bytes = values.size() * sizeof(T);
  runtime::StorageRef storage = runtime::allocate(bytes ? bytes : 1);
  if (bytes) std::memcpy(storage->data, values.data(), bytes);
  const std::vector<std::int64_t> strides = contiguous_strides(sizes);
  void* data = storage->data;
  return nb::steal(wrap(api, storage.release(), data, dtype, static_cast<int>(sizes.size()), sizes.data(), strides.data()));
}
nb::object made(const DLPackExchangeAPI* api, const Tensor& t) {
  const auto bytes = static_cast<std::size_t>(t.extent_bytes());
  runtime::StorageRef storage = runtime::allocate(bytes ? bytes : 1);
  if (bytes) std::memcpy(storage->data, t.data(), bytes);
  void* data = storage->data;
  return nb::steal(wrap(api, storage.release(), data, t.dtype(), t.rank(), t.sizes().data(), t.strides().data()));
}

nb::dict dict_of(const numerics::Spread& s) {
  nb::dict d;
  d["max"] = s.max;
  d["mean"] = s.mean;
  d["p50"] = s.p50;
  d["p99"] = s.p99;
  return d;
}
nb::dict dict_of(const numerics::ErrorStats& s) {
  nb::dict d;
  d["absolute"] = dict_of(s.absolute);
  d["relative"] = dict_of(s.relative);
  d["ulp"] = dict_of(s.ulp);
  d["worst"] = s.worst;
  d["count"] = s.count;
  d["aligned_nonfinite"] = s.aligned_nonfinite;
  d["misaligned"] = s.misaligned;
  return d;
}
nb::dict dict_of(const numerics::CannResult& r) {
  nb::dict d;
  d["passed"] = r.passed;
  d["reason"] = r.reason;
  if (r.has_metrics) {
    d["CosineSim"] = r.metrics.cosine;
    d["RelEuclid"] = r.metrics.rel_euclid;
    d["KLDiv"] = r.metrics.kl_div;
    d["MAE"] = r.metrics.mae;
    d["RMSE"] = r.metrics.rmse;
  }
  d["removed"] = r.removed;
  d["first_difference"] = r.first_difference;
  d["notes"] = nb::cast(r.notes);
  d["warnings"] = nb::cast(r.warnings);
  return d;
}

/// The result of fp64_reference in Python: attributes name, dtype, sizes, value, bound, undecided.
struct PyReference {
  reference::Output output;
  const DLPackExchangeAPI* api = nullptr;
};

class Inputs {
 public:
  explicit Inputs(const nb::list& objects) {
    std::size_t i = 0;
    for (nb::handle object : objects) {
      seen_.emplace_back(object, fmt::format("input {}", i++));
      tensors.push_back(seen_.back().tensor);
      if (!api) api = seen_.back().api;
    }
  }
  std::vector<Tensor> tensors;
  const DLPackExchangeAPI* api = nullptr;

 private:
  std::list<Seen> seen_;
};

std::vector<PyReference> reference_in_python(const std::string& text, const nb::list& inputs, const std::string& precision,
                                             bool any_borders, const std::vector<std::string>& stored) {
  reference::Options options;
  if (precision != "block" && precision != "eager")
    fail("options.bad_value", "precision is 'block' or 'eager', not '{}'", precision);
  options.rounding = precision == "eager" ? reference::Rounding::eager : reference::Rounding::block;
  options.any_borders = any_borders;
  const Graph graph = parse_graph(text);
  for (const std::string& name : stored) {
    bool found = false;
    for (const Value& v : graph.values) {
      if (v.name == name) options.stored.push_back(v.id), found = true;
    }
    if (!found) fail("graph.unknown_value", "stored value {} is not in the graph", name);
  }
  const Inputs in(inputs);
  std::vector<reference::Output> outputs;
  {
    nb::gil_scoped_release release;
    outputs = reference::fp64_reference(graph, in.tensors, options);
  }
  std::vector<PyReference> out;
  for (reference::Output& o : outputs) out.push_back({std::move(o), in.api});
  return out;
}

nb::dict judge_in_python(nb::handle expected, nb::handle actual, const PyReference* reference, nb::handle second_run,
                         const std::string& output, const std::string& path) {
  const Seen e(expected, "expected"), a(actual, "actual");
  std::optional<Seen> second;
  if (!second_run.is_none()) second.emplace(second_run, "second_run");
  numerics::Evidence evidence;
  evidence.expected = e.tensor;
  evidence.actual = a.tensor;
  if (second) evidence.second_run = second->tensor;
  evidence.reference = reference ? &reference->output : nullptr;
  numerics::Verdict v;
  {
    nb::gil_scoped_release release;
    v = numerics::judge(evidence);
  }
  nb::dict d;
  d["passed"] = v.passed;
  d["reason"] = v.reason;
  d["line"] = numerics::precision_line(output, path, v);
  d["cann"] = dict_of(v.cann);
  d["elements"] = v.elements;
  d["undecided"] = v.undecided;
  d["outside"] = v.outside;
  d["first_outside"] = v.first_outside;
  d["worst_ratio"] = v.worst_ratio;
  d["unwritten"] = v.unwritten.count;
  d["first_unwritten"] = v.unwritten.first;
  d["unstable"] = v.unwritten.unstable;
  d["excused"] = v.excused;
  d["expected_error"] = dict_of(v.expected_error);
  d["actual_error"] = dict_of(v.actual_error);
  d["notes"] = nb::cast(v.notes);
  d["warnings"] = nb::cast(v.warnings);
  return d;
}

std::string fp64_line_in_python(const std::string& output, const PyReference& reference, const nb::list& paths) {
  std::list<Seen> seen;
  std::vector<numerics::PathErrors> errors;
  for (nb::handle item : paths) {
    const auto pair = nb::cast<nb::tuple>(item);
    seen.emplace_back(pair[1], "a path's result");
    const Tensor& t = seen.back().tensor;
    errors.push_back(
        {nb::cast<std::string>(pair[0]), t, numerics::error_stats(t, reference.output.value, reference.output.undecided)});
  }
  return numerics::fp64_line(output, reference.output, errors);
}

}  // namespace

void add_numerics(nb::module_& m) {
  m.def(
      "bit_equal",
      [](nb::handle a, nb::handle b) {
        const Seen x(a, "a"), y(b, "b");
        return numerics::bit_equal(x.tensor, y.tensor);
      },
      nb::arg("a"), nb::arg("b"), "Same dtype, sizes and bits.");
  m.def(
      "ulp_diff",
      [](nb::handle a, nb::handle b, bool nan_equal, bool signed_zero) {
        const Seen x(a, "a"), y(b, "b");
        std::vector<std::int64_t> out;
        for (const std::uint64_t u : numerics::ulp_diff(x.tensor, y.tensor, {nan_equal, signed_zero})) {
          out.push_back(u > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(u));
        }
        return made(x.api, DType::i64, x.tensor.sizes(), out);
      },
      nb::arg("a"), nb::arg("b"), nb::arg("nan_equal") = true, nb::arg("signed_zero") = false,
      "Representable values between a and b, element by element; the largest i64 for a NaN against a number.");
  m.def(
      "error_stats",
      [](nb::handle actual, nb::handle reference) {
        const Seen a(actual, "actual");
        if (nb::isinstance<PyReference>(reference)) {
          const auto& r = nb::cast<const PyReference&>(reference);
          return dict_of(numerics::error_stats(a.tensor, r.output.value, r.output.undecided));
        }
        const Seen r(reference, "reference");
        return dict_of(numerics::error_stats(a.tensor, r.tensor));
      },
      nb::arg("actual"), nb::arg("reference"), "Absolute, relative and ULP error against a reference of higher precision.");
  m.def(
      "cann_metrics",
      [](nb::handle expected, nb::handle actual) {
        const Seen e(expected, "expected"), a(actual, "actual");
        return dict_of(numerics::cann_metrics(e.tensor, a.tensor));
      },
      nb::arg("expected"), nb::arg("actual"),
      "CANN metrics. Give a complex tensor as torch.view_as_real(x), a quantised one dequantised.");

  nb::class_<PyReference>(m, "Reference", "One output of fp64_reference.")
      .def_prop_ro("name", [](const PyReference& r) { return r.output.name; })
      .def_prop_ro("dtype", [](const PyReference& r) { return std::string(name(r.output.dtype)); })
      .def_prop_ro("sizes", [](const PyReference& r) { return r.output.sizes; })
      .def_prop_ro("value",
                   [](const PyReference& r) {
                     if (!is_float(r.output.dtype)) return made(r.api, DType::i64, r.output.sizes, r.output.ints);
                     return made(r.api, DType::f64, r.output.sizes, r.output.value);
                   })
      .def_prop_ro("bound", [](const PyReference& r) { return made(r.api, DType::f64, r.output.sizes, r.output.bound); })
      .def_prop_ro("undecided",
                   [](const PyReference& r) { return made(r.api, DType::boolean, r.output.sizes, r.output.undecided); });
  m.def("fp64_reference", &reference_in_python, nb::arg("graph"), nb::arg("inputs"), nb::arg("precision") = "block",
        nb::arg("any_borders") = false, nb::arg("stored") = std::vector<std::string>{},
        "fp64 value, error bound and undecided mask of every output of a graph text.");
  m.def(
      "rounded",
      [](const std::string& text, const nb::list& inputs) {
        const Inputs in(inputs);
        nb::list out;
        for (const Tensor& t : reference::rounded(parse_graph(text), in.tensors)) out.append(made(in.api, t));
        return out;
      },
      nb::arg("graph"), nb::arg("inputs"), "Every operator's result rounded to its dtype: the op-by-op eager model.");
  m.def("judge", &judge_in_python, nb::arg("expected"), nb::arg("actual"), nb::arg("reference").none() = nb::none(),
        nb::arg("second_run").none() = nb::none(), nb::arg("output") = "y", nb::arg("path") = "precision",
        "The verdict on one output of one path: metrics, error bound, unwritten elements, and the line to print.");
  m.def("fp64_line", &fp64_line_in_python, nb::arg("output"), nb::arg("reference"), nb::arg("paths"),
        "The line that compares paths [(name, tensor), ...] with fp64.");
  m.def("precision_summary", &numerics::summary_line, nb::arg("failed_outputs"));
  m.def("poison_bytes", [] { return std::vector<int>{numerics::kPoison[0], numerics::kPoison[1]}; });
  m.def(
      "fill_poison",
      [](nb::handle tensor, int which) {
        if (which != 0 && which != 1) fail("options.bad_value", "there are poison patterns 0 and 1, not {}", which);
        const Seen t(tensor, "tensor");
        numerics::fill_poison(t.tensor, numerics::kPoison[which]);
      },
      nb::arg("tensor"), nb::arg("which"));
  m.def(
      "fill_random",
      [](nb::handle tensor, std::uint64_t seed, std::uint64_t stream, std::int64_t low, std::int64_t high) {
        const Seen t(tensor, "tensor");
        fill_random(t.tensor, seed, stream, {low, high});
      },
      nb::arg("tensor"), nb::arg("seed"), nb::arg("stream") = 0, nb::arg("low") = 0, nb::arg("high") = 9,
      "In place: normals for floats, low..high for integers, a fair coin for bool; a function of seed and stream alone.");
}

}  // namespace fuselab::python
