"""The installed package: its version, its entry point, its program."""

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def declared_version() -> str:
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"set\(FUSELAB_VERSION ([0-9.]+)\)", text).group(1)


def test_module_has_the_declared_version():
    from fuselab import _core

    assert _core.__version__ == declared_version()


def test_torch_finds_the_backend_without_import():
    points = importlib.metadata.entry_points(group="torch_dynamo_backends")
    if not any(p.name == "fuselab" for p in points):
        import pytest

        pytest.skip("fuselab is not installed here (it is run from the source tree)")
    (point,) = [p for p in points if p.name == "fuselab"]
    assert point.value == "fuselab.torch_backend:fuselab_backend"
    text = "import torch; print(torch.compile(lambda x: (x + 1).abs(), backend='fuselab')(torch.full((3,), -3.0)).tolist())"
    for imports in ("", "import torch, fuselab; ", "import fuselab, torch; "):
        done = subprocess.run([sys.executable, "-c", imports + text], capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, imports + done.stderr
        assert done.stdout.strip() == "[2.0, 2.0, 2.0]"


def test_import_orders_live_together():
    """clang's and PyTorch's libraries in one process, in either order."""
    for order in ("import fuselab._core, torch", "import torch, fuselab._core"):
        done = subprocess.run(
            [sys.executable, "-c", f"{order}; print(torch.ones(2).sum().item())"], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "2.0"
