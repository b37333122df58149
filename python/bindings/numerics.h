// Distances, metrics, verdicts and the fp64 reference, for the scripts and checks in Python.
#pragma once
#include <nanobind/nanobind.h>

namespace fuselab::python {

void add_numerics(nanobind::module_& m);

}  // namespace fuselab::python
