"""`fuselab prove`: its verdicts on made-up curves and results, the cheap tasks run small, and the program that hands over to Python."""

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
from fuselab.prove import frame, plot, task_a, task_b, task_e, task_f
from fuselab.prove.__main__ import chosen, main
from fuselab.prove.language_model import Characters, text
from program import find_program

PROGRAM = find_program()


def curves(fused):
    line = lambda shift: {c: [(0, 4.0 + shift), (50, 2.0 + shift), (100, 1.0 + shift)] for c in task_e.CURVES}
    return {"eager 0": line(0), "eager 1": line(0.1), "eager 2": line(-0.1)} | {f"fused {i}": line(s) for i, s in enumerate(fused)}


def test_training_verdict():
    good = frame.Report("E", "", "")
    task_e.judge(curves([0.001, 0.099, -0.101]), 3, 3, good)
    assert good.holds and len(good.claims) == 6
    bad = frame.Report("E", "", "")
    task_e.judge(curves([0.001, 0.5, -0.1]), 3, 3, bad)
    # (0.001 + 0.4 + 0) / 3 from the eager runs, whose seeds are (0.1 + 0.1 + 0.2) / 3 apart; the mean lies above all of eager's
    assert [c.holds for c in bad.claims] == [False] * 6
    assert bad.claims[0].why == "0.134 apart, seeds 0.133" and bad.claims[1].why == "0.134 from eager's mean, half the spread 0.1"
    assert bad.tables[-1].rows[0][-3:] == [3, 3, 2.0]  # 0.4 exceeds the spread of 0.2; two of three seeds are outermost
    once = curves([0.001, 0.099, -0.101])
    once["fused 1"]["loss"][1] = (50, 2.5)  # where seeds are 0.2 apart at most, at one of three steps
    few = frame.Report("E", "", "")
    task_e.judge(once, 3, 3, few)
    assert few.holds and few.tables[-1].rows[0][-3:] == [1, 3, 2.0]


def test_training_fused_is_training_eager():
    words = text(60, 0)
    characters = Characters(words)
    data = characters.encode(words)
    size = task_e.Size(layers=1, width=32, steps=2, every=1, eager=1, fused=1, batch=2)
    silent = frame.Progress(True)
    eager, fused = (task_e.train(size, len(characters), data, data, 0, which, silent) for which in (False, True))
    for curve in task_e.CURVES:
        assert [step for step, _ in fused[curve]] == [0, 1, 2]
        assert [v for _, v in fused[curve]] == pytest.approx([v for _, v in eager[curve]], rel=1e-4)
    assert eager["loss"][0][1] == pytest.approx(np.log(len(characters)), rel=0.1)  # nothing learnt yet: all symbols alike


def test_trainings_run_in_processes_of_their_own(monkeypatch):
    size = task_e.Size(layers=1, width=32, steps=2, every=1, eager=2, fused=1, batch=2)
    monkeypatch.setitem(task_e.SIZES, "small", size)
    asked = []

    def process(which, fused, seed):
        asked.append((which, fused, seed))
        return curves([0.001])[f"{'fused' if fused else 'eager'} {seed}"]

    monkeypatch.setattr(task_e, "_process", process)
    report = frame.Report("E", "", "")
    task_e.run("small", report, frame.Progress(True))
    assert sorted(asked) == [("small", False, 0), ("small", False, 1), ("small", True, 0)] and report.holds


def test_a_training_process_prints_its_curves(monkeypatch, capsys):
    size = task_e.Size(layers=1, width=32, steps=1, every=1, eager=1, fused=1, batch=2)
    monkeypatch.setitem(task_e.SIZES, "small", size)
    threads = torch.get_num_threads()
    try:
        task_e.main("small", "0", "3")
    finally:
        torch.set_num_threads(threads)
    made = json.loads(capsys.readouterr().out)
    characters, data, held = task_e.texts()
    expected = task_e.train(size, len(characters), data, held, 3, False, frame.Progress(True))
    assert {k: [tuple(p) for p in v] for k, v in made.items()} == {k: [pytest.approx(p, rel=1e-5) for p in v] for k, v in expected.items()}


def test_chains_against_fp64(monkeypatch):
    monkeypatch.setitem(task_b.SIZES, "small", 3)
    monkeypatch.setattr(task_b, "CHAINS", {c: task_b.CHAINS[c] for c in ("mul, add, gelu, mul", "softmax")})
    monkeypatch.setattr(task_b, "AFTER_PRODUCT", {})
    report = frame.Report("B", "", "")
    task_b.run("small", report, frame.Progress(True))
    rows = {tuple(r[:2]): dict(zip(report.tables[0].columns, r)) for r in report.tables[0].rows}
    assert len(rows) == 6 and len(report.claims) == 12 and sum("scale of the row" in c.text for c in report.claims) == 6
    monkeypatch.setitem(task_b.SIZES, "default", 2)
    monkeypatch.setattr(task_b, "CHAINS", {"softmax": task_b.CHAINS["softmax"]})
    plain = frame.Report("B", "", "")
    task_b.run("default", plain, frame.Progress(True))
    assert [c.text for c in plain.claims if "f16" in c.text] == [
        f"softmax, {d}: {what} error of fused at most eager's" for d in ("f16", "bf16") for what in ("P99", "max")]
    for (_, dtype), row in rows.items():
        assert row["P99 fused"] <= row["P99 eager"]
        assert row["not finite where they should be"] == 0
        if dtype != "f32":
            assert row["max fused"] <= 0.51  # computed in f32 and rounded once
    assert rows["mul, add, gelu, mul", "f16"]["P99 eager"] > 2  # eager rounds after each operator


def test_after_a_shared_product_only_what_is_fused_counts():
    x, m, r, w, b = task_b.inputs("matmul, add, layer_norm", torch.bfloat16, 5)
    product, *rest = task_b.inputs("add, layer_norm after the matmul", torch.bfloat16, 5)
    assert torch.equal(product, x @ m) and all(map(torch.equal, rest, (r, w, b)))
    one = task_b._study("add, layer_norm after the matmul", "bf16", 2, frame.Progress(True))
    assert one["fused"].percentile(0.99) <= 0.51 and one["fused scaled"] <= 0.51  # no error of the product in it
    assert one["eager"].percentile(0.99) > 2  # eager rounds the sum to bf16
    scores = task_b.inputs("softmax after qk", torch.float32, 5)
    assert len(scores) == 1 and scores[0].shape == (4, 64, 64)


def test_errors_are_shown_apart():
    assert task_b._pair(16.78, 16.22) == "16.78 against 16.22"
    assert task_b._pair(0.5000422637848487, 0.500041920322019) == "0.50004226 against 0.50004192"


def test_the_reference_of_gelu_does_not_cancel():
    mpmath = pytest.importorskip("mpmath")
    t = torch.tensor([-30.0, -9.0, -1.0, 0.5, 9.0], dtype=torch.float64)
    one = torch.ones_like(t)
    made = task_b._pointwise64(t, one, 0 * one, one)
    for x, y in zip(t.tolist(), made.tolist(), strict=True):
        assert y == pytest.approx(float(x * mpmath.ncdf(x)), rel=1e-12)


def test_repeated_runs_are_compared(tmp_path, monkeypatch):
    threads = torch.get_num_threads()
    try:
        given = task_a.inputs((2, 3, 64))
        torch.save(given, tmp_path / "inputs.pt")
        spec = {"inputs": str(tmp_path / "inputs.pt"), "runs": [[1, 2], [2, 2]]}
        same = task_a.worker(spec)
        assert (same["runs"], same["differ"], same["max_ulp"]) == (4, 0, 0)
        assert task_a.worker(spec)["output"] == same["output"]
        count = iter(range(10))
        step = lambda y: (y.view(torch.int16) + 3 * (next(count) > 1)).view(torch.half)  # 3 ULP from the third run on
        monkeypatch.setattr(torch, "compile", lambda f, **options: lambda *a: step(f(*a)))
        off = task_a.worker(spec)
        assert (off["runs"], off["differ"], off["max_ulp"]) == (4, 2, 3)
    finally:
        torch.set_num_threads(threads)


def test_functions_error_is_numpys(monkeypatch):
    monkeypatch.setattr(task_f, "FUNCTIONS", {"exp": task_f.FUNCTIONS["exp"]})
    monkeypatch.setattr(task_f, "_same_bits", lambda *a: None)
    report = frame.Report("F", "", "")
    task_f.run("small", report, frame.Progress(True))
    assert report.holds and [r[:3] for r in report.tables[0].rows] == [["exp", d, 65536] for d in ("f32", "f16", "bf16")]
    x = (np.arange(65536, dtype=np.int64) * 65537).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        exact = np.exp(x.astype(np.float64))
        eager = torch.exp(torch.from_numpy(x)).numpy()
        fine = np.isfinite(exact) & np.isfinite(eager) & np.isfinite(exact.astype(np.float32))
        error = np.abs(eager.astype(np.float64) - exact)[fine] / np.spacing(exact[fine].astype(np.float32))
    assert report.tables[0].rows[0][4] == pytest.approx(error.max(), rel=1e-6)


def test_tables_and_plots():
    report = frame.Report("X", "a title", "about")
    report.table("t", "numbers", ["name", "value"], [["a|b", 1 / 3], ["c", torch.tensor(2)]])
    report.claim("one", False, "by 2")
    assert list(csv.reader(report.tables[0].csv().splitlines())) == [["name", "value"], ["a|b", repr(1 / 3)], ["c", "2"]]
    assert "| a\\|b | 0.3333 |" in report.markdown() and "FAILS: one (by 2)" in report.markdown()
    for svg in (plot.lines("t<", "x", "y", {"a": [(0, 1), (1, float("nan")), (2, 3)], "b": []}), plot.bars("t", "y", ["g"], {"a": [0.0]}, log=True)):
        assert xml.etree.ElementTree.fromstring(svg).tag.endswith("svg")


def test_pages_keep_what_earlier_runs_left(tmp_path, capsys, monkeypatch):
    from fuselab.prove import task_c1, task_d

    def run(size, report, progress):
        report.about = "so much"
        report.table("t", "a table", ["name", "value"], [["a", 1.5], ["b", 2]])
        report.plots.append(plot.Plot(f"{report.task}_p", "a plot", plot.bars("t", "y", ["g"], {"a": [1.0]})))
        report.claim("one is one", report.task == "D", "it is not")
        report.notes.append("a note")

    monkeypatch.setattr(task_c1, "run", run)
    monkeypatch.setattr(task_d, "run", run)
    where = ["--small", "--quiet", "--json", "--out", str(tmp_path)]
    assert main(["C1", *where]) == 1
    alone = json.loads(capsys.readouterr().out)["tasks"]
    assert main(["D", *where]) == 0
    assert [t["task"] for t in json.loads(capsys.readouterr().out)["tasks"]] == ["D"]
    assert main(["D", "--add", *where]) == 1  # C1 is part of it again, and fails
    both = json.loads(capsys.readouterr().out)["tasks"]
    assert [t["task"] for t in both] == ["C1", "D"] and both[0] == alone[0]
    page = (tmp_path / "index.html").read_text()
    assert page.count("<svg") == 2 and page.count("one is one") == 2 and (tmp_path / "report.md").read_text().count("a note") == 2
    kept = json.loads((tmp_path / "C1.json").read_text())
    for broken in (json.dumps(kept | {"run": kept["run"] | {"fuselab": "0.0"}}), "[]", "{", json.dumps(kept | {"plots": {"gone": ""}})):
        (tmp_path / "C1.json").write_text(broken)  # of another version, or none of ours: not taken
        assert main(["D", "--add", *where]) == 0
        assert [t["task"] for t in json.loads(capsys.readouterr().out)["tasks"]] == ["D"]


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
