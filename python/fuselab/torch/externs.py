"""Calls that stay in PyTorch: each becomes a Python lambda over its tensors and sizes, constants baked in.

A spec is text, so that it can be kept in the cache: the operator's name and the lambda's source.
"""
import dataclasses

import torch

from .exprs import Unsupported, number_text, size_text, symbols


@dataclasses.dataclass
class Spec:
    """One call: `source` is a lambda that calls `f`, the operator named by `target`."""

    target: str            # "aten.mm.default"; "" for a lambda that calls no operator
    source: str            # "lambda t0, t1: f(t0, t1)"
    constant: object = None  # a tensor the lambda returns, for lifted constants


class Template:
    """Collects the tensors and sizes a call reads while its arguments are written as Python text."""

    def __init__(self):
        self.tensors, self.sizes, self.size_names = [], [], {}

    def text(self, value):
        if isinstance(value, torch.fx.Node):
            val = value.meta.get("val")
            if isinstance(val, torch.Tensor):
                if value not in self.tensors:
                    self.tensors.append(value)
                return f"t{self.tensors.index(value)}"
            value = val
        if isinstance(value, torch.SymInt):
            return self.size(size_text(value))
        if isinstance(value, torch.SymFloat):
            for name in symbols(value):
                self.size(name, name)
            return number_text(value)
        if isinstance(value, (list, tuple, torch.Size)):
            return "[" + ", ".join(self.text(v) for v in value) + "]"
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            return f'float("{value}")'
        if value is None or isinstance(value, (bool, int, float, str, complex)):
            return repr(value)
        if isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
            return repr(value)
        raise Unsupported(f"argument of type {type(value).__name__}")

    def size(self, text, name=None):
        if name is None:
            name = self.size_names.get(text) or f"n{len(self.sizes)}"
        if text not in self.size_names:
            self.size_names[text] = name
            self.sizes.append(text)
        return self.size_names[text]

    def params(self):
        return ", ".join([f"t{i}" for i in range(len(self.tensors))] + [self.size_names[s] for s in self.sizes])


def call_spec(node, keep):
    """The spec of an FX call, with its tensors (nodes) and sizes; `keep` lists the results wanted, None for a single one."""
    template = Template()
    parts = [template.text(a) for a in node.args] + [f"{k}={template.text(v)}" for k, v in node.kwargs.items()]
    call = f"f({', '.join(parts)})"
    if keep is not None:
        vals = node.meta["val"]
        items = [f"r[{k}]{_as_promised(vals[k], template.tensors + list(vals))}" for k in keep]
        if len(items) == 1:
            call = items[0].replace("r", call, 1)
        elif keep == list(range(len(vals))) and not any(".to" in item for item in items):
            call = f"tuple({call})"
        else:
            call = f"(lambda r: ({', '.join(items)},))({call})"
    source = f"lambda {template.params()}: {call}"
    return Spec(str(node.target), source), template.tensors, template.sizes


def _as_promised(val, others):
    """The cast to the type that PyTorch's shape functions promised for a result.

    Eager gives the statistics of norms of f16 and bf16 in other types than these say.
    """
    others = [getattr(o, "meta", {}).get("val", o) for o in others]
    low = any(isinstance(o, torch.Tensor) and o.dtype in (torch.float16, torch.bfloat16) for o in others)
    return f".to({val.dtype})" if low and val.is_floating_point() else ""


def number_spec(value):
    """A 0-d tensor that holds a scalar made of sizes, and the sizes it needs."""
    template = Template()
    text = template.text(value)
    dtype = "torch.int64" if isinstance(value, torch.SymInt) else "torch.float64"
    return Spec("", f"lambda {template.params()}: torch.tensor({text}, dtype={dtype})"), template.sizes


def constant_spec(tensor):
    return Spec("", "lambda: constant", tensor)


def operator_of(target):
    """The callable of "aten.mm.default"."""
    space, packet, overload = target.split(".")
    op = getattr(getattr(getattr(torch.ops, space), packet), overload)
    plain = FAST.get(target)
    return plain if plain is not None else op


# The same operators without the dispatch through OpOverload, half a microsecond cheaper.
FAST = {
    "aten.mm.default": torch.mm, "aten.bmm.default": torch.bmm, "aten.addmm.default": torch.addmm,
    "aten.baddbmm.default": torch.baddbmm, "aten.convolution.default": torch.convolution,
    "aten.cat.default": torch.cat, "aten.embedding.default": torch.embedding,
    "aten.index_select.default": torch.index_select, "aten.gather.default": torch.gather}


def build(specs):
    """The callables, in order."""
    made = []
    for spec in specs:
        scope = {"torch": torch, "device": torch.device, "constant": spec.constant}
        if spec.target:
            scope["f"] = operator_of(spec.target)
        made.append(eval(spec.source, scope))
    return made
