"""C2: another order of a sum is another result; each order repeats its own bits."""
import torch

from . import plot
from .ir import compile_ir, forced_chunk, kernel_of
from .stats import ulp_distance, ulp_errors

TITLE = "the order of a sum: accumulation chunks"
SIZES = {"small": (20, 100), "default": (1000, 1000), "full": (1000, 10000)}   # runs of each, inputs
CHUNKS = (512, 1024, 2048)
LENGTH = 16384
GRAPH = f"graph total(x: f16[1, {LENGTH}]) {{ w = cast(x, dtype=f32) t = sum(w, dims=[1]) y = cast(t, dtype=f16) return t, y }}"


def run(size, report, progress):
    runs, count = SIZES[size]
    graph, ir = kernel_of(GRAPH)
    kernels = {f"chunk {c}": compile_ir(graph, forced_chunk(ir, c)) for c in CHUNKS}
    kernels["as compiled"] = compile_ir(graph, ir)
    report.about = (f"Sums over f16[1, {LENGTH}], normal values, with the chunk of the kernel IR's tree forced (`tree lanes chunk N`; kernels "
                    f"are made with 512). {runs} runs of each on one input, then {count} inputs; in f32 before the store, and as stored in f16.")
    fixed = _input(0)
    repeated = {}
    for name, kernel in kernels.items():
        seen = {(float(t), float(y)) for t, y in (kernel(fixed) for _ in range(runs))}
        repeated[name] = len(seen)
    stored = {name: torch.empty(count, dtype=torch.float16) for name in kernels}
    inside = {name: torch.empty(count) for name in kernels}
    exact = torch.empty(count, dtype=torch.float64)
    for i in range(count):
        x = _input(i)
        exact[i] = x.double().sum()
        for name, kernel in kernels.items():
            t, y = kernel(x)
            stored[name][i], inside[name][i] = y.item(), t.item()
        progress.step(i + 1, count, "inputs")
    matrix: list = []
    rows: list = []
    for a in kernels:
        line = [a]
        for b in kernels:
            d = ulp_distance(inside[a], inside[b])
            line.append(f"{int(d.max())} / {float((d != 0).double().mean()):.1%} / {float((stored[a] != stored[b]).double().mean()):.1%}")
        matrix.append(line)
        relative = (inside[a].double() - exact).abs() / exact.abs()
        e32, e16 = ulp_errors(inside[a], exact)[0], ulp_errors(stored[a], exact)[0]
        rows.append([a, repeated[a], float(relative.mean()), float(e32.median()), float(e32.max()), float(e16.max())])
    report.table("pairs", "Pairs: largest distance in f32 ULP before the store / share that differs before / after the store in f16",
                 ["", *kernels], matrix)
    report.table("distance", "Each order: results over the runs of one input, distance to fp64",
                 ["order", "results", "mean relative, f32", "median ULP, f32", "max ULP, f32", "max ULP, f16"], rows)
    report.notes.append("f16 values are short: sums of some hundred of them are still exact in f32, so only the last combinations round, and most "
                        "inputs give the same f32 sum in every order.")
    report.plots.append(plot.Plot("C2_distance", "Mean relative distance to fp64 before the store", plot.bars(
        "mean relative distance to fp64, f32", "relative", list(kernels), {"before the store": [r[2] for r in rows]})))
    report.claim(f"each order gives one result over {runs} runs", set(repeated.values()) == {1}, str(repeated))
    report.claim("chunk 512 is the order kernels are made with", torch.equal(inside["chunk 512"], inside["as compiled"]),
                 "the results differ")
    report.claim("the orders differ before the store", any(not torch.equal(inside["chunk 512"], inside[f"chunk {c}"]) for c in CHUNKS[1:]),
                 "all results are equal: the knob has no effect")
    report.claim("after the store every order is correctly rounded or the neighbour of it", all(r[5] <= 1 for r in rows),
                 f"{max(r[5] for r in rows):.3f} ULP")


def _input(seed):
    return torch.randn(1, LENGTH, generator=torch.Generator().manual_seed(seed)).half()
