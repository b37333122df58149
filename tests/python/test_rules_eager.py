"""R10 for every operator of the table: precision="eager" has the bits of the unfused graph. R11: graph passes keep every bit."""
import json

import pytest
import torch

from bug_support import FLOATS, run, same_bits, word
from fuselab import _core
from op_values import BOOLEAN_ARGS

ROWS = [r for r in json.loads(_core.op_table()) if r["kind"] in ("pointwise", "reduce") and r["lower"] != "-"]
PER_ROW = ("mean", "rstd", "running_mean", "running_var", "save_mean", "save_invstd")
NUMBER = {"integer": "2", "real": "0.5", "scalar": "2", "boolean": "true", "dtype": "f32"}


def attribute(row, spec, rank):
    name = spec["name"]
    if name in ("dim", "dims"):
        return f"dim={rank - 1}" if name == "dim" else f"dims=[{rank - 1}]"
    if name == "normalized_shape":
        return "normalized_shape=[12]"
    if name == "num_groups":
        return "num_groups=2"
    return f"{name}={NUMBER[spec['type']]}"


def operand_type(row, k, spec, dtype):
    """The type of operand k: rows of 12, or [2, 6, 5] with channels along dimension 1."""
    channels = row["reduce"] in ("group", "batch") or row["name"] == "batch_norm"
    kind = "bool" if (row["name"], k) in BOOLEAN_ARGS else dtype
    if not channels:
        per_row = spec["name"] in ("mean", "rstd") and row["reduce"] in ("trailing", "leading")
        shape = "[5, 1]" if per_row else "[12]" if spec["name"] in ("weight", "bias") and row["reduce"] == "trailing" else "[5, 12]"
        kind = "f32" if per_row and dtype in ("f16", "bf16") and row["name"] != "layer_norm" else kind
    elif spec["name"] in ("weight", "bias") or row["reduce"] != "group" and spec["name"] in PER_ROW:
        shape = "[6]"
    else:
        shape = "[2, 2]" if row["reduce"] == "group" and spec["name"] in PER_ROW else "[2, 6, 5]"
    return kind, shape


def chain(row, dtype):
    """A graph with the operator between two products and a sum, and its inputs; None when the table wants other shapes."""
    rank = 3 if row["reduce"] in ("group", "batch") or row["name"] == "batch_norm" else 2
    types = [operand_type(row, k, a, dtype) for k, a in enumerate(row["args"])]
    needed = [attribute(row, a, rank) for a in row["attrs"] if "fallback" not in a or a["name"] in ("dim", "dims")]
    lines = [f"p = mul(x0, {'0.7' if types[0][0] != 'bool' else 'x0'})"]
    args = ", ".join(["p" if types[0][0] != "bool" else "x0", *(f"x{k}" for k in range(1, len(types))), *needed])
    results = ["y", *(f"y{k}" for k in range(1, row["results"]))]
    lines += [f"{', '.join(results)} = {row['name']}({args})", "z = mul(y, 0.9)", "w = add(z, y)"]
    params = ", ".join(f"x{k}: {t}{s}" for k, (t, s) in enumerate(types))
    text = f"graph g({params}) {{\n" + "\n".join(lines) + f"\nreturn w, {', '.join(results)}\n}}"
    torch.manual_seed(1)
    inputs = []
    for k, (t, shape) in enumerate(types):
        x = torch.rand(json.loads(shape)) * 1.5 + 0.25 if row["args"][k]["name"] in (*PER_ROW, "weight") else torch.randn(json.loads(shape))
        inputs.append(x > 0 if t == "bool" else x.to({"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}[t]))
    return text, inputs


def equal(a, b):
    return a.shape == b.shape and (same_bits(a, b) or torch.equal(a.isnan(), b.isnan()) and torch.equal(a[~a.isnan()], b[~b.isnan()]))


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["name"])
def test_R10_eager_mode_has_the_bits_of_the_unfused_graph(row):
    for dtype in ("f16", "bf16"):
        text, inputs = chain(row, dtype)
        fused = run(text, *inputs, precision="eager")
        alone = run(text, *inputs, precision="eager", enable_autofuse=False)
        plain = run(text, *inputs, enable_autofuse=False)  # one operator per kernel: rounded after each anyway
        for f, a, p in zip(fused, alone, plain):
            assert equal(f, a) and equal(f, p)


NEUTRAL = ["mul(x, 1)", "div(x, 1)", "add(x, 0)", "sub(x, 0)", "neg(x)", "pow(x, 1)", "clamp(x, none, none)", "copy(x)", "alias(x)"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=word)
@pytest.mark.parametrize("body", [b for b in NEUTRAL if "none" not in b])
def test_R11_passes_change_no_bit_of_any_16_bit_value(body, dtype):
    """All 2^16 values, with the passes, without each of them, and without all."""
    x = torch.arange(-2**15, 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    text = (f"graph g(x: {word(dtype)}[65536]) {{\na = {body}\nb = neg(a)\nr = neg(b)\nc = cast(r, dtype=f32)\n"
            f"d = cast(c, dtype={word(dtype)})\nreturn r, d\n}}")
    want = run(text, x, opt_level=0)
    for got in (run(text, x), *(run(text, x, skip_passes=(p,)) for p in ("cast_pair", "neutral", "cse", "simplify"))):
        for g, w in zip(got, want):
            assert torch.equal(g.isnan(), w.isnan()) and same_bits(torch.where(g.isnan(), 0, g), torch.where(w.isnan(), 0, w))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int8, torch.int64], ids=word)
def test_R11_common_subexpressions_and_casts(dtype):
    w = word(dtype)
    text = (f"graph g(x: {w}[1000]) {{\na = add(x, x)\nb = add(x, x)\nc = mul(a, b)\nd = cast(c, dtype=f64)\ne = cast(d, dtype={w})\nf = sub(e, a)\n"
            "return f, b\n}")
    x = (torch.randn(1000, generator=torch.Generator().manual_seed(0)) * 5).to(dtype)
    for got, want in zip(run(text, x, precision="eager"), run(text, x, precision="eager", opt_level=0)):
        assert same_bits(got, want)
