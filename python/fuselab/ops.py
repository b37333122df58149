"""The op table as functions, for functions that fuselab.compile traces: `ops.exp(x)`, `ops.softmax(x, dim=-1)`.

At least one argument is a traced array. Operands come first, attributes after them or by keyword, with the table's names
(`axis` and `keepdims` are understood too). `fuselab.ops.__all__` lists what exists; docs/operators.md describes it.
"""

from .trace import Value, error, rows


def _function(name):
    row = rows()[name]

    def function(*args, **attrs):
        for value in (*args, *attrs.values()):
            if isinstance(value, Value):
                return value._trace.apply(name, *args, **attrs)
        raise error(
            "trace.no_value",
            f"fuselab.ops.{name} was called without a traced array: call it inside a function given to fuselab.compile",
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = row.get("doc")
    return function


def matmul(a, b):
    """NumPy's matmul, run by NumPy between fused kernels."""
    return a @ b


def __getattr__(name):
    if name == "__all__":
        return sorted(rows()) + ["matmul"]
    if name.startswith("_") or name not in rows():
        raise AttributeError(f"the op table has no '{name}'")
    globals()[name] = _function(name)
    return globals()[name]


def __dir__():
    return sorted(rows()) + ["matmul"]
