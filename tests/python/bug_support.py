"""What the tests of public bug reports share: compiled graphs, sizes, dtypes, exact roundings.

A test's name carries the number of its case and the public thread. Expected values come from IEEE arithmetic, NumPy, mpmath
or float64 PyTorch, never from a kernel.
"""
import functools

import torch

from fuselab import _core

SIZES = [1, 7, 16, 17, 1000]
WORD = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64", torch.int8: "i8",
        torch.uint8: "u8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.bool: "bool"}
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]
INTEGERS = [torch.uint8, *SIGNED]
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def word(dtype):
    return WORD[dtype]


def bits(t):
    """The tensor's bit patterns as integers."""
    return t.contiguous().view(BITS[t.element_size()])


def same_bits(a, b):
    """Equal in type, shape and every bit."""
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))


def same(a, b):
    """Equal in type, shape and value: signs of zeros count, any NaN is any NaN."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    return bool((a.isnan() & b.isnan() | (a == b) & (a.signbit() == b.signbit())).all())


@functools.cache
def graph(text, options=()):
    """The compiled graph of a text; the same text is compiled once per run."""
    return _core.compile_graph(text, dict(options))


def run(text, *args, **options):
    """The results of a graph text; one result comes alone."""
    out = graph(text, tuple(options.items()))(*args)
    return out[0] if len(out) == 1 else out


def sized(body, *inputs, result="r"):
    """A graph over vectors of a symbolic length: sized("r = add(x, y)", "x: i8", "y: i8")."""
    params = ", ".join(f"{i}[n]" for i in inputs)
    return f"graph g(n: size, {params}) {{\n{body}\nreturn {result}\n}}"


def through_torch(fn, *inputs, dynamic=None, **options):
    """fn(*inputs) compiled by torch.compile with this backend; everything must be one graph."""
    torch._dynamo.reset()
    compiled = torch.compile(fn, backend="fuselab", fullgraph=True, dynamic=dynamic, options=options or None)
    return compiled(*inputs)


def kernels_of(text, **options):
    """The text forms of a graph's kernels."""
    return [k["ir"] for k in graph(text, tuple(options.items())).kernels]


__all__ = [n for n in dir() if n[0] != "_" and n not in ("functools", "fuselab")]
