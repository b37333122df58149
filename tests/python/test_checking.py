"""Checks inside the model, captured inputs, and the first kernel that leaves eager."""

import json
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import fuselab
import fuselab.torch_backend
from fuselab import debug, numerics
from fuselab.torch import checking


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    checking.counts.update(checked=0, failed=0)
    yield
    torch._dynamo.reset()


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4), torch.nn.Softmax(-1)).eval()


def test_every_kernel_is_checked_once():
    fast = torch.compile(model(), backend="fuselab", options={"check_kernels": True})
    with torch.no_grad():
        for _ in range(3):
            fast(torch.randn(8, 16))
    assert checking.counts == {"checked": 2, "failed": 0}
    assert not list(pathlib.Path().glob("fuselab_debug*"))


def test_training_and_dynamic_sizes():
    fast = torch.compile(model(), backend="fuselab", dynamic=True, options={"check_kernels": "stop"})
    for n in (3, 8):
        fast(torch.randn(n, 16)).sum().backward()
    assert checking.counts["checked"] >= 3 and checking.counts["failed"] == 0


def test_the_environment_asks_too(monkeypatch):
    monkeypatch.setenv("FUSELAB_CHECK_KERNELS", "1")
    torch.compile(torch.tanh, backend="fuselab")(torch.randn(5))
    assert checking.counts["checked"] == 1


def broken(monkeypatch):
    """A checker that sees results of a wrong kernel: scaled by 1.01."""
    true = checking.Checker.judge

    def judge(self, step, inputs, outputs, sizes):
        return true(self, step, inputs, [t * 1.01 if t.is_floating_point() else t for t in outputs], sizes)

    monkeypatch.setattr(checking.Checker, "judge", judge)


def test_a_failure_leaves_a_folder_with_its_inputs(monkeypatch, tmp_path):
    broken(monkeypatch)
    x = torch.randn(6, 7) * 3
    fast = torch.compile(lambda x: (x + 1).exp().sum(-1), backend="fuselab", options={"check_kernels": True})
    with pytest.warns(fuselab.FuselabWarning, match="failed its check on the model's own data.*inputs is") as caught:
        fast(x)
    folder = pathlib.Path(str(next(w for w in caught if "failed its check" in str(w.message)).message).rsplit(" is ", 1)[1])
    assert (folder / "benchmark.py").exists()
    stored = json.loads(numerics.compare_files(str(folder / "inputs.safetensors"), str(folder / "inputs.safetensors")).json())
    assert stored["compared"] == 1
    done = subprocess.run([sys.executable, "benchmark.py", "--check", "--inputs", "inputs.safetensors"], cwd=folder, capture_output=True,
                          text=True, check=False)  # the kernel itself is right
    assert done.returncode == 0, done.stdout + done.stderr


def test_stop_raises(monkeypatch):
    broken(monkeypatch)
    fast = torch.compile(torch.tanh, backend="fuselab", options={"check_kernels": "stop"})
    with pytest.raises(fuselab.Error) as e:
        fast(torch.randn(100))
    assert e.value.code == "check.failed"


def test_captured_inputs(tmp_path):
    fast = torch.compile(lambda x, y: (x - y).abs().sum(0), backend="fuselab", options={"capture_inputs": 2, "debug_dir": "here"})
    given = [(torch.randn(4, 5), torch.randn(4, 5)) for _ in range(3)]
    for x, y in given:
        fast(x, y)
    (kernel,) = pathlib.Path("here").glob("run_*/model__*/autofused_*")
    files = sorted(p.name for p in kernel.glob("inputs_*.safetensors"))
    assert files == ["inputs_0.safetensors", "inputs_1.safetensors"]
    from safetensors.torch import load_file

    for n, (x, y) in enumerate(given[:2]):
        tensors = list(load_file(kernel / f"inputs_{n}.safetensors").values())
        assert any(torch.equal(t, x) for t in tensors) and any(torch.equal(t, y) for t in tensors)


@pytest.mark.parametrize("options", [{"check_kernels": "always"}, {"capture_inputs": -1}, {"capture_inputs": True}])
def test_wrong_options(options):
    with pytest.raises(Exception, match="option (check_kernels|capture_inputs) is"):
        torch.compile(torch.tanh, backend="fuselab", options=options)(torch.randn(3))


# ---- first_divergence ---------------------------------------------------------------------------------------------------


class Block(torch.nn.Module):
    def __init__(self, width, factor=1.0):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(width), torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)
        self.factor = factor

    def forward(self, x):
        y = self.down(torch.nn.functional.gelu(self.up(self.norm(x))))
        if torch.compiler.is_compiling():
            y = y * self.factor  # the planted fault: what is compiled is not what eager runs
        return x + y


class Layers(torch.nn.Module):
    def __init__(self, count, bad=None, fault=1.001):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList(Block(32, fault if i == bad else 1.0) for i in range(count))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@pytest.mark.parametrize("bad", [0, 7, 11])
def test_a_planted_fault_is_found_in_its_layer(bad):
    found = debug.first_divergence(Layers(12, bad), (torch.randn(4, 32),))
    assert found is not None and found.modules[0] == f"layers.{bad}", found
    assert found.kernel.startswith("autofused_") and 1e-4 < found.error < 1e-2
    assert (pathlib.Path(found.folder) / "inputs.safetensors").exists() and (pathlib.Path(found.folder) / "benchmark.py").exists()
    assert f"layers.{bad}" in str(found)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_fault_no_divergence(dtype):
    torch.manual_seed(1)
    assert debug.first_divergence(Layers(12).to(dtype), (torch.randn(4, 32).to(dtype),)) is None


def test_state_is_left_as_it_was():
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    before = {k: v.clone() for k, v in net.state_dict().items()}
    x = torch.randn(8, 4)
    kept = x.clone()
    assert debug.first_divergence(net, (x,)) is None
    assert torch.equal(x, kept) and all(torch.equal(v, before[k]) for k, v in net.state_dict().items())


def test_a_kernel_that_leaves_its_bound_is_found(monkeypatch):
    true = checking.verdicts

    def wrong(observed, step, inputs, outputs, sizes):
        if "softmax" in observed.kernel(step)["name"]:
            outputs = [t * 1.0001 for t in outputs]
        return true(observed, step, inputs, outputs, sizes)

    monkeypatch.setattr(checking, "verdicts", wrong)
    found = debug.first_divergence(model(), (torch.randn(8, 16),))
    assert found is not None and "softmax" in found.kernel and "bound" in found.reason
