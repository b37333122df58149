"""Counts of what was compiled and what was left to PyTorch, with the reasons; printed at exit when asked for."""
import atexit
import collections
import os
import weakref

import torch

graphs = 0        # graphs given to the backend (a forward and a backward count one each)
kernels = 0       # kernels in the compiled ones
fallbacks = 0     # operators without a row, and whole graphs, that run in PyTorch
externs = 0       # operators that are extern by design (matmul, convolution, ...)
recompiles = 0    # calls of the backend for code that Dynamo had compiled before, for other sizes, types or values
lowered = collections.Counter()   # "aten.add.Tensor(f32[4], f32[4]) -> f32[4]" -> times
_alive = []       # weak references to the compiled graphs
reasons = collections.Counter()   # "aten.sort.default(...) -> ...  # reason: ..." -> times
notes = collections.Counter()     # "x[2, 1]: size 1 of dimension 1 is compiled as a constant; ..." -> times


def harness_stats():
    """What benchmark programs read: counts so far in this process."""
    return dict(graphs=graphs, kernels=kernels, fallbacks=fallbacks, externs=externs, recompiles=recompiles,
                fallback_reasons=dict(reasons.most_common()), notes=dict(notes.most_common()))


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


def record_fallback(what):
    """An operator that was left out of the graph before it was compiled."""
    global fallbacks
    fallbacks += 1
    reasons[what] += 1


def begin(gm):
    """Called once for every graph Dynamo hands over, before it is compiled."""
    global recompiles
    compile_id = torch._guards.CompileContext.current_compile_id()
    recompiles += compile_id is not None and bool(compile_id.frame_compile_id)
    notes.update(specialised_sizes(gm))


def specialised_sizes(gm):
    """PyTorch compiles sizes 0 and 1 as constants also where sizes are dynamic: another size then compiles the graph again."""
    inputs = [(n.name, n.meta.get("example_value"), n.meta.get("tensor_dict", {})) for n in gm.graph.nodes if n.op == "placeholder"]
    tensors = [(name, val) for name, val, about in inputs if isinstance(val, torch.Tensor) and not isinstance(val, torch.nn.Parameter)
               and not about.get("_dynamo_static_input_type")]
    dynamic = not torch._dynamo.config.assume_static_by_default or any(
        isinstance(s, torch.SymInt) for _, val in tensors for s in val.shape)
    if not dynamic:
        return
    for name, val in tensors:
        for d, size in enumerate(val.shape):
            if type(size) is int and size in (0, 1):
                shape = ", ".join(map(str, val.shape))
                yield f"{name}[{shape}]: size {size} of dimension {d} is compiled as a constant; another size compiles the graph again"


def reset():
    global graphs, kernels, fallbacks, externs, recompiles
    graphs = kernels = fallbacks = externs = recompiles = 0
    lowered.clear()
    reasons.clear()
    notes.clear()


def report():
    """`Lowered 12x ...`, `Fallback 3x ... # reason: ...` and `Note 1x ...`, most frequent first; last the recompilations."""
    lines = [f"Lowered {n}x {what}" for what, n in lowered.most_common()]
    lines += [f"Fallback {n}x {what}" for what, n in reasons.most_common()]
    lines += [f"Note {n}x {what}" for what, n in notes.most_common()]
    if recompiles:
        lines.append(f"Recompiled {recompiles}x")
    return "\n".join(lines)


@atexit.register
def _at_exit():
    if os.environ.get("FUSELAB_REPORT") == "1" and (lowered or reasons or notes):
        print(report())
