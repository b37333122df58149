"""A: the same bits on every run, for any number of threads and instruction set, from a cold or a warm kernel cache."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import torch

from . import frame

TITLE = "the same inputs give the same bits"
# batch, tokens, width; runs of a process that repeats at length; runs of one that varies a condition
SIZES = {"small": ((2, 64, 256), 20, 4), "default": ((8, 2048, 4096), 1000, 20), "full": ((8, 2048, 4096), 1000, 1000)}
INNER = 64   # the matrix product's inner size: it runs once, before everything, and is an input of what is studied


def chain(product, residual, weight, bias):
    x = product + residual
    x = torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias)
    return torch.nn.functional.gelu(x)


def inputs(shape):
    g = torch.Generator().manual_seed(20)
    rand = lambda *sizes: torch.randn(*sizes, generator=g)
    a, b = rand(shape[0] * shape[1], INNER), rand(INNER, shape[2]) / INNER**0.5
    return {"product": (a @ b).half().reshape(shape), "residual": rand(*shape).half(), "weight": rand(shape[2]).half(),
            "bias": rand(shape[2]).half()}


def processor_has(isa):
    """What FUSELAB_ISA may name here; where the processor cannot be asked, only what every one has."""
    try:
        flags = next(line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")).split()
    except (OSError, StopIteration):
        return False
    return {"avx2": "avx2", "avx512": "avx512f"}[isa] in flags


def run(size, report, progress):
    shape, many, few = SIZES[size]
    wide = max(3, frame.cores())
    report.about = (f"add, layer_norm, gelu in one kernel on f16{list(shape)} after a matrix product that ran once and is fixed; each process "
                    f"keeps its first result and compares every later one with it bit by bit.")
    with tempfile.TemporaryDirectory(prefix="fuselab_prove_") as work:
        path = os.path.join(work, "inputs.pt")
        progress.line(f"making the inputs, f16{list(shape)}")
        torch.save(inputs(shape), path)
        caches = [os.path.join(work, f"cache{i}") for i in range(5)]
        plan = [("first process, empty cache", caches[0], {}, [(0, many)]),
                ("new process, the cache cleared", caches[1], {}, [(0, many)]),
                (f"new process, warm cache; then 1, 2, {wide} threads", caches[1], {}, [(0, few), (1, few), (2, few), (wide, few)])]
        for i, isa in enumerate(("avx2", "avx512")):
            if processor_has(isa):
                plan.append((f"compiled for {isa}, empty cache", caches[2 + i], {"FUSELAB_ISA": isa}, [(0, few)]))
            else:
                report.notes.append(f"This processor has no {isa}: not run.")
        if size != "small":
            plan.append(("compiled for any processor, empty cache", caches[4], {"FUSELAB_ISA": "generic"}, [(0, few)]))
        rows = []
        for i, (name, cache, env, runs) in enumerate(plan):
            progress.line(f"process {i + 1} of {len(plan)}: {name}")
            rows.append((name, _process(path, cache, env, runs, progress)))
    hashes, kernels = {r["output"] for _, r in rows}, {r["kernels"] for _, r in rows}
    report.table("runs", "Processes and their results", ["process", "runs", "runs that differ", "max ULP", "kernel", "output (SHA-256)"],
                 [[name, r["runs"], r["differ"], r["max_ulp"], r["kernels"], r["output"][:16]] for name, r in rows])
    total = sum(r["runs"] for _, r in rows)
    differ = sum(r["differ"] for _, r in rows)
    report.claim(f"one output over {total} runs in {len(rows)} processes", len(hashes) == 1 and differ == 0,
                 f"{len(hashes)} outputs, {differ} runs that differ from the first of their process")
    report.claim("max ULP between runs is 0", all(r["max_ulp"] == 0 for _, r in rows), f"{max(r['max_ulp'] for _, r in rows)} ULP")
    report.claim("one kernel hash", len(kernels) == 1 and "" not in kernels, ", ".join(sorted(kernels)))


def _process(path, cache, env, runs, progress):
    """What `worker` prints, from a process of its own; its lines `step 3 100` on stderr are progress."""
    said = []
    with subprocess.Popen([sys.executable, "-m", "fuselab.prove.task_a", json.dumps({"inputs": path, "runs": runs})], text=True,
                          env=os.environ | {"FUSELAB_CACHE_DIR": cache} | env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for line in process.stderr or ():
            if line.startswith("step "):
                progress.step(*map(int, line.split()[1:]), "runs")
            else:
                said.append(line)
        printed = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise RuntimeError(f"a process of task A ended with {process.returncode}: {''.join(said).strip()[-2000:]}")
    return json.loads(printed.splitlines()[-1])


def worker(spec):
    import hashlib

    import fuselab
    from fuselab.prove.stats import ulp_distance
    from fuselab.torch_backend import register

    register()
    given = torch.load(spec["inputs"], mmap=True)
    arguments = [given[name].clone() for name in ("product", "residual", "weight", "bias")]
    compiled = torch.compile(chain, backend="fuselab")
    first: Any = None
    count = differ = worst = 0
    with torch.no_grad():
        for threads, runs in spec["runs"]:
            if threads:
                torch.set_num_threads(threads)
            for _ in range(runs):
                result = compiled(*arguments)
                first = result if first is None else first
                count += 1
                print("step", count, sum(n for _, n in spec["runs"]), file=sys.stderr, flush=True)
                if not torch.equal(result.view(torch.int16), first.view(torch.int16)):
                    differ += 1
                    worst = max(worst, int(ulp_distance(result, first).max()))
    # PyTorch compiles anew when the number of threads changes: more graphs, and the same kernel each time.
    kernels = sorted({k["hash"] for graph in fuselab.graphs() for k in graph.kernels})
    return {"runs": count, "differ": differ, "max_ulp": worst, "kernels": " ".join(kernels),
            "output": hashlib.sha256(first.numpy().tobytes()).hexdigest()}


if __name__ == "__main__":
    print(json.dumps(worker(json.loads(sys.argv[1]))))
