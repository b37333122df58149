"""AOTAutograd's cache for our results: the key.

PyTorch's own key covers what Inductor depends on (it hashes all of torch's sources and loads Inductor's code generators,
about a second per process). Ours covers what this backend depends on: the graph, the inputs' types, PyTorch's and our
version, the options, and the global state that AOTAutograd reads.
"""
import contextlib
import dataclasses
import functools
import hashlib
import os
import pathlib

import torch
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd import autograd_cache


@dataclasses.dataclass
class Extra:
    """Passed as AOTAutograd's `compiler_config_extra`: marks a call as ours and carries the options into the key."""

    options: dict
    cudagraphs: object = None
    forward_device: object = None


@dataclasses.dataclass
class Details:
    """Everything a compiled result depends on. Pickled with the graph's own reducers, then hashed."""

    gm: torch.fx.GraphModule
    example_inputs: list
    aot_config: object
    options: list
    versions: tuple
    state: tuple
    functorch: object


@functools.cache
def sources_digest():
    """Of what turns an AOT graph into text: this package's sources and the op table."""
    from .. import _core

    digest = hashlib.sha256(_core.op_table().encode())
    for path in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def key(gm, example_inputs, aot_config, options):
    from .. import __version__

    autocast = tuple((d, torch.get_autocast_dtype(d)) for d in ("cpu", "cuda") if torch.is_autocast_enabled(d))
    state = (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast, torch.are_deterministic_algorithms_enabled(),
             torch.get_default_dtype(), torch.backends.mkldnn.enabled)
    details = Details(gm, list(example_inputs), aot_config, sorted((k, repr(v)) for k, v in options.items()),
                      (torch.__version__, torch.version.git_version, __version__, sources_digest()), state, functorch_config.save_config())
    return autograd_cache.AOTAUTOGRAD_CACHE_PREFIX + "fl" + autograd_cache.AOTAutogradCachePickler(gm).get_hash(details)


def _key(mod, example_inputs, config, compiler_config_extra=None):
    if not isinstance(compiler_config_extra, Extra):
        return _original(mod, example_inputs, config, compiler_config_extra)
    if os.environ.get("FUSELAB_FORCE_DISABLE_CACHES") == "1":
        raise autograd_cache.BypassAOTAutogradCache("FUSELAB_FORCE_DISABLE_CACHES")
    gm = mod.gm if isinstance(mod, torch._dynamo.utils.GmWrapper) else mod
    with autograd_cache.sanitize_gm_for_cache(gm):
        autograd_cache.check_cacheable(gm)
        return key(gm, example_inputs, config, compiler_config_extra.options), []


_original = autograd_cache.autograd_cache_key


@contextlib.contextmanager
def installed():
    """Our key for our calls; everybody else's calls keep theirs, so it can stay installed."""
    if autograd_cache.autograd_cache_key is not _key:
        autograd_cache.autograd_cache_key = _key
    yield
