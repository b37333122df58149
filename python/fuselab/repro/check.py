"""--check: PyTorch's eager fragment, the fragment compiled anew, the artifact, and fp64 with its error bound.

Each compiled path runs twice, over results and work space that hold two different bytes: an element that follows the byte
was not written.
"""
import torch

from .. import _core
from ..torch.options import for_core


def run(script, args, kernel, out):
    mode = args.precision or script["PRECISION"]
    inputs = kernel.fx_inputs()
    with torch.no_grad():
        eager = results(script["_run_eager"]([t.clone() if 0 not in t.stride() else t for t in inputs]))
        compiled = [results(script["_run_compiled"](inputs, precision=mode, poison=byte)) for byte in _core.poison_bytes()]
        artifact = [results(kernel.compile(poison=byte)()) for byte in _core.poison_bytes()]
    references = {m: reference(script, kernel, m) for m in {mode, script["PRECISION"]}}
    names = script["OUTPUT_NAMES"]
    for what, found in (("eager_fn", eager), ("the recompiled fragment", compiled[0]), ("the artifact", artifact[0])):
        if len(found) != len(names):
            raise RuntimeError(f"{what} has {len(found)} results, the kernel {len(names)}")
    failed, outputs = [], []
    for i, name in enumerate(names):
        outputs.append(_output(name, i, eager, {"precision": compiled, "artifact": artifact},
                               {"precision": references[mode], "artifact": references[script["PRECISION"]]}, out))
        if not outputs[-1]["passed"]:
            failed.append(name)
    out.line(_core.precision_summary(failed))
    out.data["outputs"] = outputs
    out.failed = out.failed or bool(failed)


def reference(script, kernel, mode):
    """fp64 values with bounds of every output, or the reason why there are none."""
    tensors = [kernel.tensors[b["name"]] for b in script["PROFILE_BUFFERS"]]
    try:
        fragment = _core.concrete_graph(script["FRAGMENT"], script["SIZE_HINTS"])
        kept = _core.kept_operators(for_core(script["OPTIONS"]))  # with exemptions, where values are rounded is not known
        return _core.fp64_reference(fragment, tensors, precision=mode, any_borders=bool(kept))
    except _core.Error as e:
        return str(e)


def _output(name, i, eager, paths, references, out):
    expected = eager[i]
    if not isinstance(expected, torch.Tensor):
        out.line(f"output:{name} skipped")
        return {"name": name, "passed": True, "skipped": True}
    data = {"name": name, "passed": True}
    for path, (first, second) in paths.items():
        known = references[path]
        verdict = _core.judge(plain(expected), plain(first[i]), known[i] if not isinstance(known, str) else None, plain(second[i]),
                              name, path)
        out.line(verdict["line"])
        data["passed"] = data["passed"] and verdict["passed"]
        data[path] = {k: verdict[k] for k in ("passed", "reason", "cann", "elements", "undecided", "outside", "first_outside", "unwritten",
                                              "first_unwritten", "unstable", "excused")}
    known = references["precision"]
    if isinstance(known, str):
        out.line(f"output:{name} fp64: not to be had: {known}")
    elif expected.is_floating_point() and expected.numel():
        shown = [("torch", expected), ("compiled", paths["precision"][0][i]), ("artifact", paths["artifact"][0][i])]
        out.line(_core.fp64_line(name, known[i], [(n, plain(t)) for n, t in shown]))
    return data


def plain(t):
    """A tensor the core can look at: dequantised, complex as pairs."""
    if t.is_quantized:
        t = t.dequantize()
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t.detach()


def results(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]
