"""Checks inside the model: every kernel's first call beside eager and float64 on the model's own data, and captured inputs.

`torch.compile(..., options={"check_kernels": True})` or FUSELAB_CHECK_KERNELS=1 (`"stop"`: the first failure raises). A kernel that
fails leaves its debug folder with the inputs it had; `benchmark.py --check --inputs inputs.safetensors` in it repeats the failure.
`capture_inputs=N` saves the inputs of the first N calls of every kernel, checked or not.
"""

import os
import warnings
from typing import Any

import torch

from .. import Error, FuselabWarning, _core
from ..repro import debug
from .options import for_core

INPUTS = "inputs.safetensors"


class Observed:
    """Step numbers of a compiled graph's kernels, and what PyTorch knows of each."""

    def __init__(self, core, record, options):
        self.core, self.record, self.options = core, record, options
        self.steps = core.explain()["steps"]
        self._contexts = None

    def kernel(self, step):
        return self.steps[step]

    def context(self, step):
        """The precision context of the step's kernel (a dictionary), or the reason why there is none."""
        if self._contexts is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FuselabWarning)
                self._contexts = debug.contexts(self.core, self.record)
        return self._contexts.get(self.steps[step]["name"], "it is not in the record")

    def parameter_names(self, step):
        return debug.input_names(self.steps[step]["fragment"])


def verdicts(observed, step, inputs, outputs, sizes):
    """[(output, verdict)] of one launch: against eager's fragment on the same data, and against fp64's bound."""
    at = observed.kernel(step)
    precision = observed.options.get("precision", "block")
    text = _core.concrete_graph(at["fragment"], sizes)
    kept = bool(_core.kept_operators(for_core(observed.options)))  # with exemptions, where values are rounded is not known
    references = _core.fp64_reference(text, inputs, precision=precision, any_borders=kept)
    expected = _eager(observed.context(step), inputs) or _core.rounded(text, inputs)
    names = at["outputs"]
    return [(name, _core.judge(e, got, r, None, name, "precision"))
            for name, e, got, r in zip(names, expected, outputs, references, strict=True)]


def _eager(context, inputs):
    """The fragment in PyTorch, or None when it cannot be run alone."""
    if not isinstance(context, dict) or context["extra"]:
        return None
    scope: dict[str, Any] = {"torch": torch}
    exec(context["eager_fn_code"], scope)
    with torch.no_grad():
        results = scope["eager_fn"](*[inputs[i].clone() for _, i in context["parameters"]])
    return [t.detach() for t in results]


class Checker:
    """Watches one compiled graph."""

    def __init__(self, core, graph, folder):
        record, options = graph.record, graph.options
        self.observed = Observed(core, record, options)
        self.where: tuple[str, int] = debug.current or (options.get("debug_dir") or "fuselab_debug", debug.next_number())
        self.write = lambda: debug.write(core, record, graph.text, graph.specs, graph.finish, options, where=self.where)
        self.check = options.get("check_kernels", False)
        self.capture = options.get("capture_inputs", 0)
        self.checked, self.captured, self.folder = set(), {}, folder

    def wants(self, step):
        name = self.observed.kernel(step)["name"]
        return bool(self.check) and name not in self.checked or self.captured.get(name, 0) < self.capture

    def seen(self, step, inputs, outputs, sizes):
        name = self.observed.kernel(step)["name"]
        number = self.captured.get(name, 0)
        if number < self.capture:
            self.captured[name] = number + 1
            self.save(step, inputs, f"inputs_{number}.safetensors")
        if self.check and name not in self.checked:
            self.checked.add(name)
            self.judge(step, inputs, outputs, sizes)

    def judge(self, step, inputs, outputs, sizes):
        name = self.observed.kernel(step)["name"]
        found = verdicts(self.observed, step, inputs, outputs, sizes)
        counts["checked"] += 1
        bad = [v["line"] for _, v in found if not v["passed"]]
        if not bad:
            return
        counts["failed"] += 1
        path = self.save(step, inputs, INPUTS)
        where = f"; its folder with these inputs is {path}" if path else ""
        text = f"{name} failed its check on the model's own data: {'; '.join(bad)}{where}"
        if self.check == "stop":
            raise Error("check.failed", text)
        warnings.warn(FuselabWarning(text), stacklevel=2)

    def save(self, step, inputs, file):
        """Writes the kernel's folder if it is not there, and the inputs into it. Returns the folder, or None with a warning."""
        if self.folder is None:
            self.folder = self.write()
        if self.folder is None:
            return None
        path = os.path.join(self.folder, self.observed.kernel(step)["name"])
        try:
            _core.write_safetensors(os.path.join(path, file), self.observed.parameter_names(step), inputs)
        except Error as e:
            warnings.warn(FuselabWarning(str(e)), stacklevel=2)
            return None
        return path


counts = {"checked": 0, "failed": 0}  # kernels, in this process


def wanted(options):
    return bool(options.get("check_kernels") or options.get("capture_inputs"))


def attach(graph, core, folder):
    """Puts a watcher on a compiled graph that has a record; `folder` is its debug folder, if there is one already."""
    checker = Checker(core, graph, folder)
    core.watch(checker.wants, checker.seen)
