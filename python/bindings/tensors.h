// Tensors in and out of Python: PyTorch and its like through DLPack's C exchange interface, everything else through the
// buffer protocol or `__dlpack__`; results as the caller's kind of tensor, or as `_core.Tensor`.
#pragma once
#include <Python.h>

#include "dlpack.h"
#include "fuselab/core/dtype.h"
#include "fuselab/runtime/compiled.h"
#include "fuselab/runtime/storage.h"

namespace fuselab::python {

/// A tensor argument while a call uses it.
class Borrowed {
 public:
  Borrowed() = default;
  ~Borrowed();
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  /// Looks at the object's memory. Throws Error("call.dtype" | "call.device" | "call.type"); `what` names the argument in
  /// messages.
  void view(PyObject* object, const std::string& what);

  runtime::InputView input;
  const DLPackExchangeAPI* api = nullptr;  ///< of the object's type; null when it came another way
  PyObject* resolved = nullptr;            ///< owned: a copy that had to be made (a tensor with a pending negation)

 private:
  void view_api(PyObject* object, const std::string& what);
  bool view_buffer(PyObject* object, const std::string& what);
  void view_dlpack(PyObject* object, const std::string& what);
  void take(const DLTensor& t, const std::string& what);

  Py_buffer buffer_;  // valid when has_buffer_; not cleared, a call has a dozen of these
  bool has_buffer_ = false;
  PyObject* capsule_ = nullptr;
  static constexpr int kInline = 8;
  int64_t inline_[kInline];
  int64_t* strides_ = nullptr;  // of a buffer, in elements
};

/// The exchange interface of a tensor type, or null.
const DLPackExchangeAPI* exchange_api(PyTypeObject* type);

/// A new tensor over `storage` (one reference is taken over). With `api` the framework's, else a `_core.Tensor`.
PyObject* wrap(const DLPackExchangeAPI* api, runtime::Storage* storage, void* data, DType dtype, int rank, const int64_t* sizes,
               const int64_t* strides);

/// Storage that keeps a Python object alive; the reference is dropped with the interpreter's lock held, from any thread.
runtime::Storage* storage_of_object(PyObject* object);

/// Adds the type `_core.Tensor`.
void add_tensor_type(PyObject* module);

}  // namespace fuselab::python
