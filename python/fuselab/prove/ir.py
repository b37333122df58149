"""Kernels from edited kernel IR: the knobs of the C studies are statements and options of the IR, nothing outside it."""
from .. import _core, api


def kernel_of(graph):
    """(fragment, IR) of a graph that is one kernel. The fragment has the kernel's inputs and outputs in the kernel's order."""
    import fuselab

    compiled = fuselab.compile(graph)
    kernels = compiled.kernels
    if len(kernels) != 1:
        raise RuntimeError(f"the graph is {len(kernels)} kernels, the study needs it to be one: {graph}")
    return kernels[0]["graph"], kernels[0]["ir"]


def compile_ir(fragment, ir):
    """A callable on tensors that runs this IR as the one kernel of `fragment`, whose inputs and outputs it must have."""
    import torch

    call = _core.compile_artifact(fragment, _core.generate_from_ir(ir, "<edited IR>", fragment),
                                  {"exchange_api": torch.Tensor.__dlpack_c_exchange_api__})

    def run(*tensors):
        results = api._convert(call(*tensors), tensors[0])
        return results[0] if len(results) == 1 else tuple(results)

    return run


def forced_chunk(ir, elements):
    """The IR whose sums take blocks of this many elements."""
    if "  tree lanes (" not in ir:
        raise RuntimeError(f"the kernel has no sum along its lanes to force a chunk on:\n{ir}")
    return ir.replace("  tree lanes (", f"  tree lanes chunk {elements} (", 1)
