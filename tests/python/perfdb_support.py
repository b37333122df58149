"""What the tests of the performance database share."""
import pathlib
import subprocess

import pytest

from program import find_program

SHARED = pathlib.Path(__file__).resolve().parents[3] / "shared"


def fuselab(*args, check=True):
    """Runs the program; with `check` a failure is the test's."""
    program = find_program()
    if program is None:
        pytest.skip("the program fuselab is not built")
    out = subprocess.run([program, *args], capture_output=True, text=True, timeout=300, check=False)
    assert not check or out.returncode == 0, out.stderr
    return out


def shared(path):
    """A file of the reference data, which users need not have."""
    if not (SHARED / path).exists():
        pytest.skip(f"shared/{path} is not here")
    return SHARED / path
