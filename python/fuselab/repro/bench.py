"""--profile and --bench: steps under a plain profiler, kernel_details.csv, and the table."""
import math
import pathlib
import time

import torch

from .. import _core

LOOPS, SKIPPED = 11, 1


def profile(script, args, kernel, out):
    """The artifact, 11 times; the first is skipped, 10 are kept in ./profiling."""
    call = kernel.compile()
    folder = _profiled(call, "profiling")
    steps = step_sums(folder)
    out.line(f"profile: {len(steps)} steps, mean {sum(steps) / len(steps):.2f} us, written to {folder}")
    out.data["profile"] = {"folder": str(folder), "steps_us": steps}


def bench(script, args, kernel, out):
    """Eager and recompiled fragment side by side, and the artifact's time."""
    if args.e2e:
        out.line("NOTE: --e2e changes nothing about --bench, which times the fragment, not the artifact")
    inputs = kernel.fx_inputs()
    mode = args.precision or script["PRECISION"]
    with torch.no_grad():
        compiled = torch.compile(script["eager_fn"], backend="fuselab", options={**script["OPTIONS"], "precision": mode},
                                 dynamic=not script["IS_STATIC"])
        for _ in range(2):  # the second call still settles guards
            compiled(*inputs)
        folders = [_profiled(lambda: script["_run_eager"](inputs), "bench_eager_prof", "torch"),
                   _profiled(lambda: compiled(*inputs), "bench_compiled_prof", script["KERNEL"])]
    eager, graph = (step_sums(newest(f.parent)) for f in folders)
    for line in table(script["KERNEL"], graph, eager):
        out.line(line)
    artifact = step_sums(_profiled(kernel.compile(), "bench_artifact_prof", script["KERNEL"]))
    out.line(f"artifact: mean {sum(artifact) / len(artifact):.2f} us")
    out.line(verdict(graph, eager))
    out.data["bench"] = {"graph_us": graph, "eager_us": eager, "artifact_us": artifact}


def _profiled(call, folder, name=None):
    """Runs 11 steps under the profiler; the last 10 are in the files. With a name, a step is one row: the whole call, launch and
    kernels, which is what two ways to compute the same thing are compared by; without, a row per launch."""
    stamp = time.strftime("%Y%m%d%H%M%S") + f"{time.time_ns() % 10**9:09}"
    path = pathlib.Path(folder) / f"cpu_{stamp}_fuselab"
    times = []
    for _ in range(SKIPPED):
        call()
    if name is None:
        _core.profile_start()
    for step in range(1, LOOPS - SKIPPED + 1):
        if name is None:
            _core.profile_step(step)
        start = _core.profile_clock()
        call()
        times.append((start, _core.profile_clock()))
    if name is not None:  # recorded afterwards: the launches inside are not rows of their own
        _core.profile_start()
        for step, (start, stop) in enumerate(times, 1):
            _core.profile_step(step)
            _core.profile_span(name, "call", start, stop)
    _core.profile_stop(str(path))
    return path


def newest(folder):
    """The newest profile below a folder: an Ascend one or ours."""
    found = [p.parent for p in pathlib.Path(folder).glob("*_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv")]
    found += [p.parent for p in pathlib.Path(folder).glob("*_fuselab/kernel_details.csv")]
    if not found:
        there = sorted(p.name for p in pathlib.Path(folder).iterdir()) if pathlib.Path(folder).is_dir() else []
        raise FileNotFoundError(f"{folder} has no kernel_details.csv with 'Step Id' and 'Duration(us)'; it holds "
                                f"{', '.join(there) or 'nothing'}. See docs/repro.md#no-kernel_details")
    return max(found, key=lambda p: (p.stat().st_mtime_ns, str(p)))


def step_sums(folder):
    """Microseconds per step."""
    return [us for _, us in _core.step_sums(str(pathlib.Path(folder) / "kernel_details.csv"))]


def table(kernel, graph, eager):
    """The lines that tools parse; at most 10 rows. Ratio = eager / graph, the last one of the averages."""
    rule = "-------+--------------------+--------------------+---------"
    row = lambda step, g, e: f" {step:^4}  | {g:>18.2f} | {e:>18.2f} | {e / g if g else math.inf:>5.2f} x"  # noqa: E731
    rows = list(zip(graph, eager))[:10]
    lines = [f"Benchmark: {kernel}", " Step  | Graph Mode (us)    | Eager (us)         |  Ratio", rule]
    lines += [row(i, g, e) for i, (g, e) in enumerate(rows, 1)]
    count = len(rows)
    return lines + [rule, row("Avg", sum(g for g, _ in rows) / count, sum(e for _, e in rows) / count)]


def verdict(graph, eager):
    """Is the difference of the means outside the noise (two standard errors of both)?"""
    def mean_error(values):
        mean = sum(values) / len(values)
        return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / max(len(values) - 1, 1) / len(values))

    (g, dg), (e, de) = mean_error(graph), mean_error(eager)
    spread = f"spread: graph {dg / g:.1%}, eager {de / e:.1%} of the mean" if g and e else "spread: 0"
    if abs(g - e) <= 2 * math.hypot(dg, de):
        return f"{spread}; AMBIGUOUS: the ratio is inside the noise"
    return f"{spread}; {'faster' if g < e else 'slower'} than eager"
