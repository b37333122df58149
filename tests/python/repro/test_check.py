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


def half(*shape):
    torch = pytest.importorskip("torch")
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).half()


def test_exemptions_are_not_held_against_a_kernel(lab):
    """keep_dtype: the product is rounded where the contract would keep f32. The bound knows."""
    import torch

    fn = lambda x, y, z: x * y + z  # noqa: E731
    lab.compile(fn, half(64, 64), half(64, 64), half(64, 64), keep_dtype=["mul"])
    (kernel,) = lab.kernels()
    done = lab.run(kernel / "benchmark.py", "--check")
    assert done.code == 0, done.out
    errors = re.search(r"compiled max=(\S+) .*artifact max=(\S+) ", done.out)
    assert float(errors[1]) > 0.6 and errors[1] == errors[2]  # the product really is rounded
    torch._dynamo.reset()
    torch.compile(fn, backend="fuselab", options={"keep_dtype": ["mul"], "check_kernels": "stop"})(half(9), half(9), half(9))


def test_r23_the_environment_of_the_maker_changes_the_recompile(lab, monkeypatch):
    """An exemption by AUTOFUSE_FLAGS: with the snapshot the recompiled fragment has the artifact's roundings, without it has not."""
    monkeypatch.setenv("AUTOFUSE_FLAGS", "--autofuse_enhance_precision_blacklist=mul")
    lab.compile(lambda x, y, z: x * y + z, half(64, 64), half(64, 64), half(64, 64))
    monkeypatch.delenv("AUTOFUSE_FLAGS")
    (kernel,) = lab.kernels()
    script = kernel / "benchmark.py"
    errors = {}
    for name, path in (("restored", script), ("not", lab.edited(script, '"AUTOFUSE_FLAGS": ', '"AUTOFUSE_OTHER": '))):
        errors[name] = re.search(r"compiled max=(\S+) .*artifact max=(\S+) ", lab.run(path, "--check").out)
    assert errors["restored"][1] == errors["restored"][2]
    assert float(errors["not"][1]) <= 0.501 < float(errors["not"][2])


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
