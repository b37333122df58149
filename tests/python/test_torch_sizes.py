"""Symbolic sizes: sympy expressions of PyTorch to the text of graphs, checked by evaluating both."""
import pytest

pytest.importorskip("torch")
sympy = pytest.importorskip("sympy")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod, PythonMod  # noqa: E402

from fuselab.torch.exprs import Unsupported, size_text  # noqa: E402

A, B = (sympy.Symbol(n, integer=True, positive=True) for n in "ab")
leaf = st.one_of(st.sampled_from([A, B]), st.integers(1, 9).map(sympy.Integer))
binary = st.sampled_from([lambda x, y: x + y, lambda x, y: x * y, Max, Min, lambda x, y: x * x + y] + [
    lambda x, y, f=f: f(x, y + 1) for f in (FloorDiv, Mod, PythonMod)])
exprs = st.recursive(leaf, lambda e: st.builds(lambda f, x, y: f(x, y), binary, e, e), max_leaves=6)


@settings(max_examples=200, deadline=None)
@given(exprs, st.integers(2, 50), st.integers(2, 50))
def test_text_means_the_same(expr, a, b):
    want = expr.subs({A: a, B: b})
    if not want.is_Integer:
        return
    assert eval(size_text(expr), {"a": a, "b": b, "min": min, "max": max}) == int(want)


def test_unknown_functions_are_refused():
    with pytest.raises(Unsupported):
        size_text(sympy.Function("f")(A))
