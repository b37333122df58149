"""assert_close for tests: the failure message is the report, with the worst element, its place and the spread of the errors."""

import threading

from . import numerics

__all__ = ["assert_close"]

# The tolerances that users of torch.testing.assert_close expect, by dtype: relative, absolute.
# https://docs.pytorch.org/docs/stable/testing.html
TOLERANCES = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}

_state = threading.local()


def _defaults():
    """Limits that a mark of the pytest plugin gives to the running test."""
    return getattr(_state, "limits", {})


def _listener():
    return getattr(_state, "listener", None)


def _tolerance(value):
    """The loosest of the leaves' dtypes; None when all are exact ones."""
    found = [TOLERANCES.get(str(getattr(leaf, "dtype", "float64")).removeprefix("torch.")) for _, leaf in numerics.flatten(value)]
    known = [t for t in found if t]
    return (max(r for r, _ in known), max(a for _, a in known)) if known else None


def assert_close(actual, expected, *, exact=None, max_ulp=None, rtol=None, atol=None, name="", rows=10):
    """Raises AssertionError with a report unless every leaf of `actual` is close to that of `expected`.

    Tensors of PyTorch or NumPy, numbers, or nested dictionaries, lists and tuples of them. NaN equals NaN; NaN or Inf on one side
    only fails. Integers and bool must be equal. Floats: `exact` (the same bits), `max_ulp`, `rtol` and `atol`
    (|actual - expected| <= atol + rtol |expected|), every one that is given; none given: the tolerances of torch.testing for the
    dtype. Limits of `@pytest.mark.fuselab_precision` hold where the call gives none.

        assert_close(model(x), reference, max_ulp=2)
    """
    limits = {"exact": exact, "max_ulp": max_ulp, "rtol": rtol, "atol": atol}
    if all(v is None for v in limits.values()):
        limits.update(_defaults())
    if all(v is None for v in limits.values()):
        limits["rtol"], limits["atol"] = _tolerance([actual, expected]) or (None, None)
    limits["exact"] = bool(limits["exact"])
    try:
        found = numerics.compare(expected, actual, **limits)
    except ValueError as error:
        raise AssertionError(str(error)) from None
    if _listener():
        _listener()(name, found)
    if not found.passed:
        asked = ", ".join(f"{k}={v}" for k, v in limits.items() if v not in (None, False)) or "equal integers"
        raise AssertionError(f"{name + ': ' if name else ''}not close ({asked})\n{found.text(rows)}")
