"""The figures of docs/performance.md, every ratio from one run.

    python bench/run.py [--only TEXT] [--seconds 0.6] [--threads 1] [--markdown docs/performance.md] [--json OUT]

Sections: speed against eager and against the same compiler with fusion off, per class; what precision="block" costs; the cost of a call;
compile time by phase. By turns: each round times every contender for about a millisecond; the fastest round of each counts.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
os.environ.setdefault("FUSELAB_CACHE_DIR", tempfile.mkdtemp(prefix="fuselab_bench_"))  # empty: compile times are those of a first run

import torch  # noqa: E402
from cases import CASES, PRECISION  # noqa: E402
from timing import by_turns, geometric_mean  # noqa: E402

import fuselab  # noqa: E402
from fuselab import _core  # noqa: E402


def caller(fn, inputs, training):
    """A function without arguments that runs a case once."""
    if not training:
        def run():
            with torch.no_grad():
                return fn(*inputs)
        return run

    def run():
        for p in fn.parameters():
            p.grad = None
        fn(*inputs).square().mean().backward()
    return run


def compiled(fn, **options):
    torch._dynamo.reset()
    return torch.compile(fn, backend="fuselab", options=options)


def speed(only, seconds, note):
    rows = []
    for group, name, make in CASES:
        if only not in name and only != group:
            continue
        torch.manual_seed(0)
        fn, inputs = make()
        training = group == "training"
        fused_fn, unfused_fn = compiled(fn), compiled(fn, enable_autofuse=False)
        runs = [caller(f, inputs, training) for f in (fn, fused_fn, unfused_fn)]
        eager, fused, unfused = by_turns(runs, seconds)
        rows.append(dict(group=group, case=name, eager_us=eager * 1e6, fused_us=fused * 1e6, unfused_us=unfused * 1e6,
                         over_eager=eager / fused, over_unfused=unfused / fused))
        note(f"{name:50} eager {eager * 1e6:10.1f} us   fuselab {fused * 1e6:10.1f} us   {eager / fused:5.2f} x   "
             f"({unfused / fused:.2f} x of fusion off)")
    return rows


def precision_cost(only, seconds, note):
    rows = []
    for name in PRECISION:
        if only not in name:
            continue
        torch.manual_seed(0)
        fn, inputs = next(make for _, n, make in CASES if n == name)()
        runs = [caller(f, inputs, False) for f in (compiled(fn), compiled(fn, precision="eager"))]
        block, eager = by_turns(runs, seconds)
        rows.append(dict(case=name, block_us=block * 1e6, eager_mode_us=eager * 1e6, ratio=block / eager))
        note(f"{name:50} block {block * 1e6:10.1f} us   eager mode {eager * 1e6:10.1f} us   {block / eager:5.2f}")
    return rows


def call_cost(note):
    done = subprocess.run([sys.executable, str(HERE / "call_overhead.py"), "--json"], capture_output=True, text=True, check=True)
    row = json.loads(done.stdout.strip().splitlines()[-1])
    note("  ".join(f"{k} {v:.2f} us" for k, v in row.items()))
    return row


def compile_time(only, note):
    rows = []
    for backend in ("aot_eager", "fuselab"):  # what a process pays once is not part of any case
        torch.compile(lambda x: x + 1, backend=backend)(torch.randn(3))
    for group, name, make in CASES:
        if only not in name and only != group:
            continue
        taken = {}
        for backend in ("aot_eager", "fuselab"):
            torch.manual_seed(0)
            torch._dynamo.reset()
            fn, inputs = make()
            run = caller(torch.compile(fn, backend=backend), inputs, group == "training")
            start = time.perf_counter()
            run()
            taken[backend] = time.perf_counter() - start
        explained = [_core.explain(g)["timing_ms"] for g in fuselab.graphs()]
        kernels = [k for g in fuselab.graphs() for k in _core.kernels(g)]
        phases = {phase: sum(e[phase] for e in explained) for phase in ("simplify", "fuse", "codegen", "compile", "load", "total")}
        each = [k["compile_ms"] + k["load_ms"] for k in kernels if not k["from_cache"]]
        rows.append(dict(group=group, case=name, first_call_s=taken["fuselab"], floor_s=taken["aot_eager"], kernels=len(kernels),
                         per_kernel_ms=statistics.median(each) if each else 0.0, **{f"{k}_ms": v for k, v in phases.items()}))
        note(f"{name:50} first call {taken['fuselab']:6.2f} s, floor {taken['aot_eager']:6.2f} s; fuselab {phases['total']:7.1f} ms, "
             f"{len(kernels)} kernels")
    return rows


def cpu_name():
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":")[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(r) + " |" for r in rows), ""]


def markdown(result):
    lines = [
        "# Performance", "",
        "Made by `make bench`, which runs `python bench/run.py --markdown docs/performance.md`; do not edit. Compare ratios, not times: each ratio comes from one run, its sides timed by turns, the fastest round of each.", "",
        f"Measured with fuselab {result['fuselab']}, PyTorch {result['torch']}, {result['threads']} thread on {result['cpu']}, {result['cores']} cores, load {result['load']:.1f} at the start.", "",
        "## Speed", "",
        "`x eager`: PyTorch eager's time / fuselab's. `x unfused`: time with fusion off / fuselab's; a class stays on by default only while this is not below 1.", ""]
    speed_rows = result["speed"]
    groups = list(dict.fromkeys(r["group"] for r in speed_rows))
    lines += table(["class", "x eager, geometric mean", "x unfused, geometric mean", "slower than eager"],
                   [[g, f"{geometric_mean([r['over_eager'] for r in speed_rows if r['group'] == g]):.2f}",
                     f"{geometric_mean([r['over_unfused'] for r in speed_rows if r['group'] == g]):.2f}",
                     ", ".join(r["case"] for r in speed_rows if r["group"] == g and r["over_eager"] < 1) or "none"] for g in groups])
    lines += table(["case", "eager us", "fuselab us", "x eager", "x unfused"],
                   [[r["case"], f"{r['eager_us']:.1f}", f"{r['fused_us']:.1f}", f"{r['over_eager']:.2f}", f"{r['over_unfused']:.2f}"] for r in speed_rows])
    lines += ["## What f32 inside a kernel costs", "", "Time in the default mode / time with `precision=\"eager\"`, which rounds after every operator; below 1 means that rounding less is also faster.", ""]
    lines += table(["case", "block us", "eager mode us", "ratio"],
                   [[r["case"], f"{r['block_us']:.1f}", f"{r['eager_mode_us']:.1f}", f"{r['ratio']:.2f}"] for r in result["precision"]])
    call = result["call"]
    lines += ["## The cost of a call", "", "`(x + y).abs()` on 16 numbers. The floor is a Dynamo backend that returns a constant.", ""]
    lines += table(["floor us", "fuselab us", "over the floor us", "eager us"], [[f"{call[k]:.2f}" for k in ("floor", "fuselab", "over floor", "eager")]])
    lines += ["## Compile time", "",
              "First call with an empty kernel cache. The floor is the backend `aot_eager`: what Dynamo and AOTAutograd take with any backend; both include one run.", ""]
    lines += table(["case", "first call s", "floor s", "fuselab ms", "fuse", "codegen", "compile (sum)", "kernels", "median per kernel ms"],
                   [[r["case"], f"{r['first_call_s']:.2f}", f"{r['floor_s']:.2f}", f"{r['total_ms']:.1f}", f"{r['fuse_ms']:.1f}", f"{r['codegen_ms']:.1f}",
                     f"{r['compile_ms']:.1f}", str(r["kernels"]), f"{r['per_kernel_ms']:.1f}"] for r in result["compile"]])
    return "\n".join(lines).rstrip("\n") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this, or a class")
    parser.add_argument("--seconds", type=float, default=0.6, help="per contender")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--markdown")
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    note = lambda text: print(text, flush=True)  # noqa: E731
    result = dict(fuselab=fuselab.__version__, torch=torch.__version__, threads=args.threads, cpu=cpu_name(), cores=os.cpu_count(),
                  load=os.getloadavg()[0])
    note("== compile time")
    result["compile"] = compile_time(args.only, note)
    note("== speed")
    result["speed"] = speed(args.only, args.seconds, note)
    note("== precision")
    result["precision"] = precision_cost(args.only, args.seconds, note)
    note("== cost of a call")
    result["call"] = call_cost(note)
    for group in dict.fromkeys(r["group"] for r in result["speed"]):
        note(f"{group}: {geometric_mean([r['over_eager'] for r in result['speed'] if r['group'] == group]):.2f} x eager")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(result, indent=1))
    if args.markdown:
        pathlib.Path(args.markdown).write_text(markdown(result), encoding="utf-8")


if __name__ == "__main__":
    main()
