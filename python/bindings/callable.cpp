#include "callable.h"

#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "errors.h"
#include "fuselab/core/error.h"
#include "fuselab/runtime/layout.h"
#include "watcher.h"

namespace fuselab::python {
namespace {

using runtime::Call;
using runtime::Home;

// A plain CPython type with vectorcall: a call enters here directly, without argument tuples or a dispatcher.
struct PyGraph {
  PyObject_HEAD vectorcallfunc vectorcall;
  CallableParts parts;
  bool boxed;  // takes one list and empties it
  PyObject* weakrefs;
  PyObject* dict;
};
PyTypeObject* graph_type;
PyGraph* self_of(PyObject* o) { return reinterpret_cast<PyGraph*>(o); }

class PythonHost final : public runtime::Host {
 public:
  PythonHost(const CallableParts& parts, const DLPackExchangeAPI* api, PyObject* const* inputs)
      : parts_(parts), api_(api), inputs_(inputs) {}

  void call_extern(Call& call, int step) override;
  void drop_object(void* object) noexcept override { Py_DECREF(static_cast<PyObject*>(object)); }
  void* suspend() noexcept override { return PyEval_SaveThread(); }
  void resume(void* state) noexcept override { PyEval_RestoreThread(static_cast<PyThreadState*>(state)); }

  /// The slot's tensor, borrowed: the caller's own object for an input, else made once and kept in the slot.
  PyObject* object_of(Call& call, int slot);

 private:
  void take_result(Call& call, int step, int slot, PyObject* object);
  const CallableParts& parts_;
  const DLPackExchangeAPI* api_;
  PyObject* const* inputs_;  // per tensor input, borrowed
};

PyObject* PythonHost::object_of(Call& call, int slot) {
  runtime::Live& l = call.live[slot];
  const auto& slots = call.graph.program().slots;
  if (l.object) return static_cast<PyObject*>(l.object);
  if (slots[slot].home == Home::input) return inputs_[slot];
  const runtime::Slot& s = slots[slot];
  const runtime::SlotNumbers& n = call.binding->slots[slot];
  runtime::Storage* storage = call.storage_of(slot);
  if (storage) {
    runtime::retain(storage);
  } else {
    // A view of memory that only a Python object holds: the view keeps that object.
    runtime::Live& root = call.live[s.root];
    storage = storage_of_object(root.object ? static_cast<PyObject*>(root.object) : inputs_[s.root]);
  }
  l.object = wrap(api_, storage, l.data, s.type.dtype, n.rank, n.sizes, n.strides);
  return static_cast<PyObject*>(l.object);
}

PyObject* number_object(const Scalar& s) {
  if (const auto* b = std::get_if<bool>(&s)) return PyBool_FromLong(*b);
  if (const auto* i = std::get_if<std::int64_t>(&s)) return PyLong_FromLongLong(*i);
  return PyFloat_FromDouble(std::get<double>(s));
}

void PythonHost::call_extern(Call& call, int step) {
  const runtime::Program& p = call.graph.program();
  const runtime::ProgramStep& s = p.steps[step];
  const auto& sizes = call.binding->call_sizes[step];
  if (s.callee < 0 || s.callee >= static_cast<int>(parts_.externs.size()))
    fail("call.extern", "graph {}: extern '{}' has call={}, {} callables are given", p.name, s.label, s.callee,
         parts_.externs.size());

  constexpr std::size_t kFew = 24;
  PyObject* few[kFew];
  std::unique_ptr<PyObject*[]> many;
  const std::size_t n = s.args.size() + sizes.size();
  PyObject** args = few;
  if (n + 1 > kFew) args = (many = std::make_unique<PyObject*[]>(n + 1)).get();
  struct Release {
    PyObject** items;
    std::size_t count = 0;
    ~Release() {
      for (std::size_t i = 0; i < count; ++i) Py_XDECREF(items[i]);
    }
  } made{args + 1};
  for (const runtime::ExternArg& a : s.args) {
    PyObject* o = a.slot >= 0 ? object_of(call, a.slot) : nullptr;
    if (o)
      Py_INCREF(o);
    else if (a.number)
      o = number_object(*a.number);
    else
      Py_INCREF(o = Py_None);
    if (!o) throw PythonError{};
    args[1 + made.count++] = o;
  }
  for (const std::int64_t size : sizes) {
    args[1 + made.count++] = PyLong_FromLongLong(size);
    if (!args[made.count]) throw PythonError{};
  }
  PyObject* result = PyObject_Vectorcall(parts_.externs[s.callee], args + 1, n | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  if (!result) throw PythonError{};

  if (s.slots.size() == 1 && !PyTuple_Check(result) && !PyList_Check(result)) {
    take_result(call, step, s.slots[0], result);
    return;
  }
  PyObject* sequence = PySequence_Fast(result, "an extern call with several results gives a tuple");
  Py_DECREF(result);
  if (!sequence) throw PythonError{};
  struct Hold {
    PyObject* o;
    ~Hold() { Py_DECREF(o); }
  } hold{sequence};
  if (PySequence_Fast_GET_SIZE(sequence) < static_cast<Py_ssize_t>(s.slots.size()))
    fail("call.extern_result", "graph {}: extern '{}' gave {} results, the graph expects {}", p.name, s.label,
         PySequence_Fast_GET_SIZE(sequence), s.slots.size());
  for (std::size_t i = 0; i < s.slots.size(); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(sequence, static_cast<Py_ssize_t>(i));
    Py_INCREF(item);
    take_result(call, step, s.slots[i], item);
  }
}

/// Takes over the reference to `object`.
void PythonHost::take_result(Call& call, int step, int slot, PyObject* object) {
  const runtime::Program& p = call.graph.program();
  const runtime::Slot& s = p.slots[slot];
  runtime::Live& l = call.live[slot];
  l.object = object;
  if (s.last == s.first && !s.output) return;  // nobody reads it: it may be anything
  const runtime::SlotNumbers& n = call.binding->slots[slot];
  const std::string& name = call.graph.graph().values[s.value].name;
  Borrowed view;
  view.view(object, "the result '" + name + "' of extern '" + p.steps[step].label + "'");
  if (view.resolved) {
    Py_INCREF(view.resolved);
    Py_DECREF(object);
    l.object = view.resolved;
  }
  const runtime::InputView& in = view.input;
  if (in.dtype != s.type.dtype || in.rank != n.rank || !std::equal(in.sizes, in.sizes + in.rank, n.sizes))
    fail("call.extern_result", "the result '{}' of extern '{}' is {}{}, the graph expects {}", name, p.steps[step].label,
         fuselab::name(in.dtype), runtime::list_text({in.sizes, static_cast<std::size_t>(in.rank)}), s.type.str());
  l.data = static_cast<char*>(in.data);
  if (!in.strides || n.elements == 0 || runtime::same_strides(n.shape(), in.strides, n.strides)) return;
  call.relayout(slot, in.strides);  // `view` keeps the old memory until here
  Py_DECREF(static_cast<PyObject*>(l.object));
  l.object = nullptr;
}

struct Arguments {
  static constexpr std::size_t kFew = 12;
  Borrowed few[kFew];
  runtime::InputView few_views[kFew];
  PyObject* few_objects[kFew];
  std::unique_ptr<Borrowed[]> many;
  std::vector<runtime::InputView> many_views;
  std::vector<PyObject*> many_objects;
};

/// Runs the graph. `owned`, when given, holds the references to `args`; those of tensors pass to the call, which drops each
/// after its last use.
PyObject* call_graph(PyGraph* self, PyObject* const* args, std::size_t nargs, PyObject** owned = nullptr) {
  const CallableParts& parts = self->parts;
  const runtime::CompiledGraph& graph = *parts.graph;
  const runtime::Program& p = graph.program();
  if (nargs != parts.is_size.size())
    fail("call.count", "graph {} takes {} arguments, {} are given", p.name, parts.is_size.size(), nargs);

  Arguments a;
  Borrowed* tensors = a.few;
  runtime::InputView* views = a.few_views;
  PyObject** objects = a.few_objects;
  const auto inputs = static_cast<std::size_t>(p.inputs);
  if (inputs > Arguments::kFew) {
    tensors = (a.many = std::make_unique<Borrowed[]>(inputs)).get();
    a.many_views.resize(inputs);
    a.many_objects.resize(inputs);
    views = a.many_views.data();
    objects = a.many_objects.data();
  }
  std::int64_t few_sizes[16];
  std::vector<std::int64_t> many_sizes(p.size_params.size() > 16 ? p.size_params.size() : 0);
  std::int64_t* sizes = many_sizes.empty() ? few_sizes : many_sizes.data();

  const DLPackExchangeAPI* api = parts.api;
  std::size_t t = 0, z = 0;
  for (std::size_t i = 0; i < nargs; ++i) {
    if (parts.is_size[i]) {
      const long long v = PyLong_AsLongLong(args[i]);
      if (v == -1 && PyErr_Occurred()) throw PythonError{};
      sizes[z++] = v;
      continue;
    }
    objects[t] = args[i];
    try {
      tensors[t].view(args[i], std::string());
    } catch (const Error& e) {  // the argument's name is only put together when it is needed
      const std::string what = "input '" + graph.graph().values[p.slots[t].value].name + "' of graph " + p.name;
      throw Error(e.code(), what + e.what());
    }
    views[t] = tensors[t].input;
    if (!api) api = tensors[t].api;
    ++t;
  }

  PythonHost host(parts, api, objects);
  std::optional<Watcher> watcher;
  if (parts.seen) host.watcher = &watcher.emplace(parts.wants, parts.seen, api);
  Call call(graph, host);
  if (owned) {
    call.owns_inputs = true;
    for (std::size_t i = 0, next = 0; i < nargs; ++i)
      if (!parts.is_size[i]) call.live[next++].object = std::exchange(owned[i], nullptr);
  }
  call.bind({sizes, z}, {views, inputs});
  call.run();

  PyObject* result = PyTuple_New(static_cast<Py_ssize_t>(p.outputs.size()));
  if (!result) throw PythonError{};
  try {
    for (std::size_t i = 0; i < p.outputs.size(); ++i) {
      PyObject* o = host.object_of(call, p.outputs[i]);
      Py_INCREF(o);
      PyTuple_SET_ITEM(result, static_cast<Py_ssize_t>(i), o);
    }
  } catch (...) {
    Py_DECREF(result);
    throw;
  }
  return result;
}

PyObject* call_boxed(PyGraph* self, PyObject* list) {
  if (!PyList_Check(list))
    fail("call.type", "graph {} takes one list of its arguments, a {} is given", self->parts.graph->program().name,
         Py_TYPE(list)->tp_name);
  const Py_ssize_t n = PyList_GET_SIZE(list);
  struct Owned {
    std::vector<PyObject*> items;
    ~Owned() {
      for (PyObject* o : items) Py_XDECREF(o);
    }
  } owned;
  owned.items.assign(reinterpret_cast<PyListObject*>(list)->ob_item, reinterpret_cast<PyListObject*>(list)->ob_item + n);
  for (PyObject* o : owned.items) Py_INCREF(o);
  if (PyList_SetSlice(list, 0, n, nullptr) != 0) throw PythonError{};
  const std::vector<PyObject*> args = owned.items;
  return call_graph(self, args.data(), args.size(), owned.items.data());
}

PyObject* vectorcall(PyObject* o, PyObject* const* args, size_t nargsf, PyObject* names) {
  PyGraph* self = self_of(o);
  const auto n = static_cast<std::size_t>(PyVectorcall_NARGS(nargsf));
  try {
    if (names && PyTuple_GET_SIZE(names) > 0) fail("call.type", "a compiled graph takes its arguments by position only");
    if (self->boxed) {
      if (n != 1)
        fail("call.count", "graph {} takes one list of its arguments, {} arguments are given", self->parts.graph->program().name,
             n);
      return call_boxed(self, args[0]);
    }
    return call_graph(self, args, n);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* method_call_boxed(PyObject* o, PyObject* list) {
  try {
    return call_boxed(self_of(o), list);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* get_boxed(PyObject* o, void*) {
  CallableParts parts = self_of(o)->parts;
  for (PyObject* f : parts.externs) Py_INCREF(f);
  Py_XINCREF(parts.wants);
  Py_XINCREF(parts.seen);
  PyObject* made = make_callable(std::move(parts));
  if (made) self_of(made)->boxed = true;
  return made;
}
PyObject* get_is_boxed(PyObject* o, void*) { return PyBool_FromLong(self_of(o)->boxed); }
PyObject* get_name(PyObject* o, void*) { return PyUnicode_FromString(self_of(o)->parts.graph->program().name.c_str()); }

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  for (PyObject* f : self_of(o)->parts.externs) Py_VISIT(f);
  Py_VISIT(self_of(o)->parts.wants);
  Py_VISIT(self_of(o)->parts.seen);
  Py_VISIT(self_of(o)->dict);
  return 0;
}
int clear(PyObject* o) {
  std::vector<PyObject*> externs = std::move(self_of(o)->parts.externs);
  self_of(o)->parts.externs.clear();
  for (PyObject* f : externs) Py_DECREF(f);
  Py_CLEAR(self_of(o)->parts.wants);
  Py_CLEAR(self_of(o)->parts.seen);
  Py_CLEAR(self_of(o)->dict);
  return 0;
}
void dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  if (self_of(o)->weakrefs) PyObject_ClearWeakRefs(o);
  clear(o);
  self_of(o)->parts.~CallableParts();
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* via_module(PyObject* o, const char* function) {
  PyObject* module = PyImport_ImportModule("fuselab._core");
  if (!module) return nullptr;
  PyObject* out = PyObject_CallMethod(module, function, "O", o);
  Py_DECREF(module);
  return out;
}
PyObject* method_explain(PyObject* o, PyObject*) { return via_module(o, "explain"); }
PyObject* get_kernels(PyObject* o, void*) { return via_module(o, "kernels"); }
PyObject* get_text(PyObject* o, void*) { return via_module(o, "graph_text"); }
PyObject* get_kernel_count(PyObject* o, void*) { return PyLong_FromLong(self_of(o)->parts.graph->kernel_steps()); }

PyObject* method_watch(PyObject* o, PyObject* args) {
  PyObject *wants = nullptr, *seen = nullptr;
  if (!PyArg_ParseTuple(args, "OO:watch", &wants, &seen)) return nullptr;
  const bool none = seen == Py_None;
  if (!none && (!PyCallable_Check(wants) || !PyCallable_Check(seen))) {
    PyErr_SetString(PyExc_TypeError, "watch(wants, seen): two callables, or None and None");
    return nullptr;
  }
  CallableParts& parts = self_of(o)->parts;
  Py_XSETREF(parts.wants, none ? nullptr : Py_NewRef(wants));
  Py_XSETREF(parts.seen, none ? nullptr : Py_NewRef(seen));
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"explain", method_explain, METH_NOARGS, "Steps, reasons, counts and the time of each phase, as a dictionary."},
    {"call_boxed", method_call_boxed, METH_O,
     "call_boxed(list): takes the arguments out of the list, so that each can be freed after its last use."},
    {"watch", method_watch, METH_VARARGS,
     "watch(wants, seen): from now on each call asks wants(step) before a kernel, and after it gives seen(step, inputs, outputs, "
     "sizes) copies of what the kernel read and wrote; watch(None, None) ends it."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef getset[] = {
    {"boxed", get_boxed, nullptr, "the same graph as a callable that takes one list and empties it", nullptr},
    {"_boxed_call", get_is_boxed, nullptr, "what AOTAutograd asks to know how to call", nullptr},
    {"kernels", get_kernels, nullptr, "the distinct kernels: name, graph, ir, cpp, hash, ... of each", nullptr},
    {"kernel_count", get_kernel_count, nullptr, "kernel launches of one call", nullptr},
    {"text", get_text, nullptr, "the graph in text form", nullptr},
    {"name", get_name, nullptr, "the graph's name", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(PyGraph, vectorcall), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(PyGraph, weakrefs), READONLY, nullptr},
                         {"__dictoffset__", T_PYSSIZET, offsetof(PyGraph, dict), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {Py_tp_doc,
     const_cast<char*>("A compiled graph: call it with tensors (and sizes) in the order of its parameters; gives a tuple.")},
    {0, nullptr}};
PyType_Spec spec = {"fuselab._core.CompiledGraph", sizeof(PyGraph), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

}  // namespace

PyObject* make_callable(CallableParts parts) {
  PyObject* made = graph_type->tp_alloc(graph_type, 0);
  if (!made) throw PythonError{};
  PyGraph* g = self_of(made);
  new (&g->parts) CallableParts(std::move(parts));
  g->vectorcall = vectorcall;
  return made;
}

runtime::CompiledGraph& graph_of(PyObject* callable) {
  if (Py_TYPE(callable) != graph_type) fail("call.type", "a compiled graph is needed, a {} is given", Py_TYPE(callable)->tp_name);
  return *self_of(callable)->parts.graph;
}

void add_callable_type(PyObject* module) {
  graph_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!graph_type) throw PythonError{};
  Py_INCREF(graph_type);
  PyModule_AddObject(module, "CompiledGraph", reinterpret_cast<PyObject*>(graph_type));
}

}  // namespace fuselab::python
