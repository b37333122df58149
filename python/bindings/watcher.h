// The data of kernels, copied out for Python while a compiled graph runs.
#pragma once
#include <Python.h>

#include <vector>

#include "dlpack.h"
#include "fuselab/runtime/compiled.h"
#include "fuselab/runtime/observe.h"

namespace fuselab::python {

class Watcher final : public runtime::DataWatcher {
 public:
  /// Borrows both callables for the time of one call.
  Watcher(PyObject* wants, PyObject* seen, const DLPackExchangeAPI* api) : wants_(wants), seen_(seen), api_(api) {}
  ~Watcher() override;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  void before_kernel(runtime::Call& call, int step) override;
  void after_kernel(runtime::Call& call, int step) override;

 private:
  PyObject* copies(runtime::Call& call, const int* slots, std::size_t n) const;  // a list of tensors
  PyObject *wants_, *seen_;
  const DLPackExchangeAPI* api_;
  PyObject* inputs_ = nullptr;  // of the kernel that runs, if it was wanted
};

}  // namespace fuselab::python
