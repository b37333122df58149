// compile_graph and the questions one may ask a compiled graph.
#pragma once
#include <nanobind/nanobind.h>

namespace fuselab::python {

void add_compile(nanobind::module_& m);

}  // namespace fuselab::python
