"""fuselab.testing.assert_close and the pytest plugin, run by a pytest of their own."""

import json
import os
import pathlib

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import fuselab
from fuselab.testing import assert_close

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def the_same_fuselab_inside(monkeypatch):
    package = str(pathlib.Path(fuselab.__file__).resolve().parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")])))


def test_message_is_the_report():
    a = torch.zeros(3, 4)
    b = a.clone()
    b[1, 2] = 0.5
    with pytest.raises(AssertionError) as e:
        assert_close({"out": b}, {"out": a}, name="layer")
    assert "layer: not close" in str(e.value) and "worst at [1,2]: 0 against 0.5" in str(e.value)


def test_a_false_alarm_of_plain_tolerances_passes():
    """pytorch#142223: tanh of two builds, 1.79e-7 apart."""
    a = torch.tensor([0.9])
    assert_close(a + 1.79e-7, a)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_defaults_are_those_of_torch_testing(dtype):
    rng = np.random.default_rng(0)
    a = torch.tensor(rng.standard_normal(1000)).to(dtype)
    for factor in (1 + 1e-8, 1 + 1e-7, 1 + 1e-6, 1 + 1e-5, 1 + 1e-4, 1 + 1e-3, 1.01, 1.1):
        b = (a.double() * factor).to(dtype)
        try:
            torch.testing.assert_close(b, a)
            close = True
        except AssertionError:
            close = False
        if close:
            assert_close(b, a)
        else:
            with pytest.raises(AssertionError):
                assert_close(b, a)


def test_trees_numbers_and_integers():
    assert_close([1, (2.0, {"x": np.arange(3)})], [1, (2.0, {"x": np.arange(3)})])
    with pytest.raises(AssertionError, match="equal integers|differ"):
        assert_close(torch.tensor([1, 2]), torch.tensor([1, 3]))
    with pytest.raises(AssertionError, match="built differently"):
        assert_close([1], [1, 2])
    with pytest.raises(AssertionError):
        assert_close(torch.tensor([float("nan")]), torch.tensor([1.0]))
    assert_close(torch.tensor([float("nan")]), torch.tensor([float("nan")]), exact=True)


def test_complex_and_grad():
    x = torch.randn(4, dtype=torch.complex64)
    assert_close(x, x.clone())
    with pytest.raises(AssertionError):
        assert_close(x, x.conj())
    y = torch.randn(3, requires_grad=True)
    assert_close(y, y.detach().clone())


INNER = """
import pytest, torch
from fuselab.testing import assert_close

@pytest.mark.fuselab_precision(max_ulp=1)
def test_strict():
    one = torch.ones(4)
    assert_close(one + 2**-22, one, name="two")

@pytest.mark.fuselab_precision(max_ulp=2)
def test_loose():
    one = torch.ones(4)
    assert_close(one + 2**-22, one)

def test_model(fuselab_check):
    fuselab_check(torch.nn.Sequential(torch.nn.LayerNorm(32), torch.nn.GELU()), torch.randn(4, 32))

def test_wrong_model(fuselab_check):
    class Wrong(torch.nn.Module):
        def forward(self, x):
            return x * (1.001 if torch.compiler.is_compiling() else 1)
    fuselab_check(Wrong(), torch.randn(4, 32))
"""


@pytest.mark.parametrize("ending", ["html", "json", "md"])
def test_plugin(pytester, ending):
    pytester.makepyfile(INNER)
    args = ("-q", f"--fuselab-report=report.{ending}")
    args += () if "fuselab" in _plugins(pytester) else ("-p", "fuselab.pytest_plugin")
    result = pytester.runpytest_subprocess(*args)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*max 2 ULP is above 1*", "*less accurate than eager*", "*4 comparisons, report in report.*"])
    report = (pytester.path / f"report.{ending}").read_text()
    assert "test_strict" in report and "test_loose" in report
    if ending == "json":
        assert [r["passed"] for r in json.loads(report)].count(False) == 1


def _plugins(pytester):
    from importlib.metadata import entry_points

    return [e.name for e in entry_points(group="pytest11")]


def test_plugin_refuses_what_it_does_not_know(pytester):
    pytester.makepyfile("import pytest\n@pytest.mark.fuselab_precision(ulps=3)\ndef test_x(): pass\n")
    args = () if "fuselab" in _plugins(pytester) else ("-p", "fuselab.pytest_plugin")
    result = pytester.runpytest_subprocess("-q", *args)
    assert "fuselab_precision takes exact, max_ulp, rtol, atol by name, not ulps" in result.stdout.str() + result.stderr.str()
    assert pytester.runpytest_subprocess("-q", *args, "--fuselab-report=x.txt").ret != 0
