"""Where a compiled model leaves eager: `first_divergence` names the first kernel whose result is wrong on real data.

Two ways to be wrong are told apart. A kernel that does not compute what its own part of the graph says leaves the error bound of
float64. A kernel whose part of the graph is not what the model does (a custom operator or module that traces to something else)
keeps that bound, but the result of the module that it ends is not eager's.
"""

import dataclasses
import warnings

import torch

__all__ = ["Divergence", "first_divergence"]


@dataclasses.dataclass
class Divergence:
    """The first kernel that leaves eager, in the order of execution."""

    kernel: str           # its name, as in a profile
    modules: list         # paths of the modules whose results it makes, innermost first; empty at no module's end
    output: str           # the value that is off
    reason: str
    error: float          # rms of the difference / rms of eager's result; nan when only the bound was left
    folder: str | None    # its debug folder, with inputs.safetensors; None when it could not be written
    checked: int          # kernels looked at, this one included

    def __str__(self):
        place = f" in {self.modules[0]}" if self.modules else ""
        where = f"; its folder with the inputs is {self.folder}" if self.folder else ""
        return f"{self.kernel}{place}: {self.output}: {self.reason}{where}"


def default_tolerance(dtype):
    """Relative rms difference that rounding explains in a deep model: 256 units of the dtype, at most 5 %."""
    return min(256 * torch.finfo(dtype).eps, 0.05)


def first_divergence(model, inputs, tolerance=None, *, options=None, debug_dir="fuselab_debug", kwargs=None):
    """Runs `model` eager and compiled on `inputs` (a tuple of tensors) and compares kernel by kernel.

    Returns a `Divergence`, or None when every kernel keeps its error bound and every module's result is within `tolerance` (relative
    rms error; default: 256 units of the result's dtype). The model runs without gradients and is left as it was.

        found = fuselab.debug.first_divergence(model, (tokens,))
        print(found or "no kernel leaves its bound")
    """
    from .torch import compiled
    from .torch_backend import register

    register()
    inputs = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    clones = lambda: torch.utils._pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, (inputs, kwargs or {}))
    with torch.no_grad():
        state = {k: v.clone() for k, v in model.state_dict().items()} if isinstance(model, torch.nn.Module) else {}
        args, named = clones()
        eager = _eager_results(model, args, named)
        _restore(model, state)
        walk = _Walk(eager, tolerance)
        options = {**(options or {}), "debug_dir": debug_dir}
        torch._dynamo.reset()
        args, named = clones()
        with torch._functorch.config.patch(enable_autograd_cache=False), compiled.watching(walk.attach), warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=UserWarning, message="the debug folder|.*can only profile")
            try:
                torch.compile(model, backend="fuselab", options=options)(*args, **named)
            except _Found as found:
                return found.divergence
            finally:
                _restore(model, state)
                torch._dynamo.reset()
    return None


class _Found(Exception):
    def __init__(self, divergence):
        super().__init__(str(divergence))
        self.divergence = divergence


def _restore(model, state):
    if state:
        model.load_state_dict(state)


def _eager_results(model, args, kwargs):
    """Module path -> tensors of its first call."""
    results, hooks = {}, []
    if isinstance(model, torch.nn.Module):
        for name, module in model.named_modules():
            def keep(_module, _args, out, name=name):
                leaves = [t for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, torch.Tensor)]
                results.setdefault(name, [t.detach().clone() for t in leaves])

            hooks.append(module.register_forward_hook(keep))
    try:
        model(*args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    return results


class _Walk:
    def __init__(self, eager, tolerance):
        self.eager, self.tolerance, self.checked = eager, tolerance, 0

    def attach(self, graph, core, folder):
        from .torch import checking

        checker = checking.Checker(core, graph, folder)
        ends = _module_ends(graph.record)

        def seen(step, inputs, outputs, sizes):
            self.checked += 1
            at = checker.observed.kernel(step)
            modules = []
            for name, got in zip(at["outputs"], outputs, strict=True):
                found = self.compare(ends.get(name, ()), name, got)
                modules = [m for m in ends.get(name, ()) if m] or modules
                if found:
                    self.stop(checker, step, inputs, at, modules, name, *found)
            for name, verdict in checking.verdicts(checker.observed, step, inputs, outputs, sizes):
                if not verdict["passed"]:
                    self.stop(checker, step, inputs, at, modules, name, verdict["reason"], float("nan"))

        core.watch(lambda step: True, seen)

    def compare(self, modules, name, got):
        """(reason, error) when eager's result of a module that ends here is another one."""
        for module in modules:
            for want in self.eager.get(module, ()):
                if want.shape != got.shape or want.dtype != got.dtype or not want.is_floating_point():
                    continue
                error = _relative_rms(want, got)
                limit = self.tolerance if self.tolerance is not None else default_tolerance(want.dtype)
                if not error <= limit:
                    return f"differs from eager's result of {module or 'the model'} by {error:.3g} (relative rms, limit {limit:.3g})", error
                return None
        return None

    def stop(self, checker, step, inputs, at, modules, name, reason, error):
        folder = checker.save(step, inputs, "inputs.safetensors")
        raise _Found(Divergence(at["name"], modules, name, reason, error, folder, self.checked))


def _relative_rms(want, got):
    want, got = want.double(), got.double()
    same = (want == got) | (want.isnan() & got.isnan())
    difference = torch.where(same, 0.0, want - got)
    scale = torch.where(want.isfinite(), want, 0.0).square().mean().sqrt()
    error = difference.square().mean().sqrt()
    return (error / scale).item() if scale > 0 else error.item()


def _module_ends(record):
    """Value name -> paths of the modules that end with it, innermost first."""
    from .repro.fragment import nodes_of_values

    last = {}
    for name, entry in record.entries.items():
        for module in entry.modules:
            last[module] = name
    ends = {}
    for module, node in last.items():
        ends.setdefault(node, []).append(module)
    out = {}
    for value, nodes in nodes_of_values(record).items():
        found = [m for n in nodes for m in ends.get(n, ())]
        if found:
            out[value] = sorted(set(found), key=lambda m: (-m.count("."), -len(m)))
    return out
