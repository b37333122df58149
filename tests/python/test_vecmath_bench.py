"""bench/vecmath.py: its judge against numpy's long double, and that a run goes on where it stopped."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRIDE = 65537
ready = shutil.which("clang++-19") is not None and np.finfo(np.longdouble).nmant >= 63
pytestmark = pytest.mark.skipif(not ready, reason="the judge is compiled by clang++-19, and compared with an 80-bit long double")


def prove(state, *words):
    command = [sys.executable, str(ROOT / "bench" / "vecmath.py"), "prove", *words, "--stride", str(STRIDE), "--pairs", "100000"]
    done = subprocess.run([*command, "--state", str(state)], capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def eagers_errors(function, wide):
    """Eager's largest error and its number of misrounded results, by long double."""
    x = (np.arange(65536, dtype=np.uint64) * STRIDE).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        exact, got = wide(x.astype(np.longdouble)), function(torch.from_numpy(x)).numpy()
        nearest = exact.astype(np.float32)
        fine = np.isfinite(got) & np.isfinite(nearest)
        place = np.maximum(np.frexp(exact[fine])[1], -125) - 24
        errors = np.abs(got[fine] - exact[fine]) * np.exp2(-place.astype(np.longdouble))
        return float(errors.max()), int(((got != nearest) & ~(np.isnan(got) & np.isnan(nearest))).sum())


@pytest.mark.parametrize("name, function, wide", [("exp", torch.exp, np.exp), ("log2", torch.log2, np.log2), ("tanh", torch.tanh, np.tanh)])
def test_judge_agrees_with_long_double(name, function, wide, tmp_path):
    state = tmp_path / "state.json"
    line = prove(state, name)
    largest, misrounded = eagers_errors(function, wide)
    assert float(re.search(r"eager max ([\d.]+)", line)[1]) == pytest.approx(largest, abs=2e-6)
    assert json.loads(state.read_text())[name]["eager"]["tally"]["misrounded"] == misrounded


def test_a_run_goes_on(tmp_path):
    state = tmp_path / "state.json"
    line = prove(state, "atan2")
    have = json.loads(state.read_text())
    assert have["atan2"]["ours"]["next"] >= 100000
    assert prove(state, "atan2") == line
    assert json.loads(state.read_text()) == have  # nothing ran again
    have["atan2"]["ours"]["key"] = "the text was another one"
    state.write_text(json.dumps(have))
    prove(state, "atan2")
    assert json.loads(state.read_text())["atan2"]["eager"] == have["atan2"]["eager"]
