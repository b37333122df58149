"""B: the error against fp64 of fused chains is not above that of eager."""
import math

import torch
from torch.nn.functional import gelu, layer_norm

from . import plot
from .stats import Tally, Truth, ulp

TITLE = "the error of fused chains is not above eager's"
SIZES = {"small": 20, "default": 1000, "full": 1000}
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
FEW = 1.25   # with few inputs, what the largest errors may differ by: one element decides each
LISTED = 5   # counter-examples per chain and dtype that are shown; the CSV has all


def _pointwise(x, a, b, c):
    return gelu(x * a + b) * c


def _pointwise64(x, a, b, c):
    """x Phi(x) by erfc: torch's gelu in fp64 cancels for negative x and would be no reference."""
    t = x * a + b
    return 0.5 * t * torch.erfc(-t / math.sqrt(2)) * c


def _norm(x, w, b):
    return layer_norm(x, x.shape[-1:], w, b)


def _softmax(x):
    return torch.softmax(x, -1)


def _projection(x, m, r, w, b):
    return layer_norm(x @ m + r, r.shape[-1:], w, b)


def _attention(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1])), -1) @ v


def _after_matmul(product, r, w, b):
    return layer_norm(product + r, r.shape[-1:], w, b)


def _after_scores(scores):
    return torch.softmax(scores * (1 / math.sqrt(INNER)), -1)


ROWS, WIDTH, INNER = 64, 512, 64
EXACT = {_pointwise: _pointwise64}   # where the function in fp64 is no reference
# name -> (function, sizes of its inputs, scale of each)
CHAINS: dict = {
    "mul, add, gelu, mul": (_pointwise, [(ROWS, WIDTH)] * 4, [1, 1, 1, 1]),
    "layer_norm": (_norm, [(ROWS, WIDTH), (WIDTH,), (WIDTH,)], [1, 1, 1]),
    "softmax": (_softmax, [(ROWS, WIDTH)], [2]),
    "matmul, add, layer_norm": (_projection, [(ROWS, INNER), (INNER, WIDTH), (ROWS, WIDTH), (WIDTH,), (WIDTH,)],
                                [1, 1 / math.sqrt(INNER), 1, 1, 1]),
    "qk, softmax, pv": (_attention, [(4, ROWS, INNER)] * 3, [1, 1, 1]),
}
# What a kernel of fuselab's computes of a chain with products, exact from PyTorch's product on, which both sides share:
# name -> (chain whose inputs it takes, function, its inputs from those)
AFTER_PRODUCT: dict = {
    "add, layer_norm after the matmul": ("matmul, add, layer_norm", _after_matmul, lambda x, m, r, w, b: [x @ m, r, w, b]),
    "softmax after qk": ("qk, softmax, pv", _after_scores, lambda q, k, v: [q @ k.transpose(-2, -1)]),
}


def function_of(chain):
    return AFTER_PRODUCT[chain][1] if chain in AFTER_PRODUCT else CHAINS[chain][0]


def inputs(chain, dtype, seed):
    if chain in AFTER_PRODUCT:
        return AFTER_PRODUCT[chain][2](*inputs(AFTER_PRODUCT[chain][0], dtype, seed))
    g = torch.Generator().manual_seed(seed)
    _, sizes, scales = CHAINS[chain]
    return [(torch.randn(s, generator=g) * scale).to(dtype) for s, scale in zip(sizes, scales, strict=True)]


def run(size, report, progress):
    count = SIZES[size]
    report.about = (f"{count} random inputs per chain and dtype, {ROWS} rows of {WIDTH} (attention: 4 heads, {ROWS} tokens of {INNER}). Errors in "
                    "ULP of the result's dtype against the same chain in fp64. Aggregate: over all elements of all inputs.")
    rows: list = []
    examples: list = []
    listed: list = []
    work = [(c, d) for c in [*CHAINS, *AFTER_PRODUCT] for d in DTYPES]
    threads = torch.get_num_threads()
    for i, (chain, dtype) in enumerate(work):
        progress.line(f"{chain}, {dtype} ({i + 1} of {len(work)})")
        torch.set_num_threads(1)   # these inputs are small: a second thread costs more than it does
        try:
            one = _study(chain, dtype, count, progress)
        finally:
            torch.set_num_threads(threads)
        eager, fused = one["eager"], one["fused"]
        rows.append([chain, dtype, eager.percentile(0.99), fused.percentile(0.99), eager.max, fused.max, eager.mean, fused.mean,
                     one["eager scaled"], one["fused scaled"], len(one["worse"]), one["wrong"]])
        worst = sorted(one["worse"], key=lambda w: w[2] / max(w[1], 1e-9), reverse=True)
        examples += [[chain, dtype, *w] for w in one["worse"]]
        listed += [[chain, dtype, *w] for w in worst[:LISTED]]
        for what, a, b in (("P99", rows[-1][2], rows[-1][3]), ("max", eager.max, fused.max)):
            if what == "max" and size == "small":
                continue
            where = f"; {one['worst']}" if what == "max" else ""
            report.claim(f"{chain}, {dtype}: {what} error of fused at most eager's", b <= a and not one["wrong"],
                         f"{_pair(b, a)} ULP{where}" + (f"; {one['wrong']} values not finite where they should be" * bool(one["wrong"])))
        if size == "small":
            a, b = one["eager scaled"], one["fused scaled"]
            report.claim(f"{chain}, {dtype}: max error at the scale of the row at most {FEW} of eager's", b <= FEW * a,
                         f"{b:.4g} against {a:.4g} ULP")
    report.table("errors", "Aggregate error against fp64, in ULP", ["chain", "dtype", "P99 eager", "P99 fused", "max eager", "max fused",
                 "mean eager", "mean fused", "max eager (row)", "max fused (row)", "inputs with a larger max",
                 "not finite where they should be"], rows)
    report.table("counterexamples", f"Inputs whose largest error is larger fused than eager: the {LISTED} with the largest ratio each",
                 ["chain", "dtype", "seed", "max eager", "max fused"], listed)
    report.tables[-1].all_rows = examples
    report.notes.append("max (row) is the largest error in ULP at the larger of the value and the rms of its row. The plain maximum lies where terms "
                        "cancel and the result has no digits of its own: there it says little about either side. The products in the "
                        "chains are PyTorch's on both sides. The chains after a product start from it: exact is what follows from the product that "
                        "both sides share.")
    if size == "small":
        report.notes.append(f"The plain maximum is a claim about {SIZES['default']} inputs and judged there; with {count} it is shown only, and the "
                            "largest error at the scale of the row is judged.")
    for dtype in DTYPES:
        mine = [r for r in rows if r[1] == dtype]
        report.plots.append(plot.Plot(f"B_{dtype}", f"P99 error, {dtype}", plot.bars(
            f"P99 error against fp64, {dtype}", "ULP", [r[0].replace("layer_norm", "norm") for r in mine],
            {"eager": [r[2] for r in mine], "fused": [r[3] for r in mine]})))


def _pair(b, a):
    """Both with as many digits as it takes to tell them apart."""
    digits = next((d for d in (4, 6, 8, 10) if f"{b:.{d}g}" != f"{a:.{d}g}"), 10)
    return f"{b:.{digits}g} against {a:.{digits}g}"


def _study(chain, dtype, count, progress):
    function = function_of(chain)
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="fuselab")
    out: dict = {"eager": Tally(), "fused": Tally(), "eager scaled": 0.0, "fused scaled": 0.0, "worse": [], "wrong": 0}
    with torch.no_grad():
        for seed in range(count):
            given = inputs(chain, DTYPES[dtype], seed)
            truth = Truth(EXACT.get(function, function)(*[t.double() for t in given]), DTYPES[dtype])
            largest = {}
            for name, f in (("eager", function), ("fused", compiled)):
                result = f(*given)
                errors, wrong = truth.errors(result)
                largest[name] = out[name].add(errors, seed)
                out[f"{name} scaled"] = max(out[f"{name} scaled"], truth.largest_scaled(result))
                out["wrong"] += wrong if name == "fused" else 0
            if largest["fused"] > largest["eager"]:
                out["worse"].append((seed, largest["eager"], largest["fused"]))
            progress.step(seed + 1, count, "inputs")
        out["worst"] = _worst(function, compiled, inputs(chain, DTYPES[dtype], out["fused"].where))
    return out


def _worst(function, compiled, given):
    """Where fused is furthest off in these inputs, in words: mostly a place where terms cancel."""
    exact = EXACT.get(function, function)(*[t.double() for t in given])
    fused, eager = compiled(*given), function(*given)
    unit = ulp(exact, fused.dtype)
    at = int(((fused.double() - exact).abs() / unit).nan_to_num(0).argmax())
    pick = lambda t: float(t.reshape(-1)[at])
    row = pick(exact.square().mean(-1, keepdim=True).sqrt().expand_as(exact))
    return (f"worst where the exact value is {pick(exact):.3g} in a row of rms {row:.3g}: fused {abs(pick(fused) - pick(exact)):.2g} off, "
            f"eager {abs(pick(eager) - pick(exact)):.2g}")
