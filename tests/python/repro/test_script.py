"""What stands in benchmark.py, and its other modes."""

import ast
import csv
import os
import re
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import fuselab


@pytest.fixture(scope="module")
def script(minimal):
    (kernel,) = minimal.kernels()
    return kernel / "benchmark.py"


def literal(script, name):
    """The value of a top-level assignment, without running the script."""
    for node in ast.parse(script.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise AssertionError(f"{name} is not in {script}")


def test_r18_head(script):
    text = ast.get_docstring(ast.parse(script.read_text()))
    assert script.parent.name in text
    for word in ("add(x0, x1)", "--check", "--bench", "--profile", "--e2e", "Exit codes"):
        assert word in text


def test_r52_functions(script):
    text = script.read_text()
    assert "def _run_eager(inputs):\n    return eager_fn(*inputs)\n" in text
    assert 'torch.compile(eager_fn, backend="fuselab", options={**OPTIONS, **options}, dynamic=not IS_STATIC)' in text


def test_r111_r112_fragment_is_the_kernels_sequence(script):
    (function,) = [n for n in ast.parse(script.read_text()).body if isinstance(n, ast.FunctionDef) and n.name == "eager_fn"]
    calls = [ast.unparse(n.value.func) for n in function.body if isinstance(n, ast.Assign)]
    assert calls == ["torch.ops.aten.add.Tensor", "torch.ops.aten.abs.default"]
    assert ast.unparse(function.body[-1]) == "return (abs_1,)"
    assert "  add: f32[8, 16] = add(x0, x1)\n  abs: f32[8, 16] = abs(add)\n  return abs\n" in literal(script, "FRAGMENT")


def test_r26_environment_block_precedes_every_import_of_torch(script):
    text = script.read_text()
    assert text.index("os.environ.setdefault") < re.search(r"^import torch$", text, re.MULTILINE).start()
    assert "import fuselab" not in text[: text.index("os.environ.setdefault")]


def test_r22_r24_r25_r27_r28_r29_environment(lab, monkeypatch):
    for name in [n for n in os.environ if n.startswith(("FUSELAB_", "AUTOFUSE_", "TORCHINDUCTOR_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AUTOFUSE_FLAGS", "--max_fusion_size=8")
    monkeypatch.setenv("TORCHINDUCTOR_EMULATE_PRECISION_CASTS", "0")
    monkeypatch.setenv("TORCHINDUCTOR_NPU_BACKEND", "other")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(lab.tmp / "torch_cache"))
    monkeypatch.setenv("FUSELAB_CACHE_DIR", str(lab.tmp / "cache"))
    monkeypatch.setenv("AUTOFUSE_DFX_FLAGS", "--codegen_compile_debug=true")
    lab.compile(lambda x: (x + 1).abs(), torch.ones(3))
    script = lab.kernels()[0] / "benchmark.py"
    assert literal(script, "_bench_env") == {"AUTOFUSE_FLAGS": "--max_fusion_size=8", "TORCHINDUCTOR_EMULATE_PRECISION_CASTS": "0"}
    equal = lab.run(script)
    monkeypatch.delenv("AUTOFUSE_FLAGS")
    unset = lab.run(script)
    monkeypatch.setenv("AUTOFUSE_FLAGS", "--max_fusion_size=4")
    other = lab.run(script)
    assert (unset.code, unset.err) == (equal.code, equal.err) == (0, "")
    assert other.code == 0
    assert other.err == (
        "WARNING: AUTOFUSE_FLAGS is '--max_fusion_size=4' here; it was '--max_fusion_size=8' when this script was made.\n"
    )


def test_r02_moved_folder_runs(minimal, lab, script):
    """The script alone, elsewhere: R-90, R-91."""
    moved = lab.tmp / "elsewhere" / "benchmark.py"
    moved.parent.mkdir()
    shutil.copy(script, moved)
    (moved.parent / "kernel.ir").write_text("not a kernel")
    (moved.parent / "artifacts.json").write_text("{")
    done = lab.run_alone(moved, "--check", "--e2e", cwd=moved.parent)
    assert done.code == 0, done.err
    assert "output:abs artifact PASSED" in done.out


def test_r93_edited_ir_is_checked(minimal, script):
    """--e2e takes the kernel IR in the script; without it the artifact is what counts."""
    edited = minimal.edited(script, "%2 = add %0, %1", "%2 = sub %0, %1")
    assert minimal.run(edited, "--check").code == 0
    done = minimal.run(edited, "--check", "--e2e")
    assert done.code == 1
    assert "output:abs artifact FAILED" in done.out
    broken = minimal.run(minimal.edited(script, "%2 = add %0, %1", "%2 = absent %0, %1"), "--check", "--e2e")
    assert broken.code == 1
    assert "absent" in broken.err


@pytest.mark.parametrize(
    "old, new, why",
    [
        ("axis p0: parallel [8]", "axis p0: parallel [9]", "%0 = load x0 [[16]*p0 + p1] reaches 16 elements past the end of f32[8, 16]"),
        ("store abs [[16]*p0 + p1]", "store abs [[17]*p0 + p1]", "reaches 7 elements past the end"),
        ("store abs [[16]*p0 + p1]", "store abs [[16]*p0 + p1 + [-1]]", "reaches 1 elements before the start"),
    ],
)
def test_edited_ir_stays_inside_its_tensors(minimal, script, old, new, why):
    done = minimal.run(minimal.edited(script, old, new), "--check", "--e2e")
    assert done.code == 1
    assert "KERNEL_IR: %" in done.err and why in done.err


def test_edited_ir_of_a_dynamic_kernel_stays_inside_its_tensors():
    """The sizes are known when it runs: a number in the place of a symbolic extent is right for one size only."""
    from fuselab import _core

    text = "graph g(x: f32[B, 16]) {\n  y = exp(x)\n  return y\n}\n"
    (kernel,) = _core.compile_graph(text).kernels
    assert "axis p0: parallel [B]" in kernel["ir"]
    edited = _core.generate_from_ir(kernel["ir"].replace("parallel [B]", "parallel [8]"), "kernel.ir", kernel["graph"])
    call = _core.compile_artifact(kernel["graph"], edited)
    x = torch.ones(8, 16)
    assert np.allclose(np.from_dlpack(call(x)[0]), np.e)
    with pytest.raises(fuselab.Error, match="kernel.ir: %0 = load .* reaches 16 elements past the end") as e:
        call(x[:7])
    assert e.value.code == "kernel.bounds"


def test_r08_r75_r76_profile_is_the_default(minimal, lab, script):
    done = lab.run(script)
    assert done.code == 0, done.err
    (folder,) = (lab.tmp / "profiling").iterdir()
    rows = list(csv.DictReader((folder / "kernel_details.csv").open()))
    assert [int(r["Step Id"]) for r in rows] == list(range(1, 11))
    assert all(float(r["Duration(us)"]) > 0 for r in rows)
    assert (folder / "trace_view.json").exists()


def test_r107_bench_table(lab, script):
    done = lab.run(script, "--bench")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[1] == f"Benchmark: {script.parent.name}"
    assert lines[2] == " Step  | Graph Mode (us)    | Eager (us)         |  Ratio"
    rule = "-------+--------------------+--------------------+---------"
    assert lines[3] == lines[14] == rule
    rows = lines[4:14] + [lines[15]]
    for label, row in zip([*map(str, range(1, 11)), "Avg"], rows):
        assert re.fullmatch(r" [ \dA][\dv][ \dg]   \| +\d+\.\d\d \| +\d+\.\d\d \| +\d+\.\d\d x", row), row
        assert row.split("|")[0].strip() == label
    assert (lab.tmp / "bench_eager_prof").is_dir()
    assert (lab.tmp / "bench_compiled_prof").is_dir()


def test_r84_r86_sums_and_ratio(tmp_path):
    from fuselab.repro import bench

    header = "Step Id,Name,Duration(us)\n"
    (tmp_path / "kernel_details.csv").write_text(header + "1,a,1.5\n1,b,2.5\n2,a,3.0\n")
    assert bench.step_sums(tmp_path) == [4.0, 3.0]
    lines = bench.table("k", [2.0, 4.0], [6.0, 4.0])
    assert lines[3].endswith("3.00 x")
    assert lines[-1].split("|")[0].strip() == "Avg"
    assert lines[-1].endswith("1.67 x")
    (tmp_path / "kernel_details.csv").write_text("Name,Duration(us)\na,1\n")
    with pytest.raises(fuselab.Error, match="Step Id.*it has Name, Duration"):
        bench.step_sums(tmp_path)


def test_r99_bench_missing_csv_message(tmp_path):
    from fuselab.repro import bench

    (tmp_path / "other").mkdir()
    with pytest.raises(FileNotFoundError, match=r"kernel_details.csv with 'Step Id' and 'Duration\(us\)'; it holds other"):
        bench.newest(tmp_path)


def test_seed_is_printed_and_changes_the_data(minimal, script):
    a, b = minimal.run(script, "--check", "--seed", "1"), minimal.run(script, "--check", "--seed", "2")
    assert a.code == b.code == 0
    assert "seed 1" in a.out.splitlines()[0]
    worst = [re.search(r"worst (.*)", x.out).group(1) for x in (a, b)]
    assert worst[0] != worst[1]
    assert re.search(r"worst (.*)", minimal.run(script, "--check", "--seed", "1").out).group(1) == worst[0]


def test_inputs_from_a_file(lab, minimal, script):
    """The file's values are used: with x0 = -x1 every result is 0; a wrong shape is a wrong call."""
    from fuselab.numerics import save
    from fuselab.repro.kernel import read_tensors

    x = torch.randn(8, 16)
    save(lab.tmp / "zero.safetensors", {"x0": x, "x1": -x})
    back = read_tensors(lab.tmp / "zero.safetensors")
    assert torch.equal(back["x0"], x)
    assert torch.equal(back["x1"], -x)
    done = lab.run(script, "--check", "--inputs", lab.tmp / "zero.safetensors")
    assert done.code == 0, done.err
    assert "both" in done.out or "torch=0" in done.out
    np.savez(lab.tmp / "zero.npz", x0=x.numpy(), x1=-x.numpy())
    torch.save({"x0": x, "x1": -x.t().contiguous().t()}, lab.tmp / "zero.pt")
    for other in ("zero.npz", "zero.pt"):  # every format that fuselab compare reads
        assert torch.equal(read_tensors(lab.tmp / other)["x1"], -x)
    save(lab.tmp / "wrong.safetensors", {"x0": torch.randn(8, 17)})
    assert lab.run(script, "--check", "--inputs", lab.tmp / "wrong.safetensors").code == 2
    (lab.tmp / "half.safetensors").write_bytes((lab.tmp / "zero.safetensors").read_bytes()[:100])
    assert lab.run(script, "--check", "--inputs", lab.tmp / "half.safetensors").code == 2


def test_r70_what_is_no_tensor_is_skipped(minimal, script):
    done = minimal.run(minimal.edited(script, "return (abs_1,)", "return (3,)"), "--check")
    assert done.code == 0, done.out + done.err
    assert done.out.splitlines()[1:] == ["output:abs skipped", "Precision check passed."]


def test_r116_argument_sets(minimal, script, lab):
    """Every argument of the call is a size with a hint or a tensor with a layout, with and without a precision context."""
    from fuselab.repro import kernels_of

    (kernel,) = kernels_of(fuselab.compile("graph g(B: size, x: f32[B, 3]) {\n  y = mul(x, 2)\n  return y\n}\n"), {"B": 5})
    alone = lab.tmp / "alone.py"
    assert kernel.benchmark(file_path=alone) is False
    for path in (script, alone):
        hints, buffers = literal(path, "SIZE_HINTS"), {b["name"]: b for b in literal(path, "PROFILE_BUFFERS")}
        calls = literal(path, "CALL_ARGUMENTS")
        assert {n for kind, n in calls if kind == "size"} <= set(hints)
        assert [n for kind, n in calls if kind == "tensor"] == list(buffers)
    assert literal(alone, "PROFILE_BUFFERS")[0]["shape"] == (5, 3)
    assert lab.run(alone, "--profile").code == 0


def test_r78_profile_goes_through_the_runtime(minimal, lab, script):
    """Only launches of the runtime are recorded: the rows are the kernel's, with its operands' sizes."""
    from fuselab import _core

    assert lab.run(script, "--profile").code == 0
    (folder,) = (lab.tmp / "profiling").iterdir()
    for row in _core.read_kernel_details(str(folder / "kernel_details.csv"))["rows"]:
        assert row["name"] == script.parent.name
        assert [o["sizes"] for o in row["inputs"] + row["outputs"]] == [[8, 16]] * 3


def test_r118_whole_loop(lab):
    """Made, profiled, checked, edited inside, checked and profiled again."""
    lab.compile(lambda x, y: (x + y).abs(), torch.ones(8, 16), torch.ones(8, 16))
    (kernel,) = lab.kernels()
    script = kernel / "benchmark.py"
    assert lab.run(script).code == lab.run(script, "--check").code == 0
    script.write_text(script.read_text().replace("%2 = add %0, %1", "%2 = add %1, %0"))
    for mode in ("--check", "--profile"):
        done = lab.run(script, mode, "--e2e")
        assert done.code == 0, done.out + done.err
    assert len(list((lab.tmp / "profiling").iterdir())) == 2
