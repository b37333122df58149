// Comparing sets of tensors, for fuselab.numerics, fuselab.testing and the pytest plugin.
#pragma once
#include <nanobind/nanobind.h>

namespace fuselab::python {

void add_compare(nanobind::module_& m);

}  // namespace fuselab::python
