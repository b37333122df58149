"""The op table as the torch front end sees it: which ATen overload is which row, and how its arguments map.

Nothing here knows an operator. A row says what its operands and attributes are called and which name ATen's schema has for
them; what does not fit is left to the host framework, with the reason.
"""
import functools
import json

import torch

from .exprs import Unsupported, size_text

DTYPES = {
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64", torch.int8: "i8",
    torch.uint8: "u8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.bool: "bool"}

# Where a result is placed: the type annotation of the result says it already.
PLACEMENT = {"layout", "device", "pin_memory", "memory_format", "non_blocking"}


class Row:
    """One row: name, kind, operands and attributes, and their names in ATen's schema."""

    def __init__(self, data):
        self.name, self.kind, self.results = data["name"], data["kind"], data.get("results", 1)
        self.args, self.attrs = data.get("args", []), data.get("attrs", [])
        self.reduce = data.get("reduce", "none")
        self.type_rules = [data.get("type"), *(r["type"] for r in data.get("more", []))]
        self.aten, self.aten_result = data.get("aten", []), data.get("aten_result", -1)
        names = data.get("aten_names", {})
        self.schema_names = {x["name"]: names.get(x["name"], x["name"]).split("|") for x in self.args + self.attrs}
        self.ignored = set(data.get("aten_ignored", []))
        # "div.Tensor_mode[rounding_mode=floor]": the row holds only for that value of the argument.
        self.conditions = {}
        for form in self.aten:
            name, bracket, condition = form.partition("[")
            if bracket:
                self.conditions[name] = condition.rstrip("]").split("=")

    def computed_type(self, k, operands):
        """The dtype of result `k` where the table says that it is the one computed in; None where PyTorch's word holds."""
        if self.type_rules[k] != "compute":
            return None
        dtype = next(v.meta["val"].dtype for v in operands if is_tensor(v))
        return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype

    def find(self, item, values):
        """The name the schema at hand has for an operand or attribute of the row."""
        names = self.schema_names[item["name"]]
        return next((n for n in names if n in values), names[0])

    def holds_for(self, overload, values):
        """Is the row's condition for that overload met?"""
        name, wanted = self.conditions.get(overload, (None, None))
        return name is None or str(values[name][1]).lower() == wanted

    def match(self, values, result_type, overload=None):
        """(operands, attributes, dtype to convert the first operand to) for schema values; Unsupported says why not.

        `result_type(what)` gives dtype, sizes or the first size of the result, for attributes ATen derives them from.
        """
        if not self.holds_for(overload, values):
            raise Unsupported(f"{self.name} needs {'='.join(self.conditions[overload])}")
        taken = set(self.ignored)
        if overload in self.conditions:
            taken.add(self.conditions[overload][0])
        operands, attrs = [], {}
        for arg in self.args:
            name = self.find(arg, values)
            taken.add(name)
            value = values[name][1] if name in values else None
            if value is None and not arg.get("optional"):
                raise Unsupported(f"{self.name} needs {arg['name']}")
            if isinstance(value, (list, tuple)):
                raise Unsupported(f"{self.name}: a list as {arg['name']}")
            operands.append(value)
        for attr in self.attrs:
            name, kind = self.find(attr, values), attr["type"]
            taken.add(name)
            if name in values:
                value = values[name][1]
                if value is None and kind in ("ints", "list"):
                    value = []
                if kind == "dtype" and value is None or self.kind in ("create", "view") and attr["name"] == "shape":
                    value = result_type(attr["name"])
            elif "fallback" in attr:
                continue
            else:
                value = result_type(attr["name"])
            if value is not None:
                attrs[attr["name"]] = (kind, value)
        convert = None
        for name, (arg, value) in values.items():
            if name in taken or name in PLACEMENT or value is None:
                continue
            if name == "dtype":
                convert = value
            elif self.kind == "create" and is_tensor(value):
                continue  # full_like: only its type counts
            elif not (arg.has_default_value() and value == arg.default_value) and value is not False:
                raise Unsupported(f"argument {name}={value}")
        return operands, attrs, convert


@functools.cache
def table():
    """ATen overload ("add.Tensor", "prims::iota.default") -> its rows, in table order."""
    from .. import _core

    return index(json.loads(_core.op_table()))


def index(data):
    rows = {}
    for item in data:
        row = Row(item)
        for name in row.aten:
            name = name.partition("[")[0]
            rows.setdefault(name if "." in name else name + ".default", []).append(row)
    return rows


def spelling(target):
    """"add.Tensor" for aten, "prims::iota.default" for any other namespace; None for what is no ATen operator."""
    if not isinstance(target, torch._ops.OpOverload):
        return None
    space, _, base = target._schema.name.partition("::")
    full = f"{base}.{target._overloadname}"
    return full if space == "aten" else f"{space}::{full}"


def schema_values(target, args, kwargs):
    """Schema name -> (schema argument, value), in schema order, defaults filled in."""
    values = {}
    for i, arg in enumerate(target._schema.arguments):
        if not arg.kwarg_only and i < len(args):
            value = args[i]
        elif arg.name in kwargs:
            value = kwargs[arg.name]
        else:
            value = arg.default_value if arg.has_default_value() else None
        values[arg.name] = (arg, value)
    return values


def is_tensor(value):
    return isinstance(value, torch.fx.Node) and isinstance(value.meta.get("val"), torch.Tensor)


def literal(value):
    """A number in the text form: ints, floats and bools keep their kind (R8)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if value != value:
            return "nan"
        if value in (float("inf"), float("-inf")):
            return "inf" if value > 0 else "-inf"
        return repr(value)
    raise Unsupported(f"number {value!r}")


def attr_text(kind, value):
    """An attribute's value in the text form; `kind` is the table's attribute type."""
    value = value.meta["val"] if isinstance(value, torch.fx.Node) else value
    if isinstance(value, torch.dtype):
        if value not in DTYPES:
            raise Unsupported(f"dtype {value}")
        return DTYPES[value]
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(attr_text("expr", v) for v in value) + "]"
    if kind == "ints":
        return f"[{attr_text('expr', value)}]"
    if kind == "real" and isinstance(value, int):
        return literal(float(value))
    if isinstance(value, (bool, float)):
        return literal(value)
    if isinstance(value, (int, torch.SymInt)):
        return size_text(value)
    raise Unsupported(f"attribute value {value!r}")
