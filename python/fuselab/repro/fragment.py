"""An AOT graph as plain data, and from it the part that one kernel computes, as Python text.

`Record` is made while the FX graph is there and can be pickled, so that a result from the AOT cache has its scripts too. Sizes
are read from hints; nothing here adds a guard.
"""
import dataclasses
import operator
import re

import torch

from ..torch.exprs import Unsupported, number_text, size_text, symbol_name, symbols
from ..torch.table import DTYPES

SMALL_TENSOR = 64  # elements of a constant that may stand in a script


class Unwritable(Exception):
    """Why something cannot stand in a script."""


@dataclasses.dataclass
class Entry:
    """One FX node. `parts` is its call: texts, and 1-tuples with the name of another node."""

    name: str
    kind: str             # "input", "size", "constant", "call", "item"
    parts: list = dataclasses.field(default_factory=list)
    symbols: list = dataclasses.field(default_factory=list)
    item: int = 0         # kind "item": which result of parts[0]
    shape: list | None = None  # texts; None: no tensor, or its meta is missing
    layout: tuple | None = None  # (dtype, sizes, strides) as hints
    reason: str = ""      # why the call cannot be written
    modules: tuple = ()   # paths of the modules it was called in, outermost ("") first

    def reads(self):
        return [p[0] for p in self.parts if isinstance(p, tuple)]


@dataclasses.dataclass
class Record:
    kind: str             # "inference", "forward", "backward"
    readable: str         # the FX graph for people
    entries: dict         # name -> Entry, in topological order
    values: dict          # value name of the graph text -> [(node, result index or None)]
    reads: dict           # (node, result index or None) -> the nodes its kernel form reads; absent: all
    numbers: dict         # value name -> Python text of the number it holds
    hints: dict           # symbol -> size


def record(gm, low, kind):
    """`low` is the lowering.Lowered of gm."""
    entries, hints = {}, {}
    for node in gm.graph.nodes:
        if node.op != "output":
            entries[node.name] = _entry(node, hints)
            entries[node.name].modules = _modules(node)
    readable = gm.print_readable(print_output=False, include_stride=True) + "\n# as fuselab reads it\n" + low.text
    return Record(kind, readable, entries, low.values, low.reads, low.numbers, hints)


def _entry(node, hints):
    val = node.meta.get("val")
    for v in val if isinstance(val, (list, tuple)) else [val]:
        _take_hints(v, hints)
    shape = None
    if isinstance(val, torch.Tensor):
        try:
            shape = [size_text(s) for s in val.shape]
        except Unsupported:
            shape = None
    layout = _layout(val)
    if node.op == "placeholder":
        return Entry(node.name, "input" if isinstance(val, torch.Tensor) else "size", shape=shape, layout=layout)
    if node.op == "get_attr":
        return Entry(node.name, "constant", shape=shape, layout=layout)
    if node.op != "call_function":
        return Entry(node.name, "call", reason=f"{node.name} is no call of an operator but {node.op}")
    if node.target is operator.getitem:
        return Entry(node.name, "item", [(node.args[0].name,)], item=node.args[1], shape=shape, layout=layout)
    entry = Entry(node.name, "call", shape=shape, layout=layout)
    try:
        entry.parts = [target_text(node.target) + "("]
        _arguments(node, entry)
        entry.parts.append(")")
        if val is None:
            raise Unwritable(f"{node.name} has no meta['val']")
    except (Unwritable, Unsupported) as e:
        entry.parts = [(n.name,) for n in node.all_input_nodes]
        entry.reason = str(e)
    return entry


def _modules(node):
    """`L['self'].layers.3` -> "layers.3"; the model itself, which Dynamo may leave out, is "" and always there."""
    stack = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
    inside = [re.sub(r"\[['\"]?(\w+)['\"]?\]", r".\1", re.sub(r"^L\['\w+'\]", "", path)).lstrip(".") for path in stack]
    return tuple(dict.fromkeys(["", *inside]))


def _arguments(node, entry):
    first = True
    for key, value in [(None, a) for a in node.args] + list(node.kwargs.items()):
        if not first:
            entry.parts.append(", ")
        first = False
        if key is not None:
            entry.parts.append(f"{key}=")
        _write(value, entry, f"an argument of {node.target}")


def target_text(target):
    """`torch.ops.aten.add.Tensor`; Unwritable for what is no torch.* callable."""
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target}"
    module, name = getattr(target, "__module__", None) or "", getattr(target, "__name__", "")
    if module == "torch" or module.startswith("torch.") and hasattr(torch, name):
        return f"torch.{name}"
    raise Unwritable(f"{target} is no torch.* callable")


def _write(value, entry, where):
    if isinstance(value, torch.fx.Node):
        val = value.meta.get("val")
        if not isinstance(val, (torch.SymInt, torch.SymFloat, int, float)):
            entry.parts.append((value.name,))
            return
        value = val
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        entry.symbols += symbols(value)
        entry.parts.append(size_text(value) if isinstance(value, torch.SymInt) else number_text(value))
    elif isinstance(value, (list, tuple)):
        opening, closing = ("[", "]") if isinstance(value, list) else ("(", ",)" if len(value) == 1 else ")")
        entry.parts.append(opening)
        for i, v in enumerate(value):
            if i:
                entry.parts.append(", ")
            _write(v, entry, where)
        entry.parts.append(closing)
    else:
        entry.parts.append(argument_text(value, where))


def argument_text(value, where="an argument"):
    """Python text of an argument that is no node; Unwritable otherwise."""
    if value is None or isinstance(value, (bool, int)):
        return repr(value)
    if isinstance(value, str):
        return repr(without_rank(value))
    if isinstance(value, float):
        return repr(value) if value - value == 0 else f'float("{value}")'
    if isinstance(value, complex):
        return f'complex({argument_text(value.real)}, {argument_text(value.imag)})'
    if isinstance(value, torch.device):
        return f"torch.device({value.type!r})"
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return repr(value)
    if isinstance(value, torch.Tensor) and type(value) is torch.Tensor and value.numel() <= SMALL_TENSOR:
        device = "" if value.device.type == "cpu" else f", device={value.device.type!r}"
        items = re.sub(r"(?<![\w.])(-?)(inf|nan)\b", r'float("\1\2")', repr(value.tolist()))
        return f"torch.tensor({items}, dtype={value.dtype}{device})"
    if isinstance(value, torch.Tensor):
        raise Unwritable(f"{where} is a constant tensor of {value.numel()} elements")
    raise Unwritable(f"{where} has type {type(value).__name__}")


def without_rank(text):
    """Whatever rank made a script, it runs on the current device: `npu:3` -> `npu`."""
    return re.sub(r"\b(npu|cuda|xpu|mps|cpu):\d+\b", r"\1", text)


def _layout(val):
    if not isinstance(val, torch.Tensor) or val.dtype not in DTYPES or val.layout != torch.strided:
        return None
    hints = [[s.node.hint if isinstance(s, torch.SymInt) else s for s in sizes] for sizes in (val.shape, val.stride())]
    return None if None in hints[0] + hints[1] else (DTYPES[val.dtype], *hints)


def _take_hints(val, hints):
    sizes = [*val.shape, *val.stride()] if isinstance(val, torch.Tensor) else [val]
    for s in sizes:
        if not isinstance(s, torch.SymInt):
            continue
        known = getattr(s.node.shape_env, "backed_var_to_val", {})
        for symbol in s.node.expr.free_symbols:
            if symbol in known:
                hints.setdefault(symbol_name(symbol), int(known[symbol]))


@dataclasses.dataclass
class Fragment:
    code: str          # def eager_fn
    parameters: list   # (parameter, index of the kernel's input), in order
    extra: list        # buffers of further parameters: eager's call needs them, the result does not depend on them
    values: dict       # index of a kernel input -> Python text of the number it holds; no parameter


def recover(rec, inputs, outputs):
    """The part of the graph that a kernel with these outer values computes; Unwritable says why it cannot be had.

    Backwards from the outputs to the inputs: whatever lies between is the fragment.
    """
    known, border, parameters, values = nodes_of_values(rec), _Border(rec), [], {}
    for i, name in enumerate(inputs):
        if name in rec.numbers:
            values[i] = rec.numbers[name]
            continue
        nodes = known.get(name)
        if not nodes:
            raise Unwritable(f"the kernel's input {name} is no node of the PyTorch graph")
        if rec.entries[nodes[0]].layout is None:
            raise Unwritable(f"the kernel's input {nodes[0]} has no meta['val'] with a hint")
        parameters.append((nodes[0], i))
        border.add(nodes)
    results = []
    for name in outputs:
        nodes = known.get(name)
        if not nodes:
            raise Unwritable(f"the kernel's output {name} is no node of the PyTorch graph")
        results.append(nodes[0])
    if not results:
        raise Unwritable("the kernel's outputs are unknown")
    needed, extra = _between(rec, results, border)
    body, used = [], set()
    for name, entry in rec.entries.items():
        if name in needed:
            text = "".join(p if isinstance(p, str) else border.name(p[0]) or p[0] for p in entry.parts)
            body.append(f"    {name} = {text}" + (f"[{entry.item}]" if entry.kind == "item" else ""))
            used.update(entry.symbols)
    if not body:
        raise Unwritable("the kernel has no call_function node")
    head = [f"    {s} = {_source_of(rec, s, parameters)}" for s in sorted(used)]
    names = ", ".join(border.name(n) or n for n in results)
    code = "\n".join([f"def eager_fn({', '.join([p for p, _ in parameters] + extra)}):", *head, *body,
                      f"    return ({names}{',' if len(results) == 1 else ''})", ""])
    return Fragment(code, parameters, [_buffer(rec.entries[n]) for n in extra], values)


class _Border:
    """The kernel's inputs among the nodes: by name, else by what they compute (the compiler merges equal nodes)."""

    def __init__(self, rec):
        self.same, self.exact, self.equal = _equal_nodes(rec), {}, {}

    def add(self, nodes):
        for n in nodes:
            self.exact[n] = nodes[0]
            self.equal.setdefault(self.same[n], nodes[0])

    def name(self, node):
        """The parameter that holds this node's value, or None."""
        return self.exact.get(node) or self.equal.get(self.same[node])


def _between(rec, results, border):
    """The nodes of the fragment, and those that eager's calls name without reading."""
    needed, done, unread = set(), set(), set()
    todo = [(n, None) for n in results if border.name(n) is None]
    while todo:
        name, result = at = todo.pop()
        if at in done:
            continue
        done.add(at)
        entry = rec.entries[name]
        if entry.kind in ("input", "constant"):
            raise Unwritable(f"the fragment reads {name}, which is no input of the kernel")
        if entry.reason:
            raise Unwritable(entry.reason)
        needed.add(name)
        outside = [n for n in entry.reads() if border.name(n) is None]
        read = rec.reads.get(at, outside)
        unread.update(n for n in outside if n not in read)
        todo.extend((n, entry.item if entry.kind == "item" else None) for n in outside if n in read)
    extra = [n for n in rec.entries if n in unread and n not in needed]
    for n in extra:
        if rec.entries[n].layout is None:
            raise Unwritable(f"{n} has no meta['val'] with a hint")
    return needed, extra


def _buffer(entry):
    dtype, shape, stride = entry.layout
    return {"name": entry.name, "dtype": dtype, "shape": shape, "stride": stride}


def _equal_nodes(rec):
    """Node -> the first node that computes the same: the compiler merges such nodes."""
    same, first = {}, {}
    for name, entry in rec.entries.items():
        if entry.kind in ("input", "size", "constant") or entry.reason:
            same[name] = name
            continue
        key = (entry.kind, entry.item, tuple(p if isinstance(p, str) else (same[p[0]],) for p in entry.parts))
        same[name] = first.setdefault(key, name)
    return same


def nodes_of_values(rec):
    """Value name of the graph text -> the FX nodes that hold it."""
    items = {}
    for name, entry in rec.entries.items():
        if entry.kind == "item":
            items.setdefault((entry.parts[0][0], entry.item), []).append(name)
    out = {}
    for value, places in rec.values.items():
        for node, index in places:
            out.setdefault(value, []).extend([node] if index is None else items.get((node, index), []))
    return out


def _source_of(rec, symbol, parameters):
    """Python text that reads a size from the parameters."""
    for name, _ in parameters:
        for d, text in enumerate(rec.entries[name].shape):
            if text == symbol:
                return f"{name}.shape[{d}]"
    if symbol in rec.hints:
        return f"{rec.hints[symbol]}  # the size when this was made: no input has it"
    raise Unwritable(f"the size {symbol} is in no input's shape and has no hint")
