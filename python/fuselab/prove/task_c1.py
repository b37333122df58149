"""C1: a tensor times a scalar and times a broadcast tensor are two computations; with one constant they are the same."""
import torch

import fuselab

from . import plot
from .stats import shares, ulp_distance

TITLE = "scalar multiply against broadcast"
SIZES = {"small": 256, "default": 1024, "full": 1024}
FACTOR = 0.7


def run(size, report, progress):
    n = SIZES[size]
    x = (torch.rand(n, n, generator=torch.Generator().manual_seed(0)) * 2 - 1).half()
    narrow, wide = torch.tensor([FACTOR]).half(), torch.tensor([FACTOR])
    report.about = (f"x * {FACTOR} for x f16[{n}, {n}] uniform in (-1, 1). A number in the source enters in the compute type (f32), a tensor "
                    f"of one element brings its own rounding: f16 holds {float(narrow):.10g}, f32 {float(wide):.10g}.")
    scalar = fuselab.compile(f"graph scalar(x: f16[{n}, {n}]) {{ y = mul(x, {FACTOR}) return y }}")
    broadcast = fuselab.compile(f"graph broadcast(x: f16[{n}, {n}], s: f16[1]) {{ y = mul(x, s) return y }}")
    same = fuselab.compile(f"graph same(x: f16[{n}, {n}], s: f32[1]) {{ a = cast(x, dtype=f32) m = mul(a, s) y = cast(m, dtype=f16) return y }}")
    results = {"scalar": scalar(x), "broadcast f16": broadcast(x, narrow), "broadcast f32": same(x, wide)}
    eager = {"eager scalar": x * FACTOR, "eager broadcast f16": x * narrow}
    pairs = [("scalar", "broadcast f16"), ("scalar", "broadcast f32")]
    rows, kept = [], {}
    for a, b in pairs:
        kept[b] = shares(ulp_distance(results[a], results[b]))
        rows.append([a, b, *kept[b]])
    for name, value in eager.items():
        other = name.removeprefix("eager ")
        kept[name] = shares(ulp_distance(value, results[other]))
        rows.append([name, other, *kept[name]])
    report.table("shares", "Shares of elements by their distance in ULP", ["one", "other", "0", "1", "2 or more"], rows)
    report.plots.append(plot.Plot("C1_shares", "Shares of elements by their distance in ULP", plot.bars(
        "scalar against broadcast", "share", ["0 ULP", "1 ULP", "2 or more"],
        {f"{r[0]} / {r[1]}": r[2:] for r in rows[:2]})))
    report.claim("scalar and broadcast with the same constant: every element equal", kept["broadcast f32"][0] == 1,
                 f"{1 - kept['broadcast f32'][0]:.3%} differ")
    report.claim("scalar and broadcast with the f16-rounded constant are never more than 1 ULP apart", kept["broadcast f16"][2] == 0,
                 f"{kept['broadcast f16'][2]:.3%} are")
    for name in eager:
        report.claim(f"{name}: PyTorch's bits", kept[name][0] == 1, f"{1 - kept[name][0]:.3%} differ")
