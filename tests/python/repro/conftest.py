"""Makes debug folders, and runs their scripts: in this process, which is fast, or in one of their own, as a user would."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

PACKAGE = pathlib.Path(__file__).resolve().parents[3] / "python"


def environment(tmp, **more):
    """This process's, without what would change scripts; caches below the test's folder."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FUSELAB_", "AUTOFUSE_", "TORCHINDUCTOR_", "TORCH_COMPILE"))}
    env["FUSELAB_CACHE_DIR"] = str(tmp / "cache")
    env["TORCHINDUCTOR_CACHE_DIR"] = str(tmp / "torch_cache")
    if (PACKAGE / "fuselab" / "_core.py").exists() or list((PACKAGE / "fuselab").glob("_core*.so")):
        env["PYTHONPATH"] = str(PACKAGE)
    return {**env, **more}


def python(args, tmp, cwd=None, **more):
    done = subprocess.run(
        [sys.executable, *map(str, args)], cwd=cwd or tmp, env=environment(tmp, **more), capture_output=True, text=True, timeout=300,
        check=False,
    )
    return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)


class Lab:
    """One folder: programs that make debug folders in it, and the scripts they left."""

    def __init__(self, tmp):
        self.tmp = tmp

    def make(self, program, **env):
        """Runs a program with debugging on in a process of its own; returns what it printed."""
        path = self.tmp / "program.py"
        path.write_text("import torch, fuselab\n" + textwrap.dedent(program), encoding="utf-8")
        flags = {"AUTOFUSE_DFX_FLAGS": "--codegen_compile_debug=true", **env}
        done = python([path], self.tmp, **flags)
        assert done.code == 0, done.err
        return done

    def compile(self, fn, *inputs, dynamic=None, **options):
        """Compiles and calls in this process, with the debug folder here; returns the results."""
        import torch

        torch._dynamo.reset()
        options.setdefault("debug_dir", str(self.tmp / "fuselab_debug"))
        return torch.compile(fn, backend="fuselab", options=options, dynamic=dynamic)(*inputs)

    def models(self, root="fuselab_debug"):
        return sorted((self.tmp / root).glob("run_*/model__*"))

    def kernels(self, root="fuselab_debug"):
        return sorted((self.tmp / root).glob("run_*/model__*/autofused_*"))

    def run_alone(self, script, *args, cwd=None, **env):
        """The script in a process of its own."""
        return python([script, *args], self.tmp, cwd, **env)

    def run(self, script, *args):
        """The script in this process; what it does to the environment is undone."""
        from fuselab.repro.runner import main

        out, err, before, folder = io.StringIO(), io.StringIO(), dict(os.environ), pathlib.Path.cwd()
        scope = {"__name__": "benchmark", "__file__": str(script)}
        try:
            os.chdir(self.tmp)
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), scope)
                code = main(scope, [str(a) for a in args])
        finally:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(before)
        return SimpleNamespace(code=code, out=out.getvalue(), err=err.getvalue())

    def edited(self, script, old, new, name="edited.py"):
        """A copy of a script with every `old` replaced; it must be there."""
        text = script.read_text(encoding="utf-8")
        assert old in text
        path = self.tmp / name
        path.write_text(text.replace(old, new), encoding="utf-8")
        return path


@pytest.fixture
def lab(tmp_path):
    return Lab(tmp_path)


@pytest.fixture(scope="session")
def new_lab(tmp_path_factory):
    """name -> a lab in a folder of its own."""
    return lambda name: Lab(tmp_path_factory.mktemp(name))


@pytest.fixture(scope="session")
def minimal(new_lab):
    """(x + y).abs() on [8, 16]: the folder that most tests look at. Do not change it."""
    made = new_lab("minimal")
    made.make(
        """
        model = torch.compile(lambda x, y: (x + y).abs(), backend="fuselab")
        x, y = torch.randn(8, 16), torch.randn(8, 16)
        assert torch.equal(model(x, y), (x + y).abs())
        """
    )
    return made
