"""--check: what it prints, and what it must find. Names carry the rows of the checklist."""

import json
import re

import pytest

METRICS = r"CosineSim=\S+ RelEuclid=\S+ KLDiv=\S+ MAE=\S+ RMSE=\S+"


@pytest.fixture(scope="module")
def script(minimal):
    (kernel,) = minimal.kernels()
    return kernel / "benchmark.py"


def test_r106_check_output(minimal, script):
    done = minimal.run_alone(script, "--check")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert re.fullmatch(r"kernel autofused_elemwise_add_abs_\w+, seed 0", lines[0])
    assert re.fullmatch("output:abs precision PASSED: " + METRICS, lines[1])
    assert re.fullmatch("output:abs artifact PASSED: " + METRICS, lines[2])
    assert re.fullmatch(
        r"output:abs fp64: torch max=\S+ p99=\S+ ulp; compiled max=\S+ p99=\S+ ulp \(ratio \S+\); artifact .*; "
        r"worst \[\d+,\d+\] torch=\S+ compiled=\S+ artifact=\S+ fp64=\S+",
        lines[3],
    )
    assert lines[4:] == ["Precision check passed."]
    assert done.err == ""


def test_r54_tampered_artifact_fails_check(minimal, script):
    """add changed to sub in the artifact: the recompiled path passes, the artifact does not."""
    done = minimal.run(minimal.edited(script, "(x0_0 + x1_1)", "(x0_0 - x1_1)"), "--check")
    assert done.code == 1
    assert "output:abs precision PASSED" in done.out
    assert "output:abs artifact FAILED" in done.out
    assert done.out.splitlines()[-1] == "Precision check failed: abs"


def test_last_row_not_written(minimal, script):
    done = minimal.run(minimal.edited(script, "last = 128;", "last = 112;"), "--check")
    assert done.code == 1
    assert re.search(r"output:abs artifact FAILED: .*written", done.out)


def test_scale_of_4_percent(minimal, script):
    """CosineSim and the other metrics do not see it; the error bound does."""
    done = minimal.run(minimal.edited(script, "fl_abs(add_2)", "(fl_abs(add_2) * 1.04f)"), "--check", "--json")
    assert done.code == 1
    document = json.loads(done.out)
    (output,) = document["outputs"]
    assert output["precision"]["passed"]
    assert not output["artifact"]["passed"]
    assert output["artifact"]["cann"]["passed"]


def test_wrong_calls_exit_2(minimal, script):
    for args in (["--chek"], ["--seed", "x"], ["--seed", "-1"], ["--precision", "half"], ["--check", "--inputs", "absent.safetensors"]):
        done = minimal.run(script, *args)
        assert done.code == 2, (args, done)
        assert "error" in done.err
        assert "Traceback" not in done.err


def test_artifact_that_does_not_compile(minimal, script):
    done = minimal.run(minimal.edited(script, "fl_abs(add_2)", "fl_absent(add_2)"), "--check")
    assert done.code == 1
    assert "fl_absent" in done.err
    assert "Traceback" not in done.err
