"""The PyTorch backend: `torch.compile(model, backend="fuselab", options={...}, dynamic=...)`.

Found through the entry point `torch_dynamo_backends`; importing fuselab after torch registers it as well. The options are
listed in fuselab/torch/options.py.
"""


def fuselab_backend(gm, example_inputs, *, options=None, mode=None, **kwargs):
    """What Dynamo calls with a graph; returns the callable that replaces it."""
    from .torch.driver import backend

    if mode not in (None, "default"):
        from . import Error

        raise Error("options.bad_value", f"the fuselab backend has no mode {mode!r}; leave it out and use options")
    return backend(gm, example_inputs, options)


def register():
    """Makes the name known to torch.compile; done by `import fuselab` when torch is there already."""
    from torch._dynamo.backends import registry

    # An entry point that PyTorch has found already is loaded by its lookup, which then registers the name itself.
    if registry._COMPILER_FNS.get("fuselab") is None and registry._BACKENDS.get("fuselab") is None:
        registry.register_backend(compiler_fn=fuselab_backend, name="fuselab")
    from .torch import driver  # noqa: F401  the first compilation should not pay for imports
