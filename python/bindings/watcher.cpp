#include "watcher.h"

#include <cstring>

#include "errors.h"
#include "fuselab/runtime/pool.h"
#include "tensors.h"

namespace fuselab::python {

using runtime::Call;

Watcher::~Watcher() { Py_XDECREF(inputs_); }

PyObject* Watcher::copies(Call& call, const int* slots, std::size_t n) const {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(n));
  if (!list) throw PythonError{};
  try {
    for (std::size_t i = 0; i < n; ++i) {
      const runtime::SlotNumbers& numbers = call.binding->slots[static_cast<std::size_t>(slots[i])];
      const auto bytes = static_cast<std::size_t>(numbers.bytes);
      runtime::StorageRef storage = runtime::allocate(bytes ? bytes : 1);
      if (bytes) std::memcpy(storage->data, call.live[slots[i]].data, bytes);
      void* data = storage->data;
      const DType dtype = call.graph.program().slots[static_cast<std::size_t>(slots[i])].type.dtype;
      PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i),
                      wrap(api_, storage.release(), data, dtype, numbers.rank, numbers.sizes, numbers.strides));
    }
  } catch (...) {
    Py_DECREF(list);
    throw;
  }
  return list;
}

void Watcher::before_kernel(Call& call, int step) {
  Py_CLEAR(inputs_);
  PyObject* answer = PyObject_CallFunction(wants_, "i", step);
  const int wanted = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  if (wanted < 0) throw PythonError{};
  const runtime::ProgramStep& s = call.graph.program().steps[static_cast<std::size_t>(step)];
  if (wanted) inputs_ = copies(call, s.slots.data(), static_cast<std::size_t>(s.inputs));
}

void Watcher::after_kernel(Call& call, int step) {
  if (!inputs_) return;
  const runtime::Program& p = call.graph.program();
  const runtime::ProgramStep& s = p.steps[static_cast<std::size_t>(step)];
  const auto inputs = static_cast<std::size_t>(s.inputs);
  PyObject* outputs = copies(call, s.slots.data() + inputs, s.slots.size() - inputs);
  PyObject* sizes = PyDict_New();
  for (std::size_t i = 0; sizes && i < p.symbols.size(); ++i) {
    PyObject* value = PyLong_FromLongLong(call.binding->key[i]);
    if (!value || PyDict_SetItemString(sizes, p.symbols[i].c_str(), value) != 0) Py_CLEAR(sizes);
    Py_XDECREF(value);
  }
  PyObject* result = sizes ? PyObject_CallFunction(seen_, "iOOO", step, inputs_, outputs, sizes) : nullptr;
  Py_DECREF(outputs);
  Py_XDECREF(sizes);
  Py_CLEAR(inputs_);
  if (!result) throw PythonError{};
  Py_DECREF(result);
}

}  // namespace fuselab::python
