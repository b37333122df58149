// The Python module _core: what the Python side reaches of the C++ library.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "callable.h"
#include "compare.h"
#include "compile.h"
#include "errors.h"
#include "fuselab/core/version.h"
#include "fuselab/ops/table_json.h"
#include "fuselab/runtime/pool.h"
#include "numerics.h"
#include "perfdb.h"
#include "profile.h"
#include "repro.h"
#include "tensors.h"

namespace nb = nanobind;
using namespace fuselab;

NB_MODULE(_core, m) {
  m.attr("__version__") = std::string(version());
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error&) {
      python::set_python_error();
    } catch (const python::PythonError&) {  // already set
    }
  });
  try {
    python::add_exceptions(m.ptr());
    python::add_tensor_type(m.ptr());
    python::add_callable_type(m.ptr());
  } catch (const python::PythonError&) {
    throw nb::python_error();
  }
  python::add_compile(m);
  python::add_numerics(m);
  python::add_compare(m);
  python::add_profile(m);
  python::add_perfdb(m);
  python::add_repro(m);
  m.def("op_table", &ops::table_json, "The op table as JSON (fuselab/ops/table_json.h).");

  m.def("empty_cache", &runtime::empty_pool, "Gives idle result memory back to the system.");
  m.def("pool_stats", [] {
    const runtime::PoolStats s = runtime::pool_stats();
    nb::dict d;
    d["mapped"] = s.mapped;
    d["idle"] = s.idle;
    d["limit"] = s.limit;
    d["fresh"] = s.fresh;
    return d;
  });
  m.def("set_pool_limit", &runtime::set_pool_limit, nb::arg("bytes"));
  m.def("counts", [] {
    const runtime::Counts c = runtime::counts();
    nb::dict d;
    d["graphs"] = c.graphs;
    d["kernels"] = c.kernels;
    d["fallbacks"] = c.fallbacks;
    d["compiled"] = c.compiled;
    d["from_cache"] = c.from_cache;
    d["relayouts"] = c.relayouts;
    return d;
  });
  m.def("reset_counts", &runtime::reset_counts);
}
