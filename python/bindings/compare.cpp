#include "compare.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <list>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "fuselab/numerics/compare.h"
#include "seen.h"

namespace nb = nanobind;

namespace fuselab::python {
namespace {

using numerics::Comparison;
using Named = std::vector<std::pair<std::string, nb::object>>;

numerics::CompareLimits limits_of(bool exact, nb::handle max_ulp, nb::handle rtol, nb::handle atol) {
  const auto number = [](nb::handle h, const char* what) {
    if (h.is_none()) return -1.0;
    const auto value = nb::cast<double>(h);
    if (!(value >= 0)) fail("options.bad_value", "{} must be a number of at least 0", what);
    return value;
  };
  return {exact, number(max_ulp, "max_ulp"), number(rtol, "rtol"), number(atol, "atol")};
}

Comparison compare_named(const nb::list& names, const nb::list& a, const nb::list& b, const numerics::CompareLimits& limits) {
  if (names.size() != a.size() || names.size() != b.size()) fail("numerics.mismatch", "as many names as tensors are needed");
  std::list<Seen> seen;
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < names.size(); ++i) {
    labels.push_back(nb::cast<std::string>(names[i]));
    seen.emplace_back(a[i], labels.back() + " (expected)");
    seen.emplace_back(b[i], labels.back() + " (actual)");
  }
  nb::gil_scoped_release release;
  Comparison out;
  out.a = "expected";
  out.b = "actual";
  auto at = seen.begin();
  for (const std::string& label : labels) {
    const Tensor &x = at->tensor, &y = std::next(at)->tensor;
    out.tensors.push_back(numerics::compare_tensors(label, x, y, limits));
    std::advance(at, 2);
    ++out.compared;
  }
  out.finish();
  return out;
}

}  // namespace

void add_compare(nb::module_& m) {
  nb::class_<Comparison>(m, "Comparison", "What comparing two sets of tensors found, worst first.")
      .def_prop_ro("passed", &Comparison::passed)
      .def(
          "text", [](const Comparison& c, std::size_t rows) { return numerics::report_text(c, rows); }, nb::arg("rows") = 40)
      .def("json", &numerics::report_json)
      .def("html", &numerics::report_html)
      .def("__str__", [](const Comparison& c) { return numerics::report_text(c, 40); });
  m.def(
      "compare_files",
      [](const std::string& a, const std::string& b, bool exact, nb::handle max_ulp, nb::handle rtol, nb::handle atol) {
        const numerics::CompareLimits limits = limits_of(exact, max_ulp, rtol, atol);
        nb::gil_scoped_release release;
        return numerics::compare_files(a, b, limits);
      },
      nb::arg("a"), nb::arg("b"), nb::arg("exact") = false, nb::arg("max_ulp").none() = nb::none(),
      nb::arg("rtol").none() = nb::none(), nb::arg("atol").none() = nb::none(),
      "Files or folders of tensors: .npy, .npz, .safetensors, .pt.");
  m.def(
      "compare_tensors",
      [](const nb::list& names, const nb::list& a, const nb::list& b, bool exact, nb::handle max_ulp, nb::handle rtol,
         nb::handle atol) { return compare_named(names, a, b, limits_of(exact, max_ulp, rtol, atol)); },
      nb::arg("names"), nb::arg("expected"), nb::arg("actual"), nb::arg("exact") = false, nb::arg("max_ulp").none() = nb::none(),
      nb::arg("rtol").none() = nb::none(), nb::arg("atol").none() = nb::none(), "Lists of tensors, pair by pair.");
  m.def(
      "read_tensors",
      [](const std::string& path) {
        nb::list out;
        for (const numerics::NamedTensor& t : numerics::open_tensors(path)) {
          if (!t.problem.empty()) fail("file.dtype", "{}: {} cannot be read: {}.", path, t.name, t.problem);
          const Tensor loaded = t.load();
          Tensor rows(loaded.dtype(), loaded.sizes());
          rows.copy_bits_from(loaded);
          const auto bytes = static_cast<std::size_t>(rows.numel()) * static_cast<std::size_t>(size_of(rows.dtype()));
          out.append(nb::make_tuple(t.name, std::string(name(rows.dtype())), rows.sizes(),
                                    nb::bytes(static_cast<const char*>(rows.data()), bytes)));
        }
        return out;
      },
      nb::arg("path"),
      "(name, dtype, sizes, bytes in row-major order) of each tensor of a .npy, .npz, .safetensors or .pt file.");
  m.def(
      "write_safetensors",
      [](const std::string& path, const nb::list& names, const nb::list& tensors) {
        std::list<Seen> seen;
        std::vector<std::pair<std::string, Tensor>> named;
        for (std::size_t i = 0; i < names.size(); ++i) {
          seen.emplace_back(tensors[i], nb::cast<std::string>(names[i]));
          named.emplace_back(nb::cast<std::string>(names[i]), seen.back().tensor);
        }
        nb::gil_scoped_release release;
        numerics::write_safetensors(path, named);
      },
      nb::arg("path"), nb::arg("names"), nb::arg("tensors"), "A .safetensors file, whole or not at all.");
}

}  // namespace fuselab::python
