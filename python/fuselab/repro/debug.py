"""The debug folder of the PyTorch backend: when it is on, where it goes, and what PyTorch knows for it."""
import ast
import os
import warnings

import torch

from .. import FuselabWarning, _core
from . import fragment
from .spec import half_made

# (folder, number of the model in this process) while a model with debugging on is compiled; otherwise None.
current: tuple[str, int] | None = None
_models = 0
_LEFT_OUT = {"debug_dir", "check_kernels", "capture_inputs", "poison"}  # a script writes no scripts


def begin(options):
    """A model is about to be compiled. Reads option and environment."""
    global current, _models
    on, folder = _core.debug_flags(options.get("debug_dir"))
    if not on and os.environ.get("TORCH_COMPILE_DEBUG") == "1":
        on, folder = True, "torch_compile_debug"
    current = (folder, _models) if on else None
    _models += on


def key_options(options):
    """Options as a cache key should see them: where the folder goes changes nothing, whether there is one does."""
    kept = {k: v for k, v in options.items() if k != "debug_dir"}
    return {**kept, "debug": True} if current else kept


def record(gm, low, kind, wanted=False):
    """What must be kept of a graph to write its folder, or None when nobody asked for one."""
    return fragment.record(gm, low, kind) if current or wanted else None


def next_number():
    """A number for a folder that is written although debugging is off."""
    global _models
    _models += 1
    return _models - 1


def write(core, rec, text, specs, finish, options, where=None):
    """Writes the folder of one graph; a folder that cannot be written is a warning, the model runs on. Returns the path or None."""
    place = where or current
    assert place is not None
    folder, number = place
    try:
        return _core.write_debug_folder(core, {
            "root": folder, "kind": rec.kind, "number": number, "graph_text": rec.readable, "hints": rec.hints,
            "output_code": output_code(text, specs, finish, options), "torch_version": torch.__version__,
            "options": [(k, repr(v)) for k, v in options.items() if k not in _LEFT_OUT and _is_literal(v)],
            "precision": contexts(core, rec)})
    except _core.Error as e:
        warnings.warn(FuselabWarning(str(e)), stacklevel=2)
        return None


def failed(error, gm, low, kind, options):
    """The compiler itself failed on a graph: its folder is written whether asked for or not, and the warning names it."""
    if not isinstance(error, _core.Error) or not error.code.startswith("jit."):
        return
    folder, number = current or ("fuselab_debug", 0)
    rec = fragment.record(gm, low, kind)
    reason = str(error).strip().split("\n")[0]
    try:
        folder, kernel = _core.write_failed_folder(
            low.text, options, {"root": folder, "kind": kind, "number": number, "graph_text": rec.readable, "hints": rec.hints})
    except _core.Error as e:
        warnings.warn(FuselabWarning(f"compiling failed ({reason}); {e}"), stacklevel=2)
        return
    alone = f"; `fuselab compile {os.path.join(folder, kernel, 'kernel.ir')}` compiles that kernel alone" if kernel else ""
    warnings.warn(FuselabWarning(f"compiling failed ({reason}); the debug folder is {folder}{alone}"), stacklevel=2)


def contexts(core, rec):
    """Kernel name -> its precision context as a dictionary, or the reason why there is none."""
    out: dict[str, dict | str] = {}
    for step in _core.explain(core)["steps"]:
        if step["kind"] != "kernel" or isinstance(out.get(step["name"]), dict):
            continue
        try:
            found = fragment.recover(rec, step["inputs"], step["outputs"])
            reason = half_made(found.code)
            if reason:
                raise fragment.Unwritable(reason)
            names = input_names(step["fragment"])
            out[step["name"]] = {"eager_fn_code": found.code, "parameters": found.parameters, "extra": found.extra,
                                 "values": {names[i]: text for i, text in found.values.items()}}
        except fragment.Unwritable as e:
            out[step["name"]] = str(e)
    for name, context in out.items():
        if isinstance(context, str):
            warnings.warn(FuselabWarning(f"{name}: benchmark.py can only profile, not check: {context}. This says nothing against "
                                         "the kernel; docs/repro.md says more."), stacklevel=3)
    return out


def input_names(text):
    """The tensors among the parameters of a graph text, in order."""
    return [name for name, kind in _core.parameters(text) if kind == "tensor"]


def _is_literal(value):
    try:
        return ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError):
        return False


def output_code(text, specs, finish, options):
    """A Python program whose `call` runs the graph as the backend does."""
    lines = ['"""How the compiled graph runs: call(*inputs) gives the results as a tuple."""', "import torch", "",
             "from fuselab import _core", "from fuselab.torch.compiled import finisher", "from fuselab.torch.externs import Spec, build",
             "from fuselab.torch.options import for_core", "", f"OPTIONS = {_literals(options)!r}", ""]
    lines += ["GRAPH = r'''", text.rstrip("\n"), "'''", "", "# Calls that stay in PyTorch: extern(..., call=k) is the k-th.", "EXTERNS = ["]
    for spec in specs:
        lines.append(f"    Spec({spec.target!r}, {spec.source!r}{_constant(spec.constant)}),")
    lines += ["]", "", "core = _core.compile_graph(GRAPH, for_core(OPTIONS), build(EXTERNS)) if GRAPH.strip() else None"]
    if finish is None:
        lines.append("call = core")
    else:
        lines += ["", "FINISH = r'''", finish.rstrip("\n"), "'''", "call = finisher(FINISH, core)"]
    return "\n".join(lines) + "\n"


def _literals(options):
    return {k: v for k, v in options.items() if k not in _LEFT_OUT and _is_literal(v)}


def _constant(tensor):
    if tensor is None:
        return ""
    try:
        return f", {fragment.argument_text(tensor.detach())}"
    except fragment.Unwritable:
        return f", torch.zeros({tuple(tensor.shape)}, dtype={tensor.dtype})"  # too large for a text: its values are not here
