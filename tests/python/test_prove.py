"""`fuselab prove`: the statistics against NumPy, the knobs of the IR against the same arithmetic in NumPy, and the cheap tasks run."""

import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import fuselab
from fuselab.prove import frame, plot, task_c2, task_c3, task_e
from fuselab.prove.__main__ import chosen, main
from fuselab.prove.ir import compile_ir, forced_chunk, kernel_of
from fuselab.prove.stats import Tally, shares, ulp, ulp_errors
from program import find_program

PROGRAM = find_program()


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_ulp_is_numpys_spacing(dtype):
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(5000) * 2.0 ** rng.integers(-30, 15, 5000)).astype(dtype)
    x = np.concatenate([x, np.array([0, 1, 0.75, 2, np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal, 1000], dtype)])
    made = ulp(torch.from_numpy(x).double(), getattr(torch, dtype)).numpy()
    np.testing.assert_array_equal(made, np.spacing(np.abs(x)).astype(np.float64))


def test_errors_are_numpys():
    rng = np.random.default_rng(2)
    exact = rng.standard_normal(4000)
    actual = exact.astype(np.float32)
    errors, wrong = ulp_errors(torch.from_numpy(actual), torch.from_numpy(exact))
    expected = np.abs(actual.astype(np.float64) - exact) / np.spacing(np.abs(exact.astype(np.float32))).astype(np.float64)
    assert wrong == 0
    assert errors.numpy() == pytest.approx(expected, rel=1e-6) or np.max(np.abs(errors.numpy() - expected)) <= 0.5  # at powers of two
    assert errors.max() <= 0.5


def test_values_that_are_not_finite_are_counted():
    exact = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0, 1.0, 1e6, float("inf"), 2.0], dtype=torch.float64)
    actual = torch.tensor([float("nan"), float("inf"), float("inf"), float("nan"), 1.0, float("inf"), 1.0, 2.0]).half()
    errors, wrong = ulp_errors(actual, exact)
    assert wrong == 3  # the sign, a NaN for 1, 1 for infinity; 1e6 is infinity in f16
    assert errors.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("n", [1, 2, 99, 100, 12345])
def test_tally_has_numpys_percentiles(n):
    rng = np.random.default_rng(n)
    x = np.abs(rng.standard_normal(n)) ** 3
    x[rng.random(n) < 0.2] = 0
    tally = Tally()
    for part in np.array_split(x, 3):
        tally.add(torch.from_numpy(part))
    assert tally.count == n
    assert tally.max == x.max()
    assert tally.mean == pytest.approx(x.mean(), rel=1e-12)
    for share in (0.2, 0.5, 0.99, 1.0):
        assert tally.percentile(share) == pytest.approx(np.percentile(x, share * 100, method="inverted_cdf"), rel=1 / 1000)


def test_tally_remembers_where_the_maximum_was():
    tally = Tally()
    for seed, largest in enumerate([0.5, 3.0, 3.0, 1.0]):
        tally.add(torch.tensor([0.0, largest]), seed)
    assert (tally.max, tally.where) == (3.0, 1)


def test_shares():
    assert shares(torch.tensor([0, 0, 1, 2, 5])) == (0.4, 0.2, 0.4)


def tree_sum(x, chunk):
    """The order of a sum along a row (fuselab/kernel/ir.h), in NumPy."""
    steps = chunk // 16
    lanes = x.astype(np.float32).reshape(-1, 16)
    blocks = []
    for first in range(0, len(lanes), steps):
        block = lanes[first:first + steps]
        c = []
        for chain in range(4):
            total = np.zeros(16, np.float32)
            for row in block[chain::4]:
                total = total + row
            c.append(total)
        blocks.append((c[0] + c[1]) + (c[2] + c[3]))
    while len(blocks) > 1:  # their number is a power of two here
        blocks = [a + b for a, b in zip(blocks[::2], blocks[1::2], strict=True)]
    row = blocks[0]
    while len(row) > 1:
        row = row[: len(row) // 2] + row[len(row) // 2:]
    return row[0]


@pytest.mark.parametrize("chunk", [64, 512, 1024, 2048])
def test_a_forced_chunk_is_that_order(chunk):
    graph, ir = kernel_of(task_c2.GRAPH)
    kernel = compile_ir(graph, forced_chunk(ir, chunk))
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal(task_c2.LENGTH).astype(np.float16)
        t, y = kernel(torch.from_numpy(x[None]))
        expected = tree_sum(x, chunk)
        assert t.item() == expected
        assert y.item() == np.float16(expected)


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_newtons_rounds_are_numpys(rounds):
    f = np.float32
    x = np.random.default_rng(0).uniform(0.01, 100, (32, 32)).astype(np.float16)
    d = np.random.default_rng(1).uniform(0.01, 100, (32, 32)).astype(np.float16)
    a, b = x.astype(f), d.astype(f)
    s = (np.int32(0x5F375A86) - (a.view(np.int32) >> 1)).view(f)
    r = (np.int32(0x7EF311C7) - b.view(np.int32)).view(f)
    for _ in range(rounds):
        s = s * (f(1.5) - (f(0.5) * a) * (s * s))
        r = r * (f(2) - b * r)
    for op, given, expected in (("rsqrt", [x], s), ("div", [x, d], a * r)):
        graph, ir = kernel_of(task_c3.graph(op, 32))
        wide, y = compile_ir(graph, task_c3.newton_ir(ir, op, rounds))(*map(torch.from_numpy, given))
        np.testing.assert_array_equal(wide.numpy(), expected)
        np.testing.assert_array_equal(y.numpy(), expected.astype(np.float16))


def curves(fused):
    line = lambda shift: {c: [(0, 4.0 + shift), (50, 2.0 + shift), (100, 1.0 + shift)] for c in task_e.CURVES}
    return {"eager 0": line(0), "eager 1": line(0.1), "eager 2": line(-0.1)} | {f"fused {i}": line(s) for i, s in enumerate(fused)}


def test_training_verdict():
    good = frame.Report("E", "", "")
    task_e.judge(curves([0.001, 0.099, -0.101]), 3, 3, good)
    assert good.holds and len(good.claims) == 6
    bad = frame.Report("E", "", "")
    task_e.judge(curves([0.001, 0.5, -0.1]), 3, 3, bad)
    assert [c.holds for c in bad.claims] == [False] * 6  # 0.4 from its eager run, spread 0.2; the mean lies above all of eager's
    assert "step 0: 0.4 apart, spread 0.2" in bad.claims[0].why


def test_tables_and_plots():
    report = frame.Report("X", "a title", "about")
    report.table("t", "numbers", ["name", "value"], [["a|b", 1 / 3], ["c", torch.tensor(2)]])
    report.claim("one", False, "by 2")
    assert list(csv.reader(report.tables[0].csv().splitlines())) == [["name", "value"], ["a|b", repr(1 / 3)], ["c", "2"]]
    assert "| a\\|b | 0.3333 |" in report.markdown() and "FAILS: one (by 2)" in report.markdown()
    for svg in (plot.lines("t<", "x", "y", {"a": [(0, 1), (1, float("nan")), (2, 3)], "b": []}), plot.bars("t", "y", ["g"], {"a": [0.0]}, log=True)):
        assert xml.etree.ElementTree.fromstring(svg).tag.endswith("svg")


def test_tasks_are_named():
    assert chosen(["e", "C", "a"]) == ["A", "C1", "C2", "C3", "E"]
    assert len(chosen([])) == 8
    with pytest.raises(ValueError, match="there is no task Q"):
        chosen(["Q"])


def test_wrong_calls(tmp_path, capsys):
    assert main(["Q", "--out", str(tmp_path / "x")]) == 2
    (tmp_path / "file").write_text("")
    assert main(["C1", "--out", str(tmp_path / "file")]) == 2
    assert "fuselab: error:" in capsys.readouterr().err


def test_a_task_that_fails_is_a_claim_that_does(tmp_path, capsys, monkeypatch):
    from fuselab.prove import task_c1

    def run(size, report, progress):
        report.claim("two is one", 2 == 1, "1 too much")
        raise RuntimeError("no more")

    monkeypatch.setattr(task_c1, "run", run)
    assert main(["C1", "--small", "--out", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert "FAILS: two is one (1 too much)" in shown.out and "RuntimeError: no more" in shown.out
    assert json.loads((tmp_path / "report.json").read_text())["holds"] is False


def test_cheap_tasks_small(tmp_path, capsys):
    assert main(["C1", "C2", "C3", "D", "--small", "--json", "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["holds"] and [t["task"] for t in document["tasks"]] == ["C1", "C2", "C3", "D"]
    assert all(t["claims"] for t in document["tasks"])
    assert "claims hold" in shown.err
    page = (tmp_path / "index.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "<svg" in page
    for name in ("C1_shares.csv", "C2_pairs.csv", "C3_rsqrt.csv", "C3_div.svg", "D_moves.csv", "D.md", "report.md"):
        assert (tmp_path / name).stat().st_size > 0
    rows = list(csv.DictReader((tmp_path / "C3_rsqrt.csv").open()))
    assert [r["form"] for r in rows] == ["0 rounds", "1 rounds", "2 rounds", "3 rounds", "exact form"]


@pytest.mark.skipif(PROGRAM is None, reason="the program is not built (set FUSELAB_PROGRAM)")
@pytest.mark.parametrize("place", ["bin/python", "path/python3"])  # beside the program; on PATH
def test_the_program_hands_over(tmp_path, place):
    program, python = tmp_path / "bin/fuselab", tmp_path / place
    for folder in ("bin", "path"):
        (tmp_path / folder).mkdir()
    shutil.copy(PROGRAM, program)
    package = pathlib.Path(fuselab.__file__).parent
    environment = os.environ | {"PATH": f"{tmp_path / 'path'}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(package),
                                "PYTHONPATH": str(package.parent)}

    def call(script, *args):
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        return subprocess.run([program, "prove", *args], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    real = f'exec "{sys.executable}" "$@"'
    done = call(real, "C1", "--small", "--out", "made")
    assert done.returncode == 0, done.stderr
    assert "C1 " in done.stdout and (tmp_path / "made/index.html").exists()
    assert call(real, "Q").returncode == 2
    assert "--small" in call(real, "--help").stdout
    for code, module in ((3, "fuselab"), (4, "torch")):
        done = call(f"exit {code}", "C1")
        assert done.returncode == 1 and f"no module {module}" in done.stderr and "[prove.no_module]" in done.stderr
    assert "[prove.no_python]" in call("exit 9").stderr
