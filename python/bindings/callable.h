// `_core.CompiledGraph`: a compiled graph as a Python callable.
#pragma once
#include <Python.h>

#include <memory>
#include <vector>

#include "fuselab/runtime/compiled.h"
#include "tensors.h"

namespace fuselab::python {

/// What a callable is made of. `externs`: new references. `is_size`: per parameter of the text, whether it is a `B: size`.
struct CallableParts {
  std::shared_ptr<runtime::CompiledGraph> graph;
  std::vector<bool> is_size;
  std::vector<PyObject*> externs;
  const DLPackExchangeAPI* api = nullptr;  ///< results' kind; null: as the first tensor argument
  /// wants(step) -> bool before a kernel, seen(step, inputs, outputs, sizes) after one that was wanted; null or both. Owned.
  PyObject *wants = nullptr, *seen = nullptr;
};

PyObject* make_callable(CallableParts parts);
/// The graph behind a callable. Throws Error("call.type") for any other object.
runtime::CompiledGraph& graph_of(PyObject* callable);
void add_callable_type(PyObject* module);

}  // namespace fuselab::python
