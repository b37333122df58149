"""What a kernel's script is made of, and the writer. The writer reads nothing but the spec."""
import ast
import dataclasses
import os
import pathlib


@dataclasses.dataclass
class PrecisionContext:
    """What was restored of the front end's graph."""

    eager_fn_code: str
    fx_input_meta: list   # {"name", "dtype", "shape", "stride"} per parameter, in order; integers also "low", "high"
    output_names: list    # the kernel's outputs, in order


@dataclasses.dataclass
class BenchmarkSpec:
    """One kernel's script. Buffers are dictionaries as in PrecisionContext.fx_input_meta."""

    kernel_name: str
    artifacts: dict       # name, target, sizes, wrapper, tiling_def, host_impl, device_impl, vector_core_num, ai_core_num, hash
    fragment: str
    kernel_ir: str
    call_arguments: list = dataclasses.field(default_factory=list)   # ("size" | "tensor", name), in the order of the call
    size_hints: dict = dataclasses.field(default_factory=dict)       # symbol -> size
    profile_buffers: list = dataclasses.field(default_factory=list)  # the tensors of the call
    precision: PrecisionContext | None = None
    no_precision_reason: str = ""
    node_summary: list = dataclasses.field(default_factory=list)
    is_static: bool = True
    precision_mode: str = "block"
    options: list = dataclasses.field(default_factory=list)          # (name, Python text) of the original compile's options
    environment: dict = dataclasses.field(default_factory=dict)
    fuselab_version: str = ""
    torch_version: str = ""


def generate_benchmark_script(spec, file_path):
    """Writes the script; True when it has a precision context. What would not parse is written as profile-only."""
    from .. import _core

    data = {f.name: getattr(spec, f.name) for f in dataclasses.fields(spec)}
    if spec.precision is not None:
        reason = half_made(spec.precision.eager_fn_code)
        data["precision"] = None if reason else dataclasses.asdict(spec.precision)
        data["no_precision_reason"] = reason or spec.no_precision_reason
    text, has_precision = _core.benchmark_script(data)
    ast.parse(text)
    path = pathlib.Path(file_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")  # never half a script
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path)
    return has_precision


def half_made(eager_fn_code):
    """Why this text is no eager_fn; empty when it is one."""
    try:
        tree = ast.parse(eager_fn_code)
    except (SyntaxError, ValueError) as e:
        return f"the fragment's Python text does not parse ({e})"
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return "" if names == ["eager_fn"] and len(tree.body) == 1 else "the fragment's Python text is not one function eager_fn"
