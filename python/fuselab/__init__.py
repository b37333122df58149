"""fuselab: fused, JIT-compiled tensor kernels that explain and check themselves."""

import sys

from . import _core, ops
from ._core import DivisionByZero, Error, FuselabWarning, IndexRange, OutOfMemory, __version__, empty_cache, pool_stats
from .api import compile

__all__ = [
    "DivisionByZero",
    "Error",
    "FuselabWarning",
    "IndexRange",
    "OutOfMemory",
    "__version__",
    "compile",
    "empty_cache",
    "graphs",
    "harness_stats",
    "ops",
    "pool_stats",
]


def harness_stats():
    """Counts of this process: graphs, kernels, recompiles, fallbacks and their reasons, notes on sizes (PyTorch backend)."""
    stats = sys.modules.get("fuselab.torch.stats")
    if stats:
        return stats.harness_stats()
    counts = _core.counts()
    return {name: counts[name] for name in ("graphs", "kernels", "fallbacks")}


def graphs():
    """The compiled graphs of the PyTorch backend that are alive, oldest first: `.explain()`, `.kernels`."""
    stats = sys.modules.get("fuselab.torch.stats")
    return stats.compiled_graphs() if stats else []


if "torch" in sys.modules:
    from .torch_backend import register

    register()
