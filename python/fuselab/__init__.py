"""fuselab: fused, JIT-compiled tensor kernels that explain and check themselves."""
import sys

from ._core import Error, __version__

__all__ = ["Error", "__version__", "harness_stats"]


def harness_stats():
    """Counts of this process: graphs, kernels, fallbacks and their reasons (PyTorch backend)."""
    stats = sys.modules.get("fuselab.torch.stats")
    return stats.harness_stats() if stats else dict(graphs=0, kernels=0, fallbacks=0)


if "torch" in sys.modules:
    from .torch_backend import register

    register()
