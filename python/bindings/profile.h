// The step profiler and the reader of profiler files, in Python.
#pragma once
#include <nanobind/nanobind.h>

namespace fuselab::python {

void add_profile(nanobind::module_& m);

}  // namespace fuselab::python
