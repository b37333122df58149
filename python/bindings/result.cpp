// Results on their way out: pool memory as a framework's tensor (DLPack exchange interface) or as `_core.Tensor`, which
// speaks the buffer protocol and DLPack.
#include <cstring>
#include <string>

#include "errors.h"
#include "fuselab/core/error.h"
#include "fuselab/runtime/pool.h"
#include "tensors.h"

namespace fuselab::python {
namespace {

DLDataType dl_type(DType t) {
  const auto bits = static_cast<uint8_t>(size_of(t) * 8);
  switch (t) {
    case DType::bf16:
      return {kDLBfloat, bits, 1};
    case DType::u8:
      return {kDLUInt, bits, 1};
    case DType::boolean:
      return {kDLBool, bits, 1};
    default:
      return {is_float(t) ? kDLFloat : kDLInt, bits, 1};
  }
}

/// A managed tensor in a small pool block of its own, so that making one costs no malloc. Sizes and strides follow it.
struct Managed {
  union {
    DLManagedTensorVersioned now;
    DLManagedTensor before;  // for consumers older than DLPack 1.0
  };
  runtime::Storage* self;
  runtime::Storage* memory;
  int64_t* numbers() { return reinterpret_cast<int64_t*>(this + 1); }
};

Managed* make_managed(runtime::Storage* storage, int rank) {
  runtime::StorageRef block = runtime::allocate(sizeof(Managed) + sizeof(int64_t) * 2 * static_cast<std::size_t>(rank));
  auto* m = static_cast<Managed*>(block->data);
  m->self = block.release();
  m->memory = storage;
  return m;
}

DLTensor describe(Managed* m, void* data, DType dtype, int rank, const int64_t* sizes, const int64_t* strides) {
  int64_t* numbers = m->numbers();
  if (rank > 0) {
    std::memcpy(numbers, sizes, sizeof(int64_t) * static_cast<std::size_t>(rank));
    std::memcpy(numbers + rank, strides, sizeof(int64_t) * static_cast<std::size_t>(rank));
  }
  return {data, {kDLCPU, 0}, rank, dl_type(dtype), numbers, numbers + rank, 0};
}

void free_managed(Managed* m) noexcept {
  runtime::Storage* memory = m->memory;
  runtime::drop(m->self);
  runtime::drop(memory);
}

DLManagedTensorVersioned* managed(runtime::Storage* storage, void* data, DType dtype, int rank, const int64_t* sizes,
                                  const int64_t* strides) {
  Managed* m = make_managed(storage, rank);
  m->now.version = {1, 0};
  m->now.manager_ctx = m;
  m->now.deleter = [](DLManagedTensorVersioned* t) { free_managed(static_cast<Managed*>(t->manager_ctx)); };
  m->now.flags = 0;
  m->now.dl_tensor = describe(m, data, dtype, rank, sizes, strides);
  return &m->now;
}

DLManagedTensor* managed_before_1(runtime::Storage* storage, void* data, DType dtype, int rank, const int64_t* sizes,
                                  const int64_t* strides) {
  Managed* m = make_managed(storage, rank);
  m->before.manager_ctx = m;
  m->before.deleter = [](DLManagedTensor* t) { free_managed(static_cast<Managed*>(t->manager_ctx)); };
  m->before.dl_tensor = describe(m, data, dtype, rank, sizes, strides);
  return &m->before;
}

// ---- _core.Tensor ----------------------------------------------------------------------------------------------------

struct PyTensor {
  PyObject_HEAD runtime::Storage* storage;
  void* data;
  DType dtype;
  int rank;
  int64_t* sizes;  // then strides, then strides in bytes
  int64_t* strides;
  int64_t* byte_strides;
  int64_t bytes;
};
PyTypeObject* tensor_type;

PyTensor* self_of(PyObject* o) { return reinterpret_cast<PyTensor*>(o); }

PyObject* make_tensor(runtime::Storage* storage, void* data, DType dtype, int rank, const int64_t* sizes,
                      const int64_t* strides) {
  PyObject* made = tensor_type->tp_alloc(tensor_type, 0);
  if (!made) {
    runtime::drop(storage);
    throw PythonError{};
  }
  PyTensor* t = self_of(made);
  t->storage = storage;
  t->data = data;
  t->dtype = dtype;
  t->rank = rank;
  t->sizes = new int64_t[3 * static_cast<std::size_t>(rank) + 1];
  t->strides = t->sizes + rank;
  t->byte_strides = t->strides + rank;
  t->bytes = size_of(dtype);
  for (int d = 0; d < rank; ++d) {
    t->sizes[d] = sizes[d];
    t->strides[d] = strides[d];
    t->byte_strides[d] = strides[d] * size_of(dtype);
    t->bytes *= sizes[d];
  }
  return made;
}

void tensor_dealloc(PyObject* o) {
  PyTensor* t = self_of(o);
  if (t->storage) runtime::drop(t->storage);
  delete[] t->sizes;
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

const char* format_of(DType t) {
  switch (t) {
    case DType::f16:
      return "e";
    case DType::f32:
      return "f";
    case DType::f64:
      return "d";
    case DType::i8:
      return "b";
    case DType::u8:
      return "B";
    case DType::i16:
      return "h";
    case DType::i32:
      return "i";
    case DType::i64:
      return "q";
    case DType::boolean:
      return "?";
    case DType::bf16:
      return nullptr;
  }
  return nullptr;
}

int tensor_buffer(PyObject* o, Py_buffer* view, int flags) {
  PyTensor* t = self_of(o);
  view->obj = nullptr;
  const char* format = format_of(t->dtype);
  if (!format) {
    PyErr_SetString(PyExc_BufferError,
                    "the buffer protocol has no bfloat16: use DLPack, or view it as bytes with a cast to f32 in the graph");
    return -1;
  }
  if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
    PyErr_SetString(PyExc_BufferError, "this buffer is described by strides: ask for them");
    return -1;
  }
  view->buf = t->data ? t->data : t;  // an empty array still wants an address
  view->itemsize = size_of(t->dtype);
  view->len = t->bytes;
  view->readonly = 0;
  view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
  view->ndim = t->rank;
  view->shape = reinterpret_cast<Py_ssize_t*>(t->sizes);
  view->strides = reinterpret_cast<Py_ssize_t*>(t->byte_strides);
  view->suboffsets = nullptr;
  view->internal = nullptr;
  Py_INCREF(o);
  view->obj = o;
  return 0;
}

PyObject* numbers_tuple(const int64_t* xs, int n) {
  PyObject* out = PyTuple_New(n);
  for (int i = 0; out && i < n; ++i) PyTuple_SET_ITEM(out, i, PyLong_FromLongLong(xs[i]));
  return out;
}

PyObject* tensor_dlpack(PyObject* o, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  PyTensor* t = self_of(o);
  long major = 0;
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, i), "max_version") != 0) continue;
    PyObject* version = args[nargs + i];
    if (PyTuple_Check(version) && PyTuple_GET_SIZE(version) > 0) major = PyLong_AsLong(PyTuple_GET_ITEM(version, 0));
    if (PyErr_Occurred()) return nullptr;
  }
  try {
    runtime::retain(t->storage);
    if (major >= 1) {
      DLManagedTensorVersioned* m = managed(t->storage, t->data, t->dtype, t->rank, t->sizes, t->strides);
      return PyCapsule_New(m, "dltensor_versioned", [](PyObject* c) {
        if (!PyCapsule_IsValid(c, "dltensor_versioned")) return;  // renamed: taken by a consumer
        auto* m = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(c, "dltensor_versioned"));
        m->deleter(m);
      });
    }
    DLManagedTensor* m = managed_before_1(t->storage, t->data, t->dtype, t->rank, t->sizes, t->strides);
    return PyCapsule_New(m, "dltensor", [](PyObject* c) {
      if (!PyCapsule_IsValid(c, "dltensor")) return;
      auto* m = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(c, "dltensor"));
      m->deleter(m);
    });
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* tensor_device(PyObject*, PyObject*) { return Py_BuildValue("(ii)", static_cast<int>(kDLCPU), 0); }
PyObject* tensor_shape(PyObject* o, void*) { return numbers_tuple(self_of(o)->sizes, self_of(o)->rank); }
PyObject* tensor_strides(PyObject* o, void*) { return numbers_tuple(self_of(o)->strides, self_of(o)->rank); }
PyObject* tensor_dtype(PyObject* o, void*) {
  const std::string_view text = name(self_of(o)->dtype);
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}
PyObject* tensor_repr(PyObject* o) {
  PyTensor* t = self_of(o);
  std::string text(name(t->dtype));
  text += "[";
  for (int d = 0; d < t->rank; ++d) text += (d ? ", " : "") + std::to_string(t->sizes[d]);
  return PyUnicode_FromString(("<fuselab tensor " + text + "]>").c_str());
}

PyMethodDef tensor_methods[] = {{"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(tensor_dlpack)),
                                 METH_FASTCALL | METH_KEYWORDS, "A DLPack capsule over the same memory."},
                                {"__dlpack_device__", tensor_device, METH_NOARGS, "(kDLCPU, 0)"},
                                {nullptr, nullptr, 0, nullptr}};
PyGetSetDef tensor_getset[] = {{"shape", tensor_shape, nullptr, "sizes", nullptr},
                               {"strides", tensor_strides, nullptr, "strides in elements", nullptr},
                               {"dtype", tensor_dtype, nullptr, "the element type's name in the graph text form", nullptr},
                               {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot tensor_slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(tensor_repr)},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_getset},
    {Py_tp_doc, const_cast<char*>("A result in fuselab's memory. numpy.asarray(t) and from_dlpack(t) share it.")},
    {Py_bf_getbuffer, reinterpret_cast<void*>(tensor_buffer)},
    {0, nullptr}};
PyType_Spec tensor_spec = {"fuselab._core.Tensor", sizeof(PyTensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           tensor_slots};

}  // namespace

PyObject* wrap(const DLPackExchangeAPI* api, runtime::Storage* storage, void* data, DType dtype, int rank, const int64_t* sizes,
               const int64_t* strides) {
  if (!api) return make_tensor(storage, data, dtype, rank, sizes, strides);
  DLManagedTensorVersioned* m = managed(storage, data, dtype, rank, sizes, strides);
  void* made = nullptr;
  if (api->managed_tensor_to_py_object_no_sync(m, &made) != 0) throw PythonError{};
  return static_cast<PyObject*>(made);
}

void add_tensor_type(PyObject* module) {
  tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&tensor_spec));
  if (!tensor_type) throw PythonError{};
  Py_INCREF(tensor_type);
  PyModule_AddObject(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type));
}

}  // namespace fuselab::python
