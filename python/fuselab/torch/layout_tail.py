"""Changes of a result's memory format that stay outside the graph when gradients are taken.

AOTAutograd compiles a backward graph for incoming gradients laid out as the results are, and lays out anew those that are not. So
behind a result that was converted to channels_last a contiguous gradient comes back as channels_last, which eager would have kept
contiguous. A conversion at the graph's end is therefore left to PyTorch: then the gradient passes it as it passes it in eager.
"""
import torch

from . import stats

_FORMATS = (torch.channels_last, torch.channels_last_3d)
_METHODS = ("to", "float", "half", "bfloat16", "double", "contiguous", "clone")
_FUNCTIONS = (torch.clone,)


def split(gm):
    """(graph module, tail): `tail` makes the results of `gm` out of those of the module; (gm, None): there is nothing to leave."""
    if not torch.is_grad_enabled():
        return gm, None
    output = next(iter(reversed(gm.graph.nodes)))
    if not any(_is_conversion(node) for node in _results(output)):
        return gm, None
    copy = torch.fx.GraphModule(gm, torch.fx.Graph())
    values = {}
    copy.graph.output(copy.graph.graph_copy(gm.graph, values))
    copy.graph._codegen = gm.graph._codegen
    copy.meta.update(gm.meta)
    output = next(iter(reversed(copy.graph.nodes)))
    results, tail = list(output.args[0]), {}
    for i, node in enumerate(results):
        if isinstance(node, torch.fx.Node) and _is_conversion(node):
            tail[i] = (node.op, node.target, node.args[1:], dict(node.kwargs))
            results[i] = node.args[0]
    output.args = (tuple(results),)
    copy.graph.eliminate_dead_code()
    copy.recompile()
    for _, target, _, _ in tail.values():
        name = target if isinstance(target, str) else target.__name__
        stats.record_fallback(f"{name}  # reason: a result's memory format is changed outside the graph, for its gradient's layout")
    return copy, tail


def joined(fn, tail):
    """`fn` followed by the conversions."""
    def call(*args):
        out = list(fn(*args))
        for i, (op, target, rest, kwargs) in tail.items():
            out[i] = getattr(out[i], target)(*rest, **kwargs) if op == "call_method" else target(out[i], *rest, **kwargs)
        return tuple(out)

    return call


def _results(output):
    results = output.args[0]
    return [n for n in results if isinstance(n, torch.fx.Node)] if isinstance(results, (tuple, list)) else []


def _is_conversion(node):
    """A call whose only reader is the output and whose one tensor is its first argument, differentiable."""
    known = (node.op == "call_method" and node.target in _METHODS) or (node.op == "call_function" and node.target in _FUNCTIONS)
    if not known or node.kwargs.get("memory_format") not in _FORMATS or len(node.users) != 1:
        return False
    source = node.args[0] if node.args else None
    if not isinstance(source, torch.fx.Node) or node.all_input_nodes != [source]:
        return False
    value = source.meta.get("example_value")
    return isinstance(value, torch.Tensor) and value.requires_grad
