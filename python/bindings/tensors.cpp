#include "tensors.h"

#include <cstring>
#include <string>

#include "errors.h"
#include "fuselab/core/error.h"
#include "fuselab/runtime/pool.h"

namespace fuselab::python {
namespace {

struct TypeApi {
  PyTypeObject* type;
  const DLPackExchangeAPI* api;
};
constexpr int kTypes = 8;
TypeApi known_types[kTypes];  // guarded by the interpreter's lock; types are kept for good
int known_count = 0;

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

/// The current Python error as text, cleared.
std::string take_error() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  std::string text = "unknown error";
  if (value) {
    if (PyObject* s = PyObject_Str(value)) {
      if (const char* c = PyUnicode_AsUTF8(s)) text = c;
      Py_DECREF(s);
    }
  }
  PyErr_Clear();
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  const std::size_t line = text.find('\n');
  return line == std::string::npos ? text : text.substr(0, line);
}

DType dtype_of(const DLDataType& t, const std::string& what) {
  if (t.lanes == 1) {
    switch (t.code) {
      case kDLFloat:
        if (t.bits == 32) return DType::f32;
        if (t.bits == 16) return DType::f16;
        if (t.bits == 64) return DType::f64;
        break;
      case kDLBfloat:
        if (t.bits == 16) return DType::bf16;
        break;
      case kDLInt:
        if (t.bits == 64) return DType::i64;
        if (t.bits == 32) return DType::i32;
        if (t.bits == 16) return DType::i16;
        if (t.bits == 8) return DType::i8;
        break;
      case kDLUInt:
        if (t.bits == 8) return DType::u8;
        break;
      case kDLBool:
        if (t.bits == 8) return DType::boolean;
        break;
      default:
        break;
    }
  }
  fail("call.dtype", "{} has an element type fuselab does not know (DLPack code {}, {} bits): convert it first", what,
       static_cast<int>(t.code), static_cast<int>(t.bits));
}

DType dtype_of_format(const char* format, Py_ssize_t itemsize, const std::string& what) {
  const char* f = format ? format : "B";
  if (*f == '@' || *f == '=' || *f == '<') ++f;
  if (f[0] != 0 && f[1] == 0) {
    switch (f[0]) {
      case 'e':
        return DType::f16;
      case 'f':
        return DType::f32;
      case 'd':
        return DType::f64;
      case '?':
        return DType::boolean;
      case 'B':
        return DType::u8;
      case 'b':
        return DType::i8;
      case 'h':
        return DType::i16;
      case 'i':
      case 'l':
      case 'q':
        return itemsize == 8 ? DType::i64 : DType::i32;
      default:
        break;
    }
  }
  fail("call.dtype", "{} has an element type fuselab does not know (buffer format '{}'): convert it first", what,
       format ? format : "");
}

}  // namespace

const DLPackExchangeAPI* exchange_api(PyTypeObject* type) {
  for (int i = 0; i < known_count; ++i)
    if (known_types[i].type == type) return known_types[i].api;
  static PyObject* const name = interned("__dlpack_c_exchange_api__");
  const DLPackExchangeAPI* api = nullptr;
  PyObject* capsule = PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name);
  if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api")) {
    const auto* found = static_cast<const DLPackExchangeAPI*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
    if (found && found->header.version.major == 1 && found->dltensor_from_py_object_no_sync) api = found;
  }
  Py_XDECREF(capsule);
  PyErr_Clear();
  if (known_count < kTypes) {
    Py_INCREF(type);
    known_types[known_count++] = {type, api};
  }
  return api;
}

Borrowed::~Borrowed() {
  if (has_buffer_) PyBuffer_Release(&buffer_);
  Py_XDECREF(capsule_);
  Py_XDECREF(resolved);
  if (strides_ && strides_ != inline_) delete[] strides_;
}

void Borrowed::take(const DLTensor& t, const std::string& what) {
  const int device = t.device.device_type;
  if (device != kDLCPU && device != kDLCUDAHost && device != kDLROCMHost)
    fail("call.device", "{} is not in CPU memory (DLPack device {}): move it with .cpu(), fuselab's kernels run on the CPU", what,
         device);
  input = {static_cast<char*>(t.data) + t.byte_offset, dtype_of(t.dtype, what), t.ndim, t.shape, t.strides};
}

void Borrowed::view_api(PyObject* object, const std::string& what) {
  DLTensor t;
  if (api->dltensor_from_py_object_no_sync(object, &t) != 0) fail("call.type", "{} cannot be read: {}", what, take_error());
  take(t, what);
}

void Borrowed::view(PyObject* object, const std::string& what) {
  api = exchange_api(Py_TYPE(object));
  if (api) {
    view_api(object, what);
    if (!is_float(input.dtype) || input.data == nullptr) return;
    // A lazily negated tensor's memory does not hold its values. (A lazily conjugated one is complex: refused by its type.)
    static PyObject* const is_neg = interned("is_neg");
    PyObject* neg = PyObject_VectorcallMethod(is_neg, &object, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    if (!neg) {
      PyErr_Clear();
      return;
    }
    const bool negated = neg == Py_True;
    Py_DECREF(neg);
    if (!negated) return;
    resolved = PyObject_CallMethod(object, "resolve_neg", nullptr);
    if (!resolved) throw PythonError{};
    view_api(resolved, what);
    return;
  }
  if (PyObject_CheckBuffer(object) && view_buffer(object, what)) return;
  view_dlpack(object, what);
}

bool Borrowed::view_buffer(PyObject* object, const std::string& what) {
  if (PyObject_GetBuffer(object, &buffer_, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return false;
  }
  has_buffer_ = true;
  const DType dtype = dtype_of_format(buffer_.format, buffer_.itemsize, what);
  if (buffer_.ndim > kInline)
    strides_ = new int64_t[buffer_.ndim];
  else
    strides_ = inline_;
  bool empty = false;
  for (int d = 0; d < buffer_.ndim; ++d) empty = empty || buffer_.shape[d] == 0;
  for (int d = 0; d < buffer_.ndim; ++d) {
    if (!empty && buffer_.shape[d] > 1 && buffer_.strides[d] % buffer_.itemsize != 0)
      fail("call.layout", "{} has a stride of {} bytes, no multiple of its {}-byte elements: copy it first", what,
           buffer_.strides[d], buffer_.itemsize);
    strides_[d] = buffer_.strides[d] / buffer_.itemsize;
  }
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  input = {buffer_.buf, dtype, buffer_.ndim, reinterpret_cast<const int64_t*>(buffer_.shape), strides_};
  return true;
}

void Borrowed::view_dlpack(PyObject* object, const std::string& what) {
  PyObject* method = PyObject_GetAttrString(object, "__dlpack__");
  if (!method) {
    PyErr_Clear();
    fail("call.type", "{} is a {}: a tensor, an array or another object with __dlpack__ is needed", what,
         Py_TYPE(object)->tp_name);
  }
  PyObject* args = PyTuple_New(0);
  PyObject* kwargs = Py_BuildValue("{s(ii)}", "max_version", 1, 0);
  capsule_ = PyObject_Call(method, args, kwargs);
  if (!capsule_ && PyErr_ExceptionMatches(PyExc_TypeError)) {  // written before version 1
    PyErr_Clear();
    capsule_ = PyObject_CallNoArgs(method);
  }
  Py_DECREF(args);
  Py_XDECREF(kwargs);
  Py_DECREF(method);
  if (!capsule_) fail("call.type", "{} cannot be read: {}", what, take_error());
  // The capsule keeps its name, so its own destructor frees the tensor when the call is over.
  if (PyCapsule_IsValid(capsule_, "dltensor_versioned")) {
    const auto* m = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule_, "dltensor_versioned"));
    if (m->version.major != 1) fail("call.type", "{} speaks DLPack version {}, fuselab version 1", what, m->version.major);
    take(m->dl_tensor, what);
  } else if (PyCapsule_IsValid(capsule_, "dltensor")) {
    take(static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule_, "dltensor"))->dl_tensor, what);
  } else {
    fail("call.type", "{}: __dlpack__ gave something that is no DLPack capsule", what);
  }
}

runtime::Storage* storage_of_object(PyObject* object) {
  auto* s = new runtime::Storage;
  Py_INCREF(object);
  s->context = object;
  s->release = [](runtime::Storage* self) noexcept {
    if (Py_IsInitialized()) {  // at exit the interpreter takes everything down itself
      const PyGILState_STATE state = PyGILState_Ensure();
      Py_DECREF(static_cast<PyObject*>(self->context));
      PyGILState_Release(state);
    }
    delete self;
  };
  return s;
}

}  // namespace fuselab::python
