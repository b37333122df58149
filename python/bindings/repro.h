// The debug folder and the scripts in it, for Python.
#pragma once
#include <nanobind/nanobind.h>

namespace fuselab::python {

void add_repro(nanobind::module_& m);

}  // namespace fuselab::python
