"""`fuselab.compile`: graph texts and Python functions as fused kernels on NumPy arrays or anything with DLPack, without torch."""

import functools
import inspect
import sys

from . import _core
from .trace import Trace, Value, error


def compile(target=None, *, dynamic=False, externs=(), **options):
    """A callable from a graph in text form, or from a Python function on arrays.

    A function is traced once per element types and sizes of its arguments (with `dynamic=True`: once per element types, sizes
    above 1 stay symbolic). It may use operators, the functions of `fuselab.ops`, NumPy's ufuncs, indexing with numbers and
    slices. Arguments that are no arrays are passed through and part of the key. Results come as the kind of array that went in.
    Options: `precision`, `fuse`, `no_fuse`, `max_fusion_size`, `keep_dtype`, `opt_level`, `skip_passes`, `threads`, ... Also a
    decorator.

    >>> f = fuselab.compile(lambda x, y: fuselab.ops.exp(x) + y)
    >>> g = fuselab.compile("graph g(x: f32[B]) { y = exp(x) return y }")
    """
    if target is None:
        return functools.partial(compile, dynamic=dynamic, externs=externs, **options)
    if isinstance(target, str):
        return CompiledText(target, list(externs), options)
    if not callable(target):
        raise error("compile.target", f"a graph text or a function is needed, a {type(target).__name__} is given")
    return CompiledFunction(target, dynamic, options)


def _converter(sample):
    """What turns a `_core.Tensor` into the kind of array `sample` is."""
    module = sys.modules.get(type(sample).__module__.partition(".")[0])
    name = getattr(module, "__name__", "")
    if name == "numpy" or name == "builtins" or module is None:
        numpy = sys.modules.get("numpy")
        return lambda t: t if t.dtype == "bf16" or numpy is None else numpy.asarray(t)
    convert = getattr(module, "from_dlpack", None)
    return convert or (lambda t: t)


def _convert(results, sample):
    if not any(type(r) is _core.Tensor for r in results):
        return list(results)
    convert = _converter(sample)
    return [convert(r) if type(r) is _core.Tensor else r for r in results]


class CompiledText:
    """A graph text as a callable: arrays (and `B: size` numbers) in the order of its parameters; one result, or a tuple."""

    def __init__(self, text, externs, options):
        self.core = _core.compile_graph(text, options, externs)

    def __call__(self, *args):
        results = self.core(*args)
        sample = next((a for a in args if not isinstance(a, int)), None)
        out = _convert(results, sample)
        return out[0] if len(out) == 1 else tuple(out)

    def explain(self):
        return self.core.explain()

    @property
    def kernels(self):
        return self.core.kernels


class CompiledFunction:
    """A traced Python function. `graphs` holds one compiled graph per signature seen."""

    def __init__(self, function, dynamic, options):
        self.function, self.dynamic, self.options, self.graphs = function, dynamic, options, {}
        self.signature = inspect.signature(function)
        functools.update_wrapper(self, function)

    def __call__(self, *args, **kwargs):
        if kwargs or len(args) != len(self.signature.parameters):
            bound = self.signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        leaves, structure = _flatten((args, kwargs))
        arrays: list = []
        symbols: dict = {}
        parts: list = [structure]
        for leaf in leaves:
            if _is_array(leaf):
                arrays.append(leaf)
                parts.append(_type_text(leaf, symbols) if self.dynamic else _core.describe(leaf))
            else:
                parts.append((type(leaf), repr(leaf) if isinstance(leaf, float) else leaf))  # 0.0 == -0.0, nan != nan
        key = tuple(parts)
        try:
            entry = self.graphs.get(key)
        except TypeError:
            raise error(
                "compile.argument",
                "an argument that is neither an array nor hashable cannot be part of a compiled function's key",
            ) from None
        if entry is None:
            entry = self.graphs[key] = Entry(self, leaves, structure)
        results = _convert(entry.core(*arrays, *entry.constants), arrays[0] if arrays else None)
        return _unflatten(iter(results), entry.structure)

    def explain(self):
        """One dictionary per signature seen."""
        return [entry.core.explain() for entry in self.graphs.values()]

    @property
    def kernels(self):
        return [kernel for entry in self.graphs.values() for kernel in entry.core.kernels]


class Entry:
    """One tracing of a function."""

    def __init__(self, owner, leaves, structure):
        function = owner.function
        name = function.__name__ if function.__name__.isidentifier() else "function"
        trace = Trace(name)
        names = iter(_leaf_names(owner.signature, structure))
        symbols: dict = {}
        stand_ins = []
        for leaf in leaves:
            leaf_name = next(names)
            stand_ins.append(
                trace.input(leaf_name, _type_text(leaf, symbols if owner.dynamic else None)) if _is_array(leaf) else leaf
            )
        args, kwargs = _unflatten(iter(stand_ins), structure)
        values, self.structure = _flatten(function(*args, **kwargs))
        for value in values:
            if not isinstance(value, Value):
                raise error(
                    "compile.result",
                    f"{name} returned {value!r}: results must be arrays made from the arguments, or tuples, lists and "
                    "dictionaries of them",
                )
        self.text = trace.text([v._name for v in values])
        self.constants = [array for _, array in trace.constants]
        self.core = _core.compile_graph(self.text, owner.options, trace.externs)


def _is_array(value):
    return (
        hasattr(value, "__dlpack__")
        or hasattr(value, "__array_interface__")
        and getattr(value, "shape", None) is not None
        and not isinstance(value, (bool, int, float, complex, str, bytes))
    )


def _type_text(array, symbols):
    """The array's type in the graph text form; with `symbols`, sizes above 1 are symbols, equal sizes the same one."""
    dtype, sizes, strides = _core.describe(array)
    if symbols is not None:
        named = [str(s) if s < 2 else symbols.setdefault(s, f"s{len(symbols)}") for s in sizes]
        return f"{dtype}[{', '.join(named)}]"  # arrays that are not row-major are copied by the runtime
    text = f"{dtype}[{', '.join(map(str, sizes))}]"
    row, row_major = 1, True
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        row_major = row_major and (size < 2 or stride == row)
        row *= size
    if row_major or row == 0 or any(s < 0 for s in strides):
        return text
    return text + "{" + ", ".join(map(str, strides)) + "}"


def _flatten(tree):
    """(leaves, structure): tuples, lists and dictionaries taken apart."""
    if isinstance(tree, (tuple, list)):
        parts = [_flatten(t) for t in tree]
        return [leaf for leaves, _ in parts for leaf in leaves], (type(tree).__name__, tuple(s for _, s in parts))
    if isinstance(tree, dict):
        parts = [_flatten(t) for t in tree.values()]
        return [leaf for leaves, _ in parts for leaf in leaves], ("dict", tuple(tree), tuple(s for _, s in parts))
    return [tree], None


def _unflatten(leaves, structure):
    if structure is None:
        return next(leaves)
    parts = [_unflatten(leaves, s) for s in structure[-1]]
    if structure[0] == "dict":
        return dict(zip(structure[1], parts, strict=True))
    return parts if structure[0] == "list" else tuple(parts)


def _leaf_names(signature, structure):
    """A name for each leaf, after the parameter it belongs to."""
    args, kwargs = structure[1]
    parameters = list(signature.parameters.values())
    named = []
    for i, part in enumerate(args[1]):
        parameter = parameters[min(i, len(parameters) - 1)] if parameters else None
        named.append((parameter.name if parameter else f"x{i}", part))
    named.extend(zip(kwargs[1], kwargs[2], strict=True))
    for name, part in named:
        for _ in range(_count(part)):
            yield name


def _count(structure):
    return 1 if structure is None else sum(_count(s) for s in structure[-1])
