"""The backend: Dynamo's graph -> AOTAutograd -> our compiler for inference, forward and backward graphs.

When AOTAutograd's runtime wrapper has nothing to do (no mutation, aliasing, subclass or autocast) the compiled graph itself
is handed to Dynamo: the wrapper costs more than a small kernel.
"""
import logging
import re
import warnings
from typing import Any

import torch
from torch._dynamo.utils import counters, flatten_graph_inputs
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd.schemas import OutputType, SerializableAOTDispatchCompiler
from torch._functorch.aot_autograd import aot_module_simplified
from torch.utils._python_dispatch import _disable_current_modes

from ..repro import debug
from . import cache, checking, compiled, decompositions, layout_tail, loss, statistics, stats
from . import options as option_module
from .lowering import WholeGraph, lower

log = logging.getLogger("fuselab")
MAX_RETRIES = 8


def backend(gm, example_inputs, options=None):
    options = option_module.parse(options)
    if any(isinstance(x, (list, tuple, dict)) for x in example_inputs):
        return flatten_graph_inputs(gm, example_inputs, lambda g, inputs: backend(g, inputs, options))
    counters["aot_autograd"]["total"] += 1
    stats.begin(gm)
    inner, tail = layout_tail.split(gm)
    fn = Job(options, inner, example_inputs).run()
    counters["aot_autograd"]["ok"] += 1
    return fn if tail is None else layout_tail.joined(fn, tail)


class Job:
    """One call of the backend."""

    def __init__(self, options, gm, example_inputs):
        self.options, self.gm, self.example_inputs = options, gm, example_inputs
        self.inference = None
        self.nodes = set()  # names of every graph compiled here

    def run(self):
        wrap = lambda fn: SerializableAOTDispatchCompiler(compiled.CompiledGraph, fn)  # noqa: E731
        compiled.latest.clear()
        debug.begin(self.options)
        extra: Any = cache.Extra(debug.key_options(self.options))  # AOTAutograd only carries it to the cache
        # The backward graph is compiled now, not at the first backward: only so can both be kept in the cache as one entry.
        with functorch_config.patch(bundled_autograd_cache=True, force_non_lazy_backward_lowering=True), cache.installed():
            fn = aot_module_simplified(
                self.gm, self.example_inputs, fw_compiler=wrap(self.forward), bw_compiler=wrap(self.backward),
                inference_compiler=wrap(self.whole), partition_fn=self.partition(),
                decompositions=decompositions.table_for(self.options), compiler_config_extra=extra)
        self.warn_of_absent_nodes()
        graph = self.inference
        if graph is None and len(compiled.latest) == 1:
            graph = compiled.latest[0]
        if graph is not None and getattr(graph, "direct", False):
            return graph.call
        return fn

    def warn_of_absent_nodes(self):
        """A name in skip_nodes that no graph has would do nothing, silently. A graph from the cache shows no names."""
        absent = [name for name in self.options.get("skip_nodes", ()) if name not in self.nodes]
        if absent and self.nodes:
            there = sorted(self.nodes)
            more = f" and {len(there) - 20} more" if len(there) > 20 else ""
            warnings.warn(f"skip_nodes: this graph has no node {', '.join(absent)}; there are {', '.join(there[:20])}{more}", stacklevel=2)

    def partition(self):
        from torch._functorch import partitioners

        keep_all = self.options.get("partition") == "no-recompute"
        part = partitioners.default_partition if keep_all else partitioners.min_cut_rematerialization_partition

        def partition(gm, *args, **kwargs):
            statistics.keep_statistics(gm.graph)
            return part(gm, *args, **kwargs)

        return partition

    def forward(self, gm, inputs):
        return self.compile(gm, "forward")

    def backward(self, gm, inputs):
        compile_backward = torch._dynamo.disable(lambda: self.compile(gm, "backward"), reason="do not trace the backward compiler")
        return compile_backward()

    def whole(self, gm, inputs):
        self.inference = self.compile(gm, "inference")
        if isinstance(self.inference, compiled.CompiledGraph):
            self.inference.direct = self.may_be_direct(gm)
        return self.inference

    def compile(self, gm, kind):
        with _disable_current_modes():  # fake tensors are only looked at
            loss.fuse_nll_loss(gm.graph)
            self.nodes.update(n.name for n in gm.graph.nodes if n.op == "call_function")
            return compile_fx(gm, kind, self.options)

    def may_be_direct(self, gm):
        """Has AOTAutograd's runtime wrapper nothing to do?"""
        context = torch._guards.TracingContext.try_get()
        meta = context.fw_metadata if context is not None else None
        if meta is None or torch._C._is_any_autocast_enabled():
            return False
        if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in self.example_inputs):
            return False
        plain = (OutputType.non_alias, OutputType.unsafe_view_alias, OutputType.custom_function_view)
        placeholders = sum(n.op == "placeholder" for n in gm.graph.nodes)
        tensor_types = (torch.Tensor, torch.nn.Parameter, torch._subclasses.FakeTensor)
        return (placeholders == len(self.example_inputs)
                and all(not isinstance(x, torch.Tensor) or type(x) in tensor_types for x in self.example_inputs)
                and not any(m.mutates_data or m.mutates_metadata or m.mutates_storage_metadata for m in meta.input_info)
                and all(o.output_type in plain for o in meta.output_info)
                and meta.num_intermediate_bases == 0 and not meta.tokens and not meta.is_rng_op_functionalized
                and meta.grad_enabled_mutation is None and not meta.act_input_indices and not meta.dynamic_outputs)


def compile_fx(gm, kind, options):
    """An AOT graph compiled, or running in PyTorch with the reason counted."""
    skip = {}
    for _ in range(MAX_RETRIES):
        try:
            low = lower(gm, kind, options, skip)
        except WholeGraph as e:
            return compiled.fall_back(gm, str(e))
        graph = compiled.CompiledGraph(low.text, low.specs, low.finish.source if low.finish else None, options, low.counts,
                                       record=debug.record(gm, low, kind, checking.wanted(options)))
        try:
            return graph.build()
        except Exception as e:
            if getattr(e, "code", "").startswith(("options.", "flags.")):
                raise  # a wrong option is an error, not a reason to run elsewhere
            node = blamed(e, low)
            debug.failed(e, gm, low, kind, option_module.for_core(options))
            log.debug("compiling failed: %s\n%s", e, low.text)
            if node is None or node in skip:
                return compiled.fall_back(gm, first_line(e))
            skip[node] = first_line(e)
    return compiled.fall_back(gm, f"more than {MAX_RETRIES} operators could not be compiled, last: {list(skip.values())[-1]}")


def first_line(error):
    return str(error).strip().split("\n")[0][:300] or type(error).__name__


def blamed(error, low):
    """The FX node a compiler error is about: errors begin `file:line:column:` or name a value in quotes."""
    text = str(error)
    at = re.match(r"[^:\n]*:(\d+):\d+:", text)
    if at and int(at.group(1)) in low.lines:
        return low.lines[int(at.group(1))]
    lines = low.text.split("\n")
    for name in re.findall(r"'(\w+)'", text):
        for number, node in low.lines.items():
            if re.match(rf"  ([\w: ,{{}}\[\]]*, )?{re.escape(name)}\b", lines[number - 1]):
                return node
    return None
