"""What `make demo` runs: a language model of GPT-2-small's shape compiled by fuselab, beside PyTorch eager and a float64 run.

    python examples/demo.py [--tokens 128] [--layers 12] [--dtype f32|bf16] [--threads N] [--debug-dir DIR]

Prints the kernels and what they fused, compile time, time against eager, errors of both, what ran in PyTorch, and the check
of every kernel through its own script. Exit code 1 when a kernel fails its check.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

START = time.perf_counter()


def say(text=""):
    print(text, flush=True)


def step(text):
    say(f"[{time.perf_counter() - START:5.1f} s] {text}")


def table(head, rows):
    """Columns as wide as they need; numbers to the right."""
    cells = [head] + [[str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    right = [all(row[i][:1].isdigit() for row in cells[1:]) for i in range(len(head))]
    for number, row in enumerate(cells):
        say("  " + "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right)).rstrip())
        if number == 0:
            say("  " + "  ".join("-" * w for w in widths))


def fused_text(operators, views):
    """add, reshape, mul, mul, softmax -> add, 2 mul, softmax: views are part of the addresses and left out."""
    counts = collections.Counter(name for name in operators if name not in views)
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in counts.items())


def timed(fn, ids):
    start = time.perf_counter()
    fn(ids)
    return (time.perf_counter() - start) * 1e3


def errors(got, reference):
    """Largest and root-mean-square difference from the float64 run."""
    difference = (got.double() - reference).abs()
    return difference.max().item(), difference.square().mean().sqrt().item()


def check_script(script):
    """Runs one kernel's own script; its output, and whether it exited 0."""
    done = subprocess.run([sys.executable, script.name, "--check"], cwd=script.parent, capture_output=True, text=True, check=False)
    return script, done.returncode, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--calls", type=int, default=7, help="timed calls of each")
    parser.add_argument("--debug-dir", help="keep the kernels' folders here")
    args = parser.parse_args()

    work = pathlib.Path(tempfile.mkdtemp(prefix="fuselab_demo_"))
    debug = pathlib.Path(args.debug_dir or work / "debug").resolve()
    os.environ["FUSELAB_CACHE_DIR"] = str(work / "cache")  # empty: compile times are those of a first run
    try:
        return demo(args, debug)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def demo(args, debug):
    step("importing PyTorch")
    import torch
    import torch._dynamo.backends.debugging  # noqa: F401  imports are not compile time
    import torch._functorch.aot_autograd  # noqa: F401
    from gpt2 import LanguageModel

    import fuselab
    from fuselab import _core

    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    step(f"fuselab {fuselab.__version__}, PyTorch {torch.__version__}, {args.threads} threads; making the model, random weights")
    model = LanguageModel(layers=args.layers).eval().requires_grad_(False)
    ids = torch.randint(0, 50257, (1, args.tokens))
    parameters = sum(p.numel() for p in model.parameters())
    step(f"{args.layers} layers, {parameters / 1e6:.0f} million parameters; running it in float64, the yardstick of accuracy")
    model.double()
    reference = model(ids)
    model.to(torch.float32 if args.dtype == "f32" else torch.bfloat16)
    if args.dtype == "bf16":  # the yardstick sees the same weights
        reference = LanguageModel.forward(model.double(), ids)
        model.bfloat16()
    eager = model(ids)

    step("compiling with fuselab (kernel cache empty)")
    compiled = torch.compile(model, backend="fuselab", options={"debug_dir": str(debug)})
    start = time.perf_counter()
    fused = compiled(ids)
    first_call = time.perf_counter() - start

    step(f"timing {args.calls} calls of each, by turns")
    times = [(timed(model, ids), timed(compiled, ids)) for _ in range(args.calls)]
    eager_ms, fused_ms = (statistics.median(column) for column in zip(*times))

    say()
    graphs = fuselab.graphs()
    views = {row["name"] for row in json.loads(_core.op_table()) if row["kind"] == "view"}
    rows, timing, uses = [], collections.Counter(), 0
    for graph in graphs:
        explained = _core.explain(graph)
        timing.update(explained["timing_ms"])
        operators = {s["name"]: [n["op"] for n in s["nodes"]] for s in explained["steps"] if s["kind"] == "kernel"}
        for kernel in _core.kernels(graph):
            uses += kernel["uses"]
            rows.append((kernel["name"], kernel["uses"], fused_text(operators[kernel["name"]], views), f"{kernel['compile_ms']:.0f}"))
    table(["kernel", "per call", "what it fused", "compile ms"], rows)
    stats = fuselab.harness_stats()
    say()
    say(f"  {len(rows)} kernels in {len(graphs)} graph, {uses} launches and {stats['externs']} calls of PyTorch's matmul and alike "
        "per run")
    say(f"  first call {first_call:.2f} s, of which fuselab {timing['total'] / 1e3:.2f} s (the rest is PyTorch's own tracing and "
        "one run)")
    if stats["fallbacks"]:
        for reason, count in stats["fallback_reasons"].items():
            say(f"  left to PyTorch, {count}x: {reason}")
    else:
        say("  nothing else was left to PyTorch")
    say()
    worst = reference.abs().max().item()
    rows = [[name, f"{ms:.1f}", *(f"{e / worst:.3g}" for e in errors(got, reference))]
            for name, ms, got in (("eager", eager_ms, eager), ("fuselab", fused_ms, fused))]
    table([f"{args.tokens} tokens, {args.dtype}", "ms per call", "largest error", "RMS error"], rows)
    eager_rms, fused_rms = errors(eager, reference)[1], errors(fused, reference)[1]
    say(f"  {eager_ms / fused_ms:.2f} times eager's speed; errors against float64, as parts of the largest logit; fuselab's RMS "
        f"error is {fused_rms / eager_rms:.2f} of eager's")
    say()
    return check_kernels(debug)


def check_kernels(debug):
    scripts = sorted(debug.glob("**/benchmark.py"))
    step(f"checking {len(scripts)} kernels through their own scripts (benchmark.py --check)")
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        running = [pool.submit(check_script, script) for script in scripts]
        results = []
        for done in concurrent.futures.as_completed(running):
            results.append(done.result())
            script, code, output = results[-1]
            step(f"  {script.parent.name}: " + ("passed" if code == 0 else f"exit code {code}\n{output}"))
    failed = [r for r in results if r[1] != 0]
    if not scripts:
        step("no kernel left a script")
        return 1
    step(f"{len(scripts) - len(failed)} of {len(scripts)} kernels passed: against PyTorch eager, their recompiled fragment and "
         "float64")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
