"""Counts of what was compiled and what was left to PyTorch, with the reasons; printed at exit when asked for."""
import atexit
import collections
import os
import weakref

graphs = 0        # graphs given to the backend (a forward and a backward count one each)
kernels = 0       # kernels in the compiled ones
fallbacks = 0     # operators without a row, and whole graphs, that run in PyTorch
externs = 0       # operators that are extern by design (matmul, convolution, ...)
lowered = collections.Counter()   # "aten.add.Tensor(f32[4], f32[4]) -> f32[4]" -> times
_alive = []       # weak references to the compiled graphs
reasons = collections.Counter()   # "aten.sort.default(...) -> ...  # reason: ..." -> times


def harness_stats():
    """What benchmark programs read: counts so far in this process."""
    return dict(graphs=graphs, kernels=kernels, fallbacks=fallbacks, externs=externs,
                fallback_reasons=dict(reasons.most_common()))


def keep(core):
    """Remembers a compiled graph for as long as something else holds it."""
    _alive.append(weakref.ref(core, _alive.remove))


def compiled_graphs():
    return [core for core in (ref() for ref in list(_alive)) if core is not None]


def record(counts):
    """Adds the counts of one compiled graph (see lowering.Lowered.counts)."""
    global graphs, kernels, fallbacks, externs
    graphs += 1
    kernels += counts.get("kernels", 0)
    fallbacks += sum(counts.get("fallbacks", {}).values())
    externs += sum(counts.get("externs", {}).values())
    lowered.update(counts.get("lowered", {}))
    reasons.update(counts.get("fallbacks", {}))


def reset():
    global graphs, kernels, fallbacks, externs
    graphs = kernels = fallbacks = externs = 0
    lowered.clear()
    reasons.clear()


def report():
    """`Lowered 12x ...` and `Fallback 3x ... # reason: ...`, most frequent first."""
    lines = [f"Lowered {n}x {what}" for what, n in lowered.most_common()]
    lines += [f"Fallback {n}x {what}" for what, n in reasons.most_common()]
    return "\n".join(lines)


@atexit.register
def _at_exit():
    if os.environ.get("FUSELAB_REPORT") == "1" and (lowered or reasons):
        print(report())
