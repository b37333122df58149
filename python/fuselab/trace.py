"""Functions into graphs: stand-ins for arrays that write down what is done to them, in the graph text form.

Nothing here knows an operator: functions, their arguments and attributes come from the op table.
"""

import functools
import json

from . import _core

_RESERVED = ("none", "true", "false", "inf", "nan", "return", "extern")  # words of the text form
_NUMPY_DTYPES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "int8": "i8",
    "uint8": "u8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "bool": "bool",
}
# What NumPy calls an attribute, and what the table may call it.
_SPELLINGS = {"axis": ("dims", "dim"), "dim": ("dims",), "dims": ("dim",), "keepdims": ("keepdim",), "ddof": ("correction",)}
# NumPy's universal functions that the table names differently.
_UFUNCS = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "floor_divide": "div_floor",
    "negative": "neg",
    "absolute": "abs",
    "power": "pow",
    "rint": "round",
    "invert": "bitwise_not",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "arctan2": "atan2",
}


def error(code, message):
    return _core.Error(code, message)


@functools.cache
def rows():
    """The op table: name -> row."""
    return {row["name"]: row for row in json.loads(_core.op_table())}


def dtype_name(dtype):
    """ "f32" for "f32", numpy.float32, numpy.dtype("float32"), torch.float32."""
    if isinstance(dtype, str) and dtype in _NUMPY_DTYPES.values():
        return dtype
    if dtype is bool:
        return "bool"
    text = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    text = text.rsplit(".", 1)[-1].rstrip("_")
    if text not in _NUMPY_DTYPES:
        raise error("trace.dtype", f"no element type {dtype!r}; there are {', '.join(_NUMPY_DTYPES.values())}")
    return _NUMPY_DTYPES[text]


class Size:
    """A size that is not known while tracing; arithmetic gives sizes."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text

    def _with(self, form, other):
        if not isinstance(other, (int, Size)) or isinstance(other, bool):
            return NotImplemented
        return Size(form.format(self.text, other if isinstance(other, int) else f"({other.text})"))

    def __add__(self, other):
        return self._with("{} + {}", other)

    def __sub__(self, other):
        return self._with("{} - {}", other)

    def __mul__(self, other):
        return self._with("({}) * {}", other)

    def __floordiv__(self, other):
        return self._with("floordiv({}, {})", other)

    def __mod__(self, other):
        return self._with("mod({}, {})", other)

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other):
        return isinstance(other, Size) and other.text == self.text

    def __hash__(self):
        return hash(self.text)

    def __index__(self):
        raise error(
            "trace.size", f"the size {self.text} is symbolic here and has no number: use dynamic=False, or keep it in sizes"
        )

    __int__ = __bool__ = __index__


def _size(text):
    return int(text) if text.lstrip("-").isdigit() else Size(text)


def size_text(value):
    if isinstance(value, Size):
        return value.text
    return str(value.__index__())


def number_text(value):
    if hasattr(value, "item") and not isinstance(value, (bool, int, float)):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if value != value:
            return "nan"
        return ("inf" if value > 0 else "-inf") if value in (float("inf"), float("-inf")) else repr(value)
    raise error("trace.number", f"{value!r} is no number, and no value of the function being traced")


class Trace:
    """The graph being written."""

    def __init__(self, name):
        self.name, self.parameters, self.lines, self.externs = name, [], [], []
        self.used, self.constants, self.types = set(_RESERVED), [], {}

    def fresh(self, base):
        base = "".join(c if c.isalnum() or c == "_" else "_" for c in base)
        base = base if base[:1].isalpha() or base[:1] == "_" else "v" + base
        name, n = base, 0
        while name in self.used:
            n += 1
            name = f"{base}_{n}"
        self.used.add(name)
        return name

    def input(self, name, type_text):
        name = self.fresh(name)
        self.parameters.append(f"{name}: {type_text}")
        return Value(self, name)

    def constant(self, array):
        """An array from outside the function: an input that the caller of the graph adds."""
        for name, held in self.constants:
            if held is array:
                return Value(self, name)
        name = self.fresh("constant")
        self.constants.append((name, array))
        dtype, sizes, _ = _core.describe(array)
        self.parameters.append(f"{name}: {dtype}[{', '.join(map(str, sizes))}]")
        return Value(self, name)

    def text(self, results):
        body = "".join(f"  {line}\n" for line in self.lines)
        return f"graph {self.name}({', '.join(self.parameters)}) {{\n{body}  return {', '.join(results)}\n}}\n"

    def type_of(self, name):
        if name not in self.types:
            self.types = _core.value_types(self.text([name]))
        return self.types[name]

    def operand(self, value, what):
        if isinstance(value, Value):
            if value._trace is not self:
                raise error("trace.escaped", f"{what}: a value of another traced function")
            return value._name
        if value is None:
            return "none"
        if getattr(value, "ndim", 0) > 0:
            return self.constant(value)._name
        return number_text(value)

    def apply(self, name, *args, **attrs):
        """Appends one node of the table; gives its value, or a tuple of them."""
        row = rows()[name]
        names = [a["name"] for a in row["args"]]
        attr_rows = {a["name"]: a for a in row["attrs"]}
        given = dict(zip(names, args, strict=False))  # the rest are attributes
        rest = args[len(names) :]
        for key in list(attrs):
            if key in names and key not in given:
                given[key] = attrs.pop(key)
        if len(rest) > len(attr_rows):
            raise error(
                "trace.arguments", f"{name} takes {len(names)} operands and {len(attr_rows)} attributes, {len(args)} are given"
            )
        for key, value in zip(attr_rows, rest, strict=False):
            attrs.setdefault(key, value)
        operands = []
        for arg in row["args"]:
            if arg["name"] not in given and not arg.get("optional"):
                raise error("trace.arguments", f"{name} needs the operand '{arg['name']}'")
            operands.append(self.operand(given.get(arg["name"]), f"{name}: {arg['name']}"))
        for key, value in attrs.items():
            if key not in attr_rows:
                key = next((k for k in _SPELLINGS.get(key, ()) if k in attr_rows), key)
            if key not in attr_rows:
                raise error("trace.arguments", f"{name} has no attribute '{key}'; it has {', '.join(attr_rows) or 'none'}")
            if value is not None:
                operands.append(f"{key}={_attr_text(attr_rows[key]['type'], value, f'{name}: {key}')}")
        results = [self.fresh(name) for _ in range(row.get("results", 1))]
        self.lines.append(f"{', '.join(results)} = {name}({', '.join(operands)})")
        values = tuple(Value(self, r) for r in results)
        return values[0] if len(values) == 1 else values

    def extern(self, target, function, args, type_text):
        result = self.fresh(target.rsplit(".", 1)[-1])
        operands = ", ".join(self.operand(a, target) for a in args)
        self.lines.append(f'{result}: {type_text} = extern({operands}, target="{target}", call={len(self.externs)})')
        self.externs.append(function)
        return Value(self, result)


def _attr_text(kind, value, what):
    if kind == "dtype":
        return dtype_name(value)
    if kind == "ints":
        return "[" + ", ".join(size_text(v) for v in (value if isinstance(value, (tuple, list)) else (value,))) + "]"
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "string":
        return json.dumps(value)
    if kind == "expr":
        return size_text(value)
    if kind == "integer":
        if isinstance(value, (tuple, list)) and len(value) == 1:
            value = value[0]
        return str(value.__index__())
    if kind == "real":
        return number_text(float(value))
    return number_text(value)


class Value:
    """A stand-in for an array during tracing: operators, the table's functions as methods, indexing, NumPy's ufuncs."""

    def __init__(self, trace, name):
        self._trace, self._name = trace, name

    def __repr__(self):
        return f"<traced {self._name}: {self.dtype}{list(self.shape)}>"

    @property
    def shape(self):
        return tuple(_size(s) for s in self._trace.type_of(self._name)[1])

    @property
    def dtype(self):
        return self._trace.type_of(self._name)[0]

    @property
    def ndim(self):
        return len(self._trace.type_of(self._name)[1])

    @property
    def T(self):
        return self._trace.apply("permute", self, dims=list(range(self.ndim))[::-1])

    def astype(self, dtype):
        return self._trace.apply("cast", self, dtype=dtype)

    def reshape(self, *shape):
        return self._trace.apply(
            "reshape", self, shape=shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        )

    def __getattr__(self, name):
        if name.startswith("_") or name not in rows():
            raise AttributeError(f"a traced array has no '{name}'; the functions of the op table are its methods")
        return functools.partial(self._trace.apply, name, self)

    def __len__(self):
        return self.shape[0].__index__()

    def __bool__(self):
        raise error(
            "trace.branch", f"the value of '{self._name}' is not known while tracing: use fuselab.ops.where instead of if"
        )

    __int__ = __float__ = __index__ = __bool__

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index):
        items = list(index) if isinstance(index, tuple) else [index]
        taken = sum(1 for i in items if i is not None and i is not Ellipsis)
        if Ellipsis in [i for i in items if not isinstance(i, Value)]:
            at = next(k for k, i in enumerate(items) if i is Ellipsis)
            items[at : at + 1] = [slice(None)] * (self.ndim - taken)
        value, dim = self, 0
        for item in items:
            if item is None:
                value, dim = self._trace.apply("unsqueeze", value, dim=dim), dim + 1
            elif isinstance(item, slice):
                if item != slice(None):
                    bounds = {k: v for k, v in (("start", item.start), ("end", item.stop), ("step", item.step)) if v is not None}
                    value = self._trace.apply("slice", value, dim=dim, **bounds)
                dim += 1
            elif isinstance(item, Size) or hasattr(item, "__index__") and not isinstance(item, (bool, Value)):
                value = self._trace.apply("select", value, dim=dim, index=item)
            else:
                raise error("trace.index", f"an index of {item!r} is not supported: use whole numbers, slices, None and ...")
        return value

    def __pos__(self):
        return self

    def __matmul__(self, other):
        return _matmul(self._trace, self, other)

    def __rmatmul__(self, other):
        return _matmul(self._trace, other, self)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if method != "__call__" or kwargs:
            return NotImplemented
        if ufunc.__name__ == "matmul":
            return _matmul(self._trace, *inputs)
        name = _UFUNCS.get(ufunc.__name__, ufunc.__name__)
        return self._trace.apply(name, *inputs) if name in rows() else NotImplemented

    def __array__(self, *_, **__):
        raise error(
            "trace.value", f"'{self._name}' is traced and has no elements yet: use operators and fuselab.ops functions on it"
        )


def _binary(name, swapped=False):
    def method(self, other):
        if not isinstance(other, Value) and not hasattr(other, "__array__") and not isinstance(other, (bool, int, float)):
            return NotImplemented
        return self._trace.apply(name, other, self) if swapped else self._trace.apply(name, self, other)

    return method


for _method, _name in {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "div_floor",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}.items():
    setattr(Value, f"__{_method}__", _binary(_name))
    setattr(Value, f"__r{_method}__", _binary(_name, swapped=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Value, f"__{_name}__", _binary(_name))
for _method, _name in {"neg": "neg", "abs": "abs", "invert": "bitwise_not"}.items():
    setattr(Value, f"__{_method}__", lambda self, _name=_name: self._trace.apply(_name, self))


def _matmul(trace, a, b):
    """NumPy's matmul as an extern call: products of matrices run in the host's library."""
    import numpy

    a, b = (v if isinstance(v, Value) else trace.constant(v) for v in (a, b))
    if a.ndim < 2 or b.ndim < 2:
        raise error("trace.matmul", f"matmul of {a.ndim}-d and {b.ndim}-d arrays is not supported: reshape them to matrices")
    if a.dtype != b.dtype or a.dtype == "bf16":
        raise error("trace.matmul", f"matmul of {a.dtype} and {b.dtype}: cast both to one element type that NumPy has")
    if a.shape[-1] != b.shape[-2]:
        raise error("trace.matmul", f"matmul of {list(a.shape)} and {list(b.shape)}: the inner sizes differ")
    left, right = list(a.shape[:-2]), list(b.shape[:-2])
    left, right = [1] * (len(right) - len(left)) + left, [1] * (len(left) - len(right)) + right
    batch = []
    for p, q in zip(left, right, strict=True):
        if p != q and p != 1 and q != 1:
            raise error("trace.matmul", f"matmul of {list(a.shape)} and {list(b.shape)}: the leading sizes differ")
        batch.append(q if p == 1 else p)
    sizes = ", ".join(size_text(s) for s in [*batch, a.shape[-2], b.shape[-1]])

    def matmul(x, y):
        return numpy.ascontiguousarray(numpy.matmul(numpy.asarray(x), numpy.asarray(y)))

    return trace.extern("numpy.matmul", matmul, (a, b), f"{a.dtype}[{sizes}]")
