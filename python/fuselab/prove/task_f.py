"""F: the elementary functions over their inputs: error against fp64 and eager, special values, the same bits on every instruction set."""
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time

import torch
from torch.nn import functional

from . import plot
from .stats import Tally, ulp_errors
from .task_a import processor_has

TITLE = "elementary functions"
STRIDE = {"small": 65537, "default": 257, "full": 1}   # of the 2^32 patterns of f32; all 2^16 of f16 and bf16 in every size
CHUNK = 1 << 20
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def _gelu64(x):
    return 0.5 * x * torch.erfc(-x / math.sqrt(2))


def _gelu_tanh64(x):
    return x / (1 + torch.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _softplus64(x):
    return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))


def _mish64(x):
    e = torch.exp(x.clamp(max=40))
    n = e * (e + 2)
    return x * (n / (n + 2))


# name in the op table -> (eager, fp64 where eager's fp64 loses digits that f32 has)
FUNCTIONS: dict = {
    "exp": (torch.exp, None), "exp2": (torch.exp2, None), "expm1": (torch.expm1, None), "log": (torch.log, None), "log2": (torch.log2, None),
    "log10": (torch.log10, None), "log1p": (torch.log1p, None), "sin": (torch.sin, None), "cos": (torch.cos, None), "tan": (torch.tan, None),
    "tanh": (torch.tanh, None), "sigmoid": (torch.sigmoid, None), "erf": (torch.erf, None), "erfc": (torch.erfc, None),
    "rsqrt": (torch.rsqrt, None), "silu": (functional.silu, None), "gelu": (functional.gelu, _gelu64),
    "gelu_tanh": (lambda x: functional.gelu(x, approximate="tanh"), _gelu_tanh64), "softplus": (functional.softplus, _softplus64),
    "mish": (functional.mish, _mish64), "pow": (torch.pow, None), "atan2": (torch.atan2, None),
}
TWO = ("pow", "atan2")   # arguments; f32 only, on pairs
PAIRS = {"small": 1 << 18, "default": 1 << 22, "full": 1 << 26}


# Largest errors of PyTorch 2.13's f32 functions over all 2^32 inputs (pow, atan2: 2^28 pairs) on an AVX-512 processor, as bench/vecmath.py
# measured them: a sample may miss them.
EAGER_ALL = {
    "exp": 0.568234, "exp2": 0.884831, "expm1": 0.999999, "log": 0.973647, "log2": 0.677269, "log10": 0.770281, "log1p": 1.0,
    "sin": 0.605415, "cos": 0.605638, "tan": 0.935588, "tanh": 0.513079, "sigmoid": 2.09715e+06, "erf": 0.783788, "erfc": 0.933195,
    "rsqrt": 1.490349, "silu": 1.67772e+07, "gelu": 1.67772e+07, "gelu_tanh": 1.67772e+07, "softplus": 1.499998, "mish": 154.31,
    "pow": 0.786881, "atan2": 0.998349,
}


def graph(name, dtype):
    if name in TWO:
        return f"graph f(a: {dtype}[N], b: {dtype}[N]) {{ y = {name}(a, b) return y }}"
    call = 'gelu(x, approximate="tanh")' if name == "gelu_tanh" else f"{name}(x)"
    return f"graph f(x: {dtype}[N]) {{ y = {call} return y }}"


def patterns(dtype, stride):
    """All inputs of a dtype with this stride between their bits, in pieces."""
    if dtype != "f32":
        yield torch.arange(-32768, 32768).to(torch.int16).view(DTYPES[dtype])
        return
    count = (2**32 + stride - 1) // stride
    for first in range(0, count, CHUNK):
        bits = torch.arange(first, min(first + CHUNK, count)) * stride
        yield torch.where(bits >= 2**31, bits - 2**32, bits).to(torch.int32).view(torch.float32)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 1.5, 10.0, 1e5, -3e6, math.inf, -math.inf, math.nan, 2.0**-149, -(2.0**-149), 2.0**-126,
           3.4028234663852886e38, -3.4028234663852886e38, 16777215.0, 16777216.0]


def pairs(count):
    """Pairs of f32, in pieces: special values with each other; then any bits, moderate numbers, and y log2|x| spread over f32's range."""
    special = torch.tensor(SPECIAL)
    yield special.repeat_interleave(len(special)), special.repeat(len(special))
    generator = torch.Generator().manual_seed(7)
    for _ in range(0, count, CHUNK):
        n = min(count, CHUNK) // 3
        bits = torch.randint(-(2**31), 2**31, (2, n), generator=generator).to(torch.int32).view(torch.float32)
        yield bits[0], bits[1]
        near = torch.randn(2, n, generator=generator) * torch.exp2(torch.randint(-6, 7, (2, n), generator=generator).float())
        yield near[0].abs(), near[1]
        x = bits[0].abs()
        yield x, ((torch.rand(n, generator=generator, dtype=torch.float64) * 280 - 150) / torch.log2(x.double())).float()


def inputs(name, dtype, stride, count):
    return pairs(count) if name in TWO else ((x,) for x in patterns(dtype, stride))


def dtypes_of(name):
    return ("f32",) if name in TWO else tuple(DTYPES)


def digest(kernel, name, dtype, stride):
    """A hash over all results' bits; every NaN counts as the same one."""
    h = hashlib.sha256()
    for x in inputs(name, dtype, stride, PAIRS["small"]):
        y = kernel(*x)
        h.update(torch.where(torch.isnan(y), torch.full_like(y, math.nan), y).view(torch.int32 if dtype == "f32" else torch.int16).numpy().tobytes())
    return h.hexdigest()


def digests(stride):
    import fuselab

    return {f"{name} {dtype}": digest(fuselab.compile(graph(name, dtype)), name, dtype, stride)
            for name in FUNCTIONS for dtype in dtypes_of(name)}


def run(size, report, progress):
    import fuselab

    stride = STRIDE[size]
    report.about = (f"f32: every {stride}th of the 2^32 bit patterns, f16 and bf16: all 2^16; pow and atan2: {PAIRS[size]} pairs. Errors in "
                    "ULP against fp64 (whose own error is below 1e-8 ULP of f32); special: results that are not NaN, infinite or finite "
                    "where the exact ones are.")
    rows = []
    for i, (name, (eager, wide)) in enumerate(FUNCTIONS.items()):
        progress.line(f"{name} ({i + 1} of {len(FUNCTIONS)})")
        for dtype in dtypes_of(name):
            kernel = fuselab.compile(graph(name, dtype))
            tallies, special, count = {"fused": Tally(), "eager": Tally()}, 0, 0
            total = PAIRS[size] if name in TWO else (2**32 + stride - 1) // stride if dtype == "f32" else 65536
            for x in inputs(name, dtype, stride, PAIRS[size]):
                exact = (wide or eager)(*(t.double() for t in x))
                for which, y in (("fused", kernel(*x)), ("eager", eager(*x))):
                    errors, wrong = ulp_errors(y, exact)
                    tallies[which].add(errors)
                    special += wrong if which == "fused" else 0
                count += len(x[0])
                progress.step(min(count, total), total, "inputs")
            rows.append([name, dtype, count, tallies["fused"].max, tallies["eager"].max, tallies["fused"].mean, tallies["eager"].mean, special])
            limit = max(tallies["eager"].max, EAGER_ALL[name]) if dtype == "f32" else 0.5 + 1e-9
            report.claim(f"{name}, {dtype}: " + ("largest error at most eager's" if dtype == "f32" else "correctly rounded"),
                         tallies["fused"].max <= limit and special == 0,
                         f"{tallies['fused'].max:.4f} against {limit:.4f} ULP, {special} wrong special values")
    report.table("errors", "Errors in ULP", ["function", "dtype", "inputs", "max", "max eager", "mean", "mean eager", "special"], rows)
    narrow = [r for r in rows if r[1] == "f32"]
    report.plots.append(plot.Plot("F_max", "largest error, f32", plot.bars(
        "largest error, f32 (bars end at 4 ULP)", "ULP", [r[0] for r in narrow],
        {"fuselab": [min(r[3], 4) for r in narrow], "eager": [min(r[4], 4) for r in narrow]})))
    _same_bits(max(stride, 65537), ("avx512", "avx2") if size == "small" else ("avx512", "avx2", "generic"), report, progress)
    if size != "small":
        _rates(report, progress)
    report.notes.append("Eager's largest f32 error is the larger of the one measured here and that over all inputs on an AVX-512 processor "
                        "(PyTorch 2.13): " + ", ".join(f"{k} {v}" for k, v in EAGER_ALL.items()) + ".")
    report.notes.append("bench/vecmath.py runs all 2^32 inputs in compiled code, minutes per function, with MPFR where fp64 cannot decide.")


def _same_bits(stride, sets, report, progress):
    found = {}
    for isa in sets:
        if isa != "generic" and not processor_has(isa):
            report.notes.append(f"This processor has no {isa}: not run.")
            continue
        progress.line(f"bits compiled for {isa}")
        with tempfile.TemporaryDirectory(prefix="fuselab_prove_") as cache:
            done = subprocess.run([sys.executable, "-m", "fuselab.prove.task_f", str(stride)], capture_output=True, text=True, check=False,
                                  env=os.environ | {"FUSELAB_ISA": isa, "FUSELAB_CACHE_DIR": cache})
        if done.returncode:
            raise RuntimeError(f"a process of task F ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}")
        found[isa] = json.loads(done.stdout.splitlines()[-1])
    if not found:
        return
    first = next(iter(found.values()))
    for isa, hashes in list(found.items())[1:]:
        differ = [name for name in first if hashes[name] != first[name]]
        report.claim(f"{isa} gives the bits of {next(iter(found))} ({len(first)} functions and dtypes)", not differ, ", ".join(differ))


def _rates(report, progress):
    """Elements per second and thread, in cache and from memory; no claim: a busy machine would decide it."""
    import fuselab

    rows: list = []
    ratios: list = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for name, (eager, _) in FUNCTIONS.items():
            progress.line(f"rate of {name}")
            kernel, row = fuselab.compile(graph(name, "f32")), [name]
            for n in (1 << 14, 1 << 23):
                x = (torch.linspace(0.01, 8, n), torch.linspace(3, -3, n))[:2 if name in TWO else 1]
                ours, theirs = _best(lambda: kernel(*x), n), _best(lambda: eager(*x), n)  # noqa: B023
                row += [ours, theirs, ours / theirs]
            rows.append(row)
            ratios.append(row[-1])
    finally:
        torch.set_num_threads(threads)
    report.table("rates", "Million results per second, f32, one thread: in cache and from memory", ["function", "cache", "cache, eager", "ratio",
                 "memory", "memory, eager", "ratio, memory"], rows)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    report.notes.append(f"Rate from memory: {mean:.2f} of eager's (geometric mean). Results are allocated anew on both sides.")


def _best(f, n):
    best = math.inf
    for _ in range(15):
        began = time.thread_time()
        for _ in range(max(1, (1 << 20) // n)):
            f()
        best = min(best, (time.thread_time() - began) / max(1, (1 << 20) // n))
    return n / best / 1e6


if __name__ == "__main__":
    print(json.dumps(digests(int(sys.argv[1]))))
