// compile_graph and the questions one may ask a compiled graph.
#pragma once
#include <nanobind/nanobind.h>

#include "fuselab/runtime/compiled.h"

namespace fuselab::python {

/// compile_graph's options as the runtime takes them. Throws Error("options...").
runtime::Options runtime_options(const nanobind::dict& options);
void add_compile(nanobind::module_& m);

}  // namespace fuselab::python
