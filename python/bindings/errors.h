// Exceptions across the border: fuselab::Error becomes fuselab.Error (a RuntimeError) with its code.
#pragma once
#include <Python.h>

namespace fuselab::python {

/// Thrown in C++ when a Python error is already set.
struct PythonError {};

/// Makes the exception types and adds them to the module: Error(code, message), DivisionByZero (also a ZeroDivisionError),
/// IndexRange (also an IndexError), OutOfMemory (also a MemoryError), FuselabWarning. The library's warnings become Python's.
void add_exceptions(PyObject* module);

/// Sets the Python error for the C++ exception in flight. Call inside a catch block.
void set_python_error() noexcept;

}  // namespace fuselab::python
