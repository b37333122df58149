"""Is this result good enough, and where is it not? Usable without the compiler, on PyTorch tensors, NumPy arrays and files.

    import fuselab.numerics as fn

    fn.ulp_diff(a, b)                    # units in the last place, element by element
    fn.error_stats(actual, exact)        # max, mean, median and P99 of absolute, relative and ULP error
    fn.cann_metrics(expected, actual)    # CosineSim, RelEuclid, KLDiv, MAE, RMSE
    fn.compare({"y": a}, {"y": b})       # name by name, worst first; print it, or .json(), .html()
    fn.compare_files("a.safetensors", "b.safetensors")
    fn.fp64_reference(graph, inputs)     # value, running error bound and undecided mask of every output
    fn.judge(expected, actual, reference)  # the verdict of `benchmark.py --check`

docs/precision.md has the formulas and what the metrics are blind to.
"""

from . import _core
from ._core import (
    bit_equal,
    cann_metrics,
    compare_files,
    error_stats,
    fp64_reference,
    judge,
    rounded,
    ulp_diff,
)

__all__ = [
    "bit_equal",
    "cann_metrics",
    "compare",
    "compare_files",
    "error_bound",
    "error_stats",
    "flatten",
    "fp64_reference",
    "judge",
    "rounded",
    "save",
    "ulp_diff",
]


def flatten(value, name=""):
    """(name, leaf) of nested dictionaries, lists and tuples: keys and places joined by '.'."""
    if isinstance(value, (list, tuple)):
        value = dict(enumerate(value))
    if not isinstance(value, dict):
        yield name, value
        return
    for key, inner in value.items():
        yield from flatten(inner, f"{name}.{key}" if name else str(key))


def _as_tensor(value):
    """What the core can look at: a tensor as it is (a quantised one dequantised, a complex one as pairs), a number as 0-d."""
    if isinstance(value, (bool, int, float)):
        import numpy

        return numpy.asarray(value)
    if getattr(value, "requires_grad", False):
        value = value.detach()
    if getattr(value, "is_quantized", False):
        value = value.dequantize()
    if hasattr(value, "is_complex") and value.is_complex():
        import torch

        value = torch.view_as_real(value.resolve_conj())
    elif getattr(getattr(value, "dtype", None), "kind", "") == "c":
        import numpy

        value = numpy.stack([value.real, value.imag], -1)
    device = getattr(value, "device", None)
    if device is not None and getattr(device, "type", "cpu") != "cpu":
        value = value.cpu()
    return value


def compare(expected, actual, *, exact=False, max_ulp=None, rtol=None, atol=None):
    """Compares tensors, numbers, or nested dictionaries, lists and tuples of them, leaf by leaf.

    Returns a `Comparison`: `.passed`, `.text(rows)`, `.json()`, `.html()`; printed, it is the table. Without a limit a tensor
    passes by the CANN metrics; `exact`, `max_ulp`, and `atol + rtol * |expected|` replace them. Leaves that are on one side
    only raise ValueError.
    """
    left, right = list(flatten(expected, "")), list(flatten(actual, ""))
    names = [n or "value" for n, _ in left]
    if names != [n or "value" for n, _ in right]:
        odd = sorted({n for n, _ in left} ^ {n for n, _ in right}) or ["the order of the keys"]
        raise ValueError(f"expected and actual are built differently: {', '.join(map(str, odd[:5]))}")
    return _core.compare_tensors(
        names, [_as_tensor(v) for _, v in left], [_as_tensor(v) for _, v in right], exact=exact, max_ulp=max_ulp, rtol=rtol, atol=atol
    )


def error_bound(graph, inputs, precision="block"):
    """[(value, bound), ...] per output: |any result that keeps the contract - value| <= bound, element by element."""
    return [(r.value, r.bound) for r in fp64_reference(graph, list(inputs), precision=precision)]


def save(path, tensors):
    """Writes {name: tensor} as a .safetensors file, aside and renamed: whole or not at all."""
    _core.write_safetensors(str(path), list(tensors), [_as_tensor(t) for t in tensors.values()])
