"""A compiled graph's kernels as objects with a `benchmark` entry: each writes its own script, also when no debug folder was asked for."""
import pathlib

from .. import _core
from .spec import BenchmarkSpec, PrecisionContext, generate_benchmark_script


class CompiledKernel:
    """One distinct kernel of a compiled graph."""

    def __init__(self, core, index, hints):
        self._fields = _core.benchmark_spec(core, index, hints)
        self.name = self._fields["kernel_name"]

    def spec(self, nodes=None, precision=None):
        """What the script is made of. `nodes`: lines for the script's head in place of the graph's own."""
        fields = dict(self._fields)
        if nodes is not None:
            fields["node_summary"] = [str(n) for n in nodes]
        reason = "" if precision else "the graph came as text, so there is no PyTorch fragment; `fuselab repro` checks the kernel"
        return BenchmarkSpec(**fields, precision=precision, no_precision_reason=reason)

    def benchmark(self, nodes=None, file_path=None, precision: PrecisionContext | None = None):
        """Writes the kernel's script (default: `<kernel>/benchmark.py`); True when it has a precision context, so `--check` too."""
        return generate_benchmark_script(self.spec(nodes, precision), file_path or pathlib.Path(self.name) / "benchmark.py")


def kernels_of(compiled, hints=None):
    """The kernels of what `fuselab.compile` gave (of each signature seen), or of a compiled graph. `hints`: sizes by symbol."""
    traced = getattr(compiled, "graphs", None)
    cores = [getattr(compiled, "core", compiled)] if traced is None else [entry.core for entry in traced.values()]
    return [CompiledKernel(core, k, hints or {}) for core in cores for k in range(len(core.kernels))]
