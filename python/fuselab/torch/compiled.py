"""One compiled AOT graph: what the AOT cache stores and what is called.

`CompiledGraph` is an OutputCode, PyTorch's interface for cacheable results. It keeps graph text, extern specs and the text
of the finishing function, all plain data; the callable is built from them, in this process and after loading from the cache.
"""
import contextlib
import dataclasses
import logging
from typing import Any

import torch
from torch._inductor.output_code import OutputCode

from ..repro import debug
from . import checking, externs, stats
from .options import for_core

log = logging.getLogger("fuselab")


@dataclasses.dataclass
class CompiledGraph(OutputCode):
    text: str
    specs: list
    finish: str | None        # source of the finishing function; None: the core's results as they are
    options: dict
    counts: dict
    direct: bool = False      # may be called without AOTAutograd's runtime wrapper
    record: Any = None        # with debugging on: what the debug folder needs of the FX graph
    call: Any = None          # the callable: positional arguments in, tuple out

    def __post_init__(self):
        self._boxed_call = True  # on the instance: AOTAutograd's wrappers copy the dictionary
        self._time_taken_ns = 0  # read when an entry is loaded

    def __call__(self, inputs):
        args = tuple(inputs)
        if isinstance(inputs, list):
            inputs.clear()  # boxed convention: what the caller gave may be freed as early as possible
        return self.call(*args)

    def build(self):
        """Makes the callable; throws what the compiler throws."""
        core = None
        if self.text:
            from .. import _core

            options = for_core(self.options) | ({"dumps": True} if self.record is not None else {})
            core = _core.compile_graph(self.text, options, externs.build(self.specs))
            folder = None
            if self.record is not None and debug.current:
                folder = debug.write(core, self.record, self.text, self.specs, self.finish, self.options)
            if self.record is not None and _watcher is not None:
                _watcher(self, core, folder)
            elif self.record is not None and checking.wanted(self.options):
                checking.attach(self, core, folder)
            self.counts["kernels"] = kernel_count(core)
            stats.keep(core)
        self.call = core if self.finish is None else finisher(self.finish, core)
        stats.record(self.counts)
        return self

    # ------------------------------------------------------------- OutputCode

    def prepare_for_serialization(self):
        self.call = None

    def post_compile(self, example_inputs, constants, graph_kwargs):
        if self.call is None:
            self.build()
            latest.append(self)

    def set_triton_bundle(self, triton_bundle):
        pass


# Graphs loaded from the cache by the call in progress: the driver takes the callable from here when it may be called directly.
latest = []


_watcher = None


@contextlib.contextmanager
def watching(attach):
    """attach(graph, core, debug folder or None) is called with every graph that is built inside."""
    global _watcher
    before, _watcher = _watcher, attach
    try:
        yield
    finally:
        _watcher = before


def finisher(source, core):
    scope: dict[str, Any] = {"torch": torch}
    exec(source, scope)
    finish = scope["finish"]
    return lambda *args: finish(core, *args)


def kernel_count(core):
    from .. import _core

    return _core.explain(core)["counts"]["distinct_kernels"]


@dataclasses.dataclass
class FallbackGraph(OutputCode):
    """A graph that runs in PyTorch, operator by operator, because of `reason`. Not cached."""

    call: Any
    reason: str

    def __post_init__(self):
        self._boxed_call = True

    def __call__(self, inputs):
        args = tuple(inputs)
        if isinstance(inputs, list):
            inputs.clear()
        return self.call(*args)

    def prepare_for_serialization(self):
        from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache

        raise BypassAOTAutogradCache(f"runs in PyTorch: {self.reason}")

    def post_compile(self, example_inputs, constants, graph_kwargs):
        pass

    def set_triton_bundle(self, triton_bundle):
        pass


def fall_back(gm, reason):
    log.info("graph runs in PyTorch: %s", reason)
    stats.record({"fallbacks": {f"whole graph  # reason: {reason}": 1}})
    return FallbackGraph(gm.forward, reason)
