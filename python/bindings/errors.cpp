#include "errors.h"

#include <exception>
#include <new>
#include <string>

#include "fuselab/core/error.h"
#include "fuselab/core/warn.h"

namespace fuselab::python {
namespace {

PyObject *error_type, *division_type, *index_type, *memory_type, *warning_type;

// Error(code, message), so that the Python side raises the same exceptions; copies and pickles keep the code.
constexpr const char* kTypes = R"(
class Error(RuntimeError):
    """What every failure of fuselab is. `code` is stable and may be matched; the message says what, where and what to do."""
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
    def __reduce__(self):
        return type(self), (self.code, str(self))
class DivisionByZero(Error, ZeroDivisionError):
    """An integer was divided by zero inside a kernel."""
class IndexRange(Error, IndexError):
    """An index was out of range inside a kernel."""
class OutOfMemory(Error, MemoryError):
    """The system has no memory for a result."""
class FuselabWarning(UserWarning):
    """What the user should know though the work goes on."""
)";

PyObject* type_for(const std::string& code) {
  if (code == "call.division_by_zero") return division_type;
  if (code == "call.index_range") return index_type;
  if (code == "runtime.out_of_memory" || code == "tensor.memory") return memory_type;
  return error_type;
}

}  // namespace

void add_exceptions(PyObject* module) {
  PyObject* scope = PyDict_New();
  PyObject* package = PyUnicode_FromString("fuselab");
  if (!scope || !package) throw PythonError{};
  PyDict_SetItemString(scope, "__name__", package);
  PyDict_SetItemString(scope, "__builtins__", PyEval_GetBuiltins());
  Py_DECREF(package);
  PyObject* done = PyRun_String(kTypes, Py_file_input, scope, scope);
  if (!done) throw PythonError{};
  Py_DECREF(done);
  const auto take = [&](const char* name) {
    PyObject* type = PyDict_GetItemString(scope, name);  // the module and we hold it for good
    Py_INCREF(type);
    Py_INCREF(type);
    PyModule_AddObject(module, name, type);
    return type;
  };
  error_type = take("Error");
  division_type = take("DivisionByZero");
  index_type = take("IndexRange");
  memory_type = take("OutOfMemory");
  warning_type = take("FuselabWarning");
  // Warnings of the library, from any thread, become Python's; where the user turned those into errors, they are errors.
  set_warning_handler([](const std::string&, const std::string& message) {
    if (!Py_IsInitialized()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    const bool raised = PyErr_WarnEx(warning_type, message.c_str(), 1) != 0;
    if (raised) PyErr_Clear();
    PyGILState_Release(state);
    if (raised) throw Error("warning.error", message);
  });
  Py_DECREF(scope);
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
  } catch (const Error& e) {
    PyObject* made = PyObject_CallFunction(type_for(e.code()), "ss", e.code().c_str(), e.what());
    if (!made) return;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made)), made);
    Py_DECREF(made);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
}

}  // namespace fuselab::python
