"""Every kernel of a model of GPT-2-small's width, inference and a training step: its script checks, times and profiles it, and finds an
edited IR. Two layers: the kernels of the other ten are the same ones."""

import csv
import pathlib
import re
import sys

import pytest

torch = pytest.importorskip("torch")

import fuselab  # noqa: F401  registers the backend

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "examples"))
from gpt2 import LanguageModel


@pytest.fixture(scope="module")
def folders(new_lab):
    """Distinct kernels of both, and the lab they are in."""
    lab = new_lab("language_model")
    torch.manual_seed(0)
    model = LanguageModel(layers=2, words=1000, context=64)
    ids = torch.randint(0, 1000, (2, 32))
    with torch.no_grad():
        lab.compile(model, ids)

    def step(ids):
        logits = model(ids[:, :-1])
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())

    lab.compile(step, ids).backward()
    kernels = {}
    for folder in lab.kernels():
        kernels.setdefault(folder.name, folder)
    kinds = {m.name.split("_")[3] for m in lab.models()}
    assert kinds == {"inference", "forward", "backward"}, kinds
    assert len(kernels) >= 12
    return lab, kernels


def test_every_kernel_passes_its_check(folders):
    lab, kernels = folders
    for name, folder in kernels.items():
        done = lab.run(folder / "benchmark.py", "--check")
        assert done.code == 0, f"{name}\n{done.out}{done.err}"
        assert done.out.rstrip().endswith("Precision check passed."), name


def test_every_kernel_has_a_table(folders):
    lab, kernels = folders
    for name, folder in kernels.items():
        done = lab.run(folder / "benchmark.py", "--bench")
        assert done.code == 0, f"{name}\n{done.out}{done.err}"
        lines = done.out.splitlines()
        assert lines[1] == f"Benchmark: {name}"
        assert len([line for line in lines if re.match(r" +(\d+|Avg) +\|", line)]) == 11
        assert "outputs: right before and after the timing" in lines


def test_every_kernel_is_profiled(folders):
    lab, kernels = folders
    for name, folder in kernels.items():
        done = lab.run(folder / "benchmark.py")
        assert done.code == 0, f"{name}\n{done.out}{done.err}"
        (line,) = [line for line in done.out.splitlines() if line.startswith("profile: ")]
        with open(lab.tmp / line.split("written to ")[1] / "kernel_details.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [(r["Name"], r["Step Id"]) for r in rows] == [(name, str(s)) for s in range(1, 11)]  # a row per launch


def test_gelu_edited_to_relu_is_found(folders):
    lab, kernels = folders
    with_gelu = [f for n, f in kernels.items() if re.search(r"= gelu\w* %", (f / "kernel.ir").read_text())]
    assert with_gelu
    for folder in with_gelu:
        script = folder / "benchmark.py"
        text = script.read_text()
        head, ir = text.split("KERNEL_IR = r'''")
        edited = lab.tmp / "edited.py"
        edited.write_text(head + "KERNEL_IR = r'''" + re.sub(r"= gelu\w* %", "= relu %", ir))
        done = lab.run(edited, "--check", "--e2e")
        assert done.code == 1, done.out
        assert re.search(r"^output:\w+ artifact FAILED: ", done.out, re.MULTILINE)
        assert re.search(r"^Precision check failed: \w+", done.out, re.MULTILINE)
