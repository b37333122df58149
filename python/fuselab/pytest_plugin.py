"""pytest plugin: limits per test, and one report of everything that `fuselab.testing.assert_close` compared.

    @pytest.mark.fuselab_precision(max_ulp=2)      # default limits of assert_close in this test
    def test_softmax(fuselab_check): ...

    pytest --fuselab-report report.html            # or .json, .md: every comparison by test, worst first

The fixture `fuselab_check(fn, *inputs)` compiles fn with fuselab, runs it beside eager and a float64 run, and fails when the
compiled result's error (RMS) is above eager's by more than `slack` (default 1.25) and above one rounding of the dtype.
"""

import html
import json
import os

import pytest

LIMITS = ("exact", "max_ulp", "rtol", "atol")
_seen = pytest.StashKey[list]()


def pytest_addoption(parser):
    parser.getgroup("fuselab").addoption(
        "--fuselab-report", metavar="FILE", help="write what fuselab.testing.assert_close compared: .html, .json or .md"
    )


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "fuselab_precision(max_ulp, rtol, atol, exact): default limits of fuselab.testing.assert_close in this test"
    )
    config.stash[_seen] = []
    report = config.getoption("--fuselab-report")
    if report and os.path.splitext(report)[1] not in (".html", ".json", ".md"):
        raise pytest.UsageError(f"--fuselab-report {report}: the name must end in .html, .json or .md")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    from . import testing

    limits = {}
    for mark in reversed(list(item.iter_markers("fuselab_precision"))):
        unknown = sorted(set(mark.kwargs) - set(LIMITS))
        if unknown or mark.args:
            raise pytest.UsageError(
                f"{item.nodeid}: fuselab_precision takes {', '.join(LIMITS)} by name, not {', '.join(unknown) or 'plain values'}"
            )
        limits.update(mark.kwargs)
    seen = item.config.stash[_seen]
    testing._state.limits = limits
    if item.config.getoption("--fuselab-report"):  # else nothing is kept
        testing._state.listener = lambda name, found: seen.append((item.nodeid, name, found))
    try:
        yield
    finally:
        testing._state.limits, testing._state.listener = {}, None


def pytest_sessionfinish(session):
    report = session.config.getoption("--fuselab-report")
    if not report:
        return
    rows = []
    for test, name, found in session.config.stash[_seen]:
        for tensor in json.loads(found.json())["tensors"]:
            rows.append({"test": test, "comparison": name, **tensor})
    rows.sort(key=lambda r: (r["passed"], -_number(r.get("ulp", {}).get("max", "inf"))))
    text = {".json": _json, ".md": _markdown, ".html": _html}[os.path.splitext(report)[1]](rows)
    with open(report, "w", encoding="utf-8") as f:
        f.write(text)


def pytest_terminal_summary(terminalreporter, config):
    report = config.getoption("--fuselab-report")
    if report:
        terminalreporter.write_line(f"fuselab: {len(config.stash[_seen])} comparisons, report in {report}")


def _number(value):
    return float(value)


def _json(rows):
    return json.dumps(rows, indent=1) + "\n"


COLUMNS = ("test", "tensor", "dtype", "elements", "max ULP", "P99 ULP", "max abs", "verdict")


def _cells(row):
    ulp, absolute = row.get("ulp", {}), row.get("absolute", {})
    short = lambda v: f"{_number(v):.3g}" if v is not None else ""
    verdict = "passed" if row["passed"] else f"FAILED: {row['reason']}"
    name = ": ".join(x for x in (row["comparison"], row["name"]) if x)
    dtype = "/".join(dict.fromkeys(row.get("dtype", [])))
    return (row["test"], name, dtype, str(row.get("elements", "")), short(ulp.get("max")), short(ulp.get("p99")), short(absolute.get("max")), verdict)


def _markdown(rows):
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    lines += ["| " + " | ".join(c.replace("|", "\\|") for c in _cells(r)) + " |" for r in rows]
    return "\n".join(lines) + "\n"


def _html(rows):
    head = "".join(f"<th>{c}" for c in COLUMNS)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(c)}" for c in _cells(r)) for r in rows)
    style = "body{font:14px system-ui,sans-serif;margin:2em}td,th{padding:.3em .6em;border-bottom:1px solid #ddd;text-align:left}"
    failed = sum(not r["passed"] for r in rows)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>fuselab precision</title><style>{style}</style>'
        f"<h1>{len(rows)} tensors compared, {failed} failed</h1><table><tr>{head}{body}</table></html>\n"
    )


@pytest.fixture
def fuselab_check():
    """check(fn, *inputs, slack=1.25, **options): the compiled fn is no less accurate than eager. Returns its results."""

    def check(fn, *inputs, slack=1.25, **options):
        import copy

        import torch

        from . import testing
        from .numerics import _as_tensor, compare, flatten
        from .torch_backend import register

        register()  # this plugin came before torch

        def wide(value):
            return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

        eager = fn(*inputs)
        exact_fn = copy.deepcopy(fn).double() if isinstance(fn, torch.nn.Module) else fn
        exact = exact_fn(*[wide(x) for x in inputs])
        compiled = torch.compile(fn, backend="fuselab", options=options or None)(*inputs)
        if testing._listener():
            testing._listener()("compiled against eager", compare(eager, compiled))
        problems = []
        for (name, e), (_, c), (_, r) in zip(flatten(eager), flatten(compiled), flatten(exact), strict=True):
            if not isinstance(e, torch.Tensor) or not e.is_floating_point():
                if not torch.equal(_as_tensor(e), _as_tensor(c)):
                    problems.append(f"{name or 'result'}: not equal to eager")
                continue
            r = r.detach()
            error = lambda t, exact=r: (t.detach().double() - exact).square().mean().sqrt().item()
            floor = r.abs().max().item() * torch.finfo(e.dtype).eps / 2
            if error(c) > max(slack * error(e), floor):
                problems.append(f"{name or 'result'}: RMS error {error(c):.3g} against float64, eager's is {error(e):.3g}")
        if problems:
            raise AssertionError("less accurate than eager\n" + "\n".join(problems))
        return compiled

    return check
