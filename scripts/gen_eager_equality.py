"""docs/eager-equality.md: which operators have PyTorch CPU eager's bits in `precision="eager"`. Measured, operator by operator.

gen_eager_equality.py [OP ...] > docs/eager-equality.md

Every operator of the table runs alone, compiled with precision="eager", beside its ATen overload on the same data: unary operators on
all 2^16 values of f16 and bf16, f32 and f64 on a million bit patterns; others on 2^16 random values with special ones among them;
reductions and norms on the shapes of tests/python/test_rules_eager.py and on rows of 1000.
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/python"))

import torch  # noqa: E402

from fuselab import _core  # noqa: E402
from op_values import call  # noqa: E402
from test_rules_eager import attribute, operand_type  # noqa: E402

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
INTS = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32, torch.float64: torch.int64}
COUNT = 1 << 16
SPECIAL = [0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 0.5, -0.5, 1e-30, 65504.0]
VALUES = {"integer": 2, "real": 0.5, "scalar": 2, "boolean": True, "dtype": "f32"}


def pointwise_inputs(row, dtype):
    """Operands of one length: a unary one sees every 16-bit value, or bit patterns spread evenly over the type."""
    width = 16 if dtype in (torch.float16, torch.bfloat16) else 32 if dtype == torch.float32 else 64
    out = []
    for k, spec in enumerate(row["args"]):
        generator = torch.Generator().manual_seed(k)
        if len(row["args"]) == 1:
            n = COUNT if width == 16 else 1 << 20
            bits = torch.arange(n, dtype=torch.int64) * (2**width // n if width < 64 else 2**44) - (2 ** (width - 1))
            out.append(bits.to(INTS[dtype]).view(dtype))
            continue
        x = torch.randn(COUNT, generator=generator, dtype=torch.float64) * 3
        x[: len(SPECIAL) * 11] = torch.tensor(SPECIAL, dtype=torch.float64).roll(k).repeat(11)
        out.append(x > 0 if operand_type(row, k, spec, "f32")[0] == "bool" else x.to(dtype))
    return out


def other_inputs(row, dtype, wide):
    """Operands as the rules' tests have them; with `wide` the reduced dimension holds 1000 elements."""
    out = []
    for k, spec in enumerate(row["args"]):
        kind, shape = operand_type(row, k, spec, next(n for n, d in DTYPES.items() if d == dtype))
        sizes = [1000 if s == 12 and wide else s for s in json.loads(shape)]
        generator = torch.Generator().manual_seed(k)
        x = torch.randn(sizes, generator=generator, dtype=torch.float64)
        if spec["name"] in ("rstd", "running_var", "save_invstd", "weight"):
            x = x.abs() + 0.25
        out.append(x > 0 if kind == "bool" else x.to(DTYPES[kind]))
    return out


def measure(row, name):
    """"identical", a text with share and distance of what differs, or None when one side does not take the type."""
    dtype = DTYPES[name]
    rank = 3 if row["reduce"] in ("group", "batch") or row["name"] == "batch_norm" else 2
    sets = [pointwise_inputs(row, dtype)] if row["kind"] == "pointwise" else [other_inputs(row, dtype, w) for w in (False, True)]
    differ = elements = 0
    worst = 0.0
    for inputs in sets:
        needed, attrs = [], {}
        for spec in row["attrs"]:
            if "fallback" in spec and spec["name"] not in ("dim", "dims"):
                continue
            text = attribute(row, spec, rank).replace("[12]", f"[{inputs[0].shape[-1]}]")
            needed.append(text)
            attrs[spec["name"]] = json.loads(text.partition("=")[2]) if text.partition("=")[2] != "f32" else torch.float32
        kinds = {v: k for k, v in DTYPES.items()} | {torch.bool: "bool"}
        params = ", ".join(f"x{k}: {kinds[x.dtype]}{list(x.shape)}" for k, x in enumerate(inputs))
        results = ", ".join(f"y{k}" for k in range(row["results"]))
        args = ", ".join([*(f"x{k}" for k in range(len(inputs))), *needed])
        try:
            got = _core.compile_graph(f"graph g({params}) {{\n{results} = {row['name']}({args})\nreturn {results}\n}}", {"precision": "eager"})(*inputs)
            want = call(row, [x.clone() for x in inputs], attrs)
        except (RuntimeError, KeyError):
            return None
        if want is None or any(w is None for w in want):
            return None
        for g, w in zip(got, want):
            if g.dtype != w.dtype or g.shape != w.shape:
                return None
            same = (g == w) & (g.signbit() == w.signbit()) if w.is_floating_point() else g == w
            if w.is_floating_point():
                same |= g.isnan() & w.isnan()
            elements += g.numel()
            differ += int((~same).sum())
            if not same.all() and w.is_floating_point():
                ulp = _core.ulp_diff(g.contiguous(), w.contiguous())[~same].double().max().item()
                worst = max(worst, ulp)
    if differ == 0:
        return "identical"
    far = f"{worst:.0f} ulp" if worst < 1e6 else "far"
    return f"{100 * differ / elements:.2g} %, {far}"


def main():
    names = sys.argv[1:]
    rows = [r for r in json.loads(_core.op_table()) if r["kind"] in ("pointwise", "reduce") and r["lower"] != "-" and r["aten"]]
    found = {}
    for i, row in enumerate(r for r in rows if not names or r["name"] in names):
        found[row["name"]] = [measure(row, d) for d in DTYPES]
        print(f"\r{i + 1}/{len(rows)} {row['name']:<32}", end="", file=sys.stderr, flush=True)
    print("", file=sys.stderr)
    same = sorted(n for n, f in found.items() if any(f) and all(v in (None, "identical") for v in f))
    print(f"""# Equality with eager

Which operators have the bits of PyTorch {torch.__version__.partition("+")[0]} CPU eager with `precision="eager"`: measured, not promised. Every operator ran alone beside its ATen overload:
unary ones on all 2^16 values of f16 and bf16 and a million bit patterns of f32 and f64, others on random values with special ones among them. NaN
equals NaN, -0 differs from +0. What differs is mostly where fuselab is the more accurate of the two ([vector math](vector-math.md)), or where a sum has
another order ([R6](precision.md#the-rules)). Made by `scripts/gen_eager_equality.py`.

## Identical in every type ({len(same)} operators)

{", ".join(f"`{n}`" for n in same)}

## The others

Share of results that differ, and the largest distance; an empty cell: one side does not take the type.

| operator | f16 | bf16 | f32 | f64 |
|---|---|---|---|---|""")
    for name, cells in sorted(found.items()):
        if name not in same and any(cells):
            print(f"| {name} | " + " | ".join(c or "" for c in cells) + " |")


if __name__ == "__main__":
    main()
