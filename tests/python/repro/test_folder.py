"""The debug folder: when it is written, what is in it, and that a model never suffers from it."""

import ast
import csv
import json
import os
import re
import stat
import tempfile

import pytest

torch = pytest.importorskip("torch")

import fuselab

NOBODY = 65534  # the user that owns nothing
ADD_ABS = """
model = torch.compile(lambda x, y: (x + y).abs(), backend="fuselab"{options})
x, y = torch.randn(8, 16), torch.randn(8, 16)
assert torch.equal(model(x, y), (x + y).abs())
"""
TREE = """\
run_T-pid_P/model__0_inference_0.0/autofused_elemwise_add_abs_H/artifacts.json
run_T-pid_P/model__0_inference_0.0/autofused_elemwise_add_abs_H/benchmark.py
run_T-pid_P/model__0_inference_0.0/autofused_elemwise_add_abs_H/fragment.graph
run_T-pid_P/model__0_inference_0.0/autofused_elemwise_add_abs_H/graph.svg
run_T-pid_P/model__0_inference_0.0/autofused_elemwise_add_abs_H/kernel.cpp
run_T-pid_P/model__0_inference_0.0/autofused_elemwise_add_abs_H/kernel.ir
run_T-pid_P/model__0_inference_0.0/fuse_summary.csv
run_T-pid_P/model__0_inference_0.0/graph.txt
run_T-pid_P/model__0_inference_0.0/ir_post_fusion.txt
run_T-pid_P/model__0_inference_0.0/ir_pre_fusion.txt
run_T-pid_P/model__0_inference_0.0/output_code.py
"""


def tree(root):
    text = "".join(f"{p.relative_to(root).as_posix()}\n" for p in sorted(root.rglob("*")) if p.is_file())
    text = re.sub(r"run_\d{4}(_\d\d){5}_\d{6}-pid_\d+", "run_T-pid_P", text)
    return re.sub(r"add_abs_[0-9a-f]{8}", "add_abs_H", text)


def test_r104_tree_golden(minimal):
    assert tree(minimal.tmp / "fuselab_debug") == TREE


def test_r20_artifacts(minimal):
    (kernel,) = minimal.kernels()
    artifacts = json.loads((kernel / "artifacts.json").read_text())
    for key in ("name", "target", "wrapper", "tiling_def", "host_impl", "device_impl", "vector_core_num", "ai_core_num", "hash"):
        assert key in artifacts
    assert artifacts["name"] == kernel.name
    text = artifacts["tiling_def"] + artifacts["host_impl"] + artifacts["device_impl"]
    assert (kernel / "kernel.cpp").read_text() == text
    assert f"{kernel.name}_run" in artifacts["device_impl"]


def test_summary_counts_bytes(minimal):
    """[8, 16] f32 is 512 bytes: fused reads two and writes one, one by one reads three and writes two."""
    (model,) = minimal.models()
    (row,) = csv.DictReader((model / "fuse_summary.csv").open())
    assert (row["Kind"], row["Operators"]) == ("elemwise", "add;abs")
    assert [int(row[k]) for k in ("Bytes Read", "Bytes Written", "Unfused Bytes Read", "Unfused Bytes Written")] == [
        1024,
        512,
        1536,
        1024,
    ]


def test_every_python_file_parses(minimal):
    (model,) = minimal.models()
    for path in model.rglob("*.py"):
        ast.parse(path.read_text())


def test_output_code_runs(minimal):
    (model,) = minimal.models()
    scope = {}
    exec((model / "output_code.py").read_text(), scope)
    x, y = torch.randn(8, 16), torch.randn(8, 16)
    (result,) = scope["call"](x, y)
    assert torch.equal(result, (x + y).abs())


def test_r105_cache_hit_complete(lab):
    """The second process finds everything in the caches; its folder is complete too, and the first one's is untouched."""
    lab.make(ADD_ABS.format(options=""))
    (first,) = lab.models()
    before = {p: p.read_bytes() for p in first.rglob("*") if p.is_file()}
    done = lab.make(
        ADD_ABS.format(options="")
        + """
from torch._dynamo.utils import counters
print(counters["aot_autograd"]["autograd_cache_hit"], fuselab._core.counts()["from_cache"])
"""
    )
    assert done.out.split() == ["1", "1"]
    runs = sorted((lab.tmp / "fuselab_debug").iterdir())
    assert len(runs) == 2
    assert tree(lab.tmp / "fuselab_debug") == TREE + TREE
    assert before == {p: p.read_bytes() for p in first.rglob("*") if p.is_file()}


def test_r101_folder_by_torch_compile_debug(lab, monkeypatch):
    monkeypatch.setenv("TORCH_COMPILE_DEBUG", "1")
    monkeypatch.chdir(lab.tmp)
    lab.compile(torch.neg, torch.ones(3), debug_dir=None)
    assert (lab.kernels("torch_compile_debug")[0] / "benchmark.py").exists()


def test_folder_by_flag(lab, monkeypatch):
    monkeypatch.setenv("AUTOFUSE_DFX_FLAGS", f"--codegen_compile_debug=true;--debug_dir={lab.tmp / 'theirs'}")
    lab.compile(torch.neg, torch.ones(3), debug_dir=None)
    assert len(lab.kernels("theirs")) == 1


def test_no_folder_unless_asked(lab, monkeypatch):
    monkeypatch.chdir(lab.tmp)
    lab.compile(torch.neg, torch.ones(3), debug_dir=None)
    assert list(lab.tmp.iterdir()) == []


def test_folder_that_cannot_be_written(lab):
    """A file stands where the folder should be: one warning with the reason, and the model runs."""
    (lab.tmp / "taken").write_text("a file")
    with pytest.warns(fuselab.FuselabWarning, match="the debug folder cannot be written") as caught:
        result = lab.compile(torch.neg, torch.ones(3), debug_dir=str(lab.tmp / "taken"))
    assert torch.equal(result, -torch.ones(3))
    assert len([w for w in caught if "debug folder" in str(w.message)]) == 1
    assert (lab.tmp / "taken").read_text() == "a file"


def test_folder_read_only(lab):
    """Root may write everywhere, so root becomes another user for the call."""
    lab.compile(torch.neg, torch.ones(5))  # what the front end imports late is read as the user who may
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, stat.S_IRUSR | stat.S_IXUSR | stat.S_IROTH | stat.S_IXOTH)
        user = os.geteuid()
        if user == 0:
            os.seteuid(NOBODY)
        try:
            with pytest.warns(fuselab.FuselabWarning, match="the debug folder cannot be written"):
                result = lab.compile(torch.neg, torch.ones(3), debug_dir=folder)
        finally:
            os.seteuid(user)
        assert torch.equal(result, -torch.ones(3))
        assert os.listdir(folder) == []


def test_training_has_a_forward_and_a_backward_folder(lab):
    x = torch.randn(8, 16, requires_grad=True)
    lab.compile(lambda x: (x * 2).tanh().sum(), x).backward()
    names = [re.sub(r"\d+", "N", p.name) for p in lab.models()]
    assert names == ["model__N_backward_N.N", "model__N_forward_N.N"]


def test_r45_r115_dynamic_shapes_compile_once(lab):
    """A second shape compiles nothing new with debugging on, and the script has numbers."""
    from fuselab.torch_backend import fuselab_backend

    frames = []

    def backend(gm, inputs):
        frames.append(gm)
        return fuselab_backend(gm, inputs, options={"debug_dir": str(lab.tmp / "fuselab_debug")})

    torch._dynamo.reset()
    model = torch.compile(lambda x, y: (x + y).abs().sum(1), backend=backend, dynamic=True)
    for n, k in ((8, 16), (3, 5), (33, 7)):
        x, y = torch.randn(n, k), torch.randn(n, k)
        torch.testing.assert_close(model(x, y), (x + y).abs().sum(1))
    assert len(frames) == 1
    assert len(lab.models()) == 1
    (kernel,) = lab.kernels()
    assert '"shape": (8, 16), "stride": (16, 1)' in (kernel / "benchmark.py").read_text()
    assert lab.run(kernel / "benchmark.py", "--check").code == 0


def test_sizes_known_only_as_a_product(lab):
    """A kernel may see B*T without B and T: alone it is called with both."""
    lab.compile(lambda x, w: torch.nn.functional.gelu((x @ w).view(x.shape[0] * 2, -1) + 1), torch.randn(6, 8), torch.randn(8, 4), dynamic=True)
    for kernel in lab.kernels():
        assert lab.run(kernel / "benchmark.py", "--check").code == 0


def test_compiler_failure_leaves_a_folder(lab, monkeypatch):
    """The compiler itself fails: the model runs in PyTorch, and the warning names the folder though none was asked for."""
    from fuselab.torch import compiled

    def refuse(self):
        raise fuselab.Error("jit.compile", "clang: no such thing")

    monkeypatch.chdir(lab.tmp)
    monkeypatch.setattr(compiled.CompiledGraph, "build", refuse)
    with pytest.warns(fuselab.FuselabWarning, match=r"compiling failed \(clang: no such thing\); the debug folder is .*model__"):
        result = lab.compile(torch.neg, torch.ones(3), debug_dir=None)
    assert torch.equal(result, -torch.ones(3))
    (kernel,) = lab.kernels()
    assert sorted(p.name for p in kernel.iterdir()) == ["artifacts.json", "fragment.graph", "kernel.cpp", "kernel.ir"]
