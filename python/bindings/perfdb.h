#pragma once
#include <nanobind/nanobind.h>

namespace fuselab::python {

/// `Database` of the performance database.
void add_perfdb(nanobind::module_& m);

}  // namespace fuselab::python
