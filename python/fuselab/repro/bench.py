"""--profile and --bench: steps under a plain profiler, kernel_details.csv, the table and what it is worth."""
import contextlib
import pathlib
import time

import torch

from .. import _core
from . import check

LOOPS, SKIPPED = 11, 1


def profile(script, args, kernel, out):
    """The artifact, 11 times; the first is skipped, 10 are kept in ./profiling, a row per launch."""
    call = kernel.compile()
    for _ in range(SKIPPED):
        call()
    with recording("profiling") as folder:
        for step in range(1, LOOPS - SKIPPED + 1):
            _core.profile_step(step)
            call()
    steps = step_sums(folder)
    out.line(f"profile: {len(steps)} steps, mean {sum(steps) / len(steps):.2f} us, written to {folder}")
    out.data["profile"] = {"folder": str(folder), "steps_us": steps}


def bench(script, args, kernel, out):
    """The eager and the recompiled fragment by turns, and the artifact; or with --recorded the table of profiles made elsewhere."""
    if args.recorded:
        from_recorded(script["KERNEL"], out)
        return
    if args.e2e:
        out.line("NOTE: --e2e changes nothing about the table, which times the recompiled fragment, not the artifact")
    mode = args.precision or script["PRECISION"]
    inputs = kernel.fx_inputs()
    with torch.no_grad():
        compiled, artifact = compiled_fragment(script, mode), kernel.compile()
        eager_results = lambda: check.results(script["_run_eager"](inputs))  # noqa: E731
        compiled_results = lambda: check.results(compiled(*inputs))  # noqa: E731
        for _ in range(2):  # the second call still settles guards
            compiled_results()
        first = {"graph": compiled_results(), "artifact": check.results(artifact())}
        problems = [("before", wrong(script, kernel, mode, eager_results(), first))]
        paths = {"eager": eager_results, "graph": compiled_results, "again": compiled_results, "artifact": lambda: check.results(artifact())}
        spans, last = by_turns(paths, kernel.refill, args.cold)
        problems.append(("after", wrong(script, kernel, mode, last.pop("eager"), last)))
        kernel.restore()
    for folder, name, path in (("bench_eager_prof", "torch", "eager"), ("bench_compiled_prof", script["KERNEL"], "graph")):
        with recording(folder):  # recorded afterwards: what is launched inside a step is not a row of its own
            for step, (begin, end) in enumerate(spans[path], 1):
                _core.profile_step(step)
                _core.profile_span(name, "call", begin, end)
    eager, graph = (step_sums(newest(f)) for f in ("bench_eager_prof", "bench_compiled_prof"))
    again, alone = ([(end - begin) / 1000 for begin, end in spans[path]] for path in ("again", "artifact"))
    found = _core.bench_verdict(graph, eager, again, alone)
    for line in table(script["KERNEL"], graph, eager) + found["lines"]:
        out.line(line)
    problem = next(((when, text) for when, text in problems if text), None)
    if problem:
        out.failed = True
    out.line(f"outputs: FAILED {problem[0]} the timing: {problem[1]}" if problem else "outputs: right before and after the timing")
    cost = _core.recording_cost_ns()
    out.line(f"profiler: {cost:.0f} ns per launch")
    out.data["bench"] = {"graph_us": graph, "eager_us": eager, "control_us": again, "artifact_us": alone, "ratio": found["ratio"],
                         "spread": found["spread"], "ambiguous": found["ambiguous"], "outputs": problem is None, "cold": args.cold,
                         "profiler_ns": cost}


def from_recorded(name, out):
    """The table of the newest profiles in bench_eager_prof and bench_compiled_prof, whoever recorded them; nothing is run."""
    folders = [newest(f) for f in ("bench_eager_prof", "bench_compiled_prof")]
    eager, graph = (step_sums(f) for f in folders)
    found = _core.bench_verdict(graph, eager)
    for line in table(name, graph, eager) + found["lines"] + [f"read from {folders[0]} and {folders[1]}"]:
        out.line(line)
    out.data["bench"] = {"graph_us": graph, "eager_us": eager, "ratio": found["ratio"], "spread": found["spread"],
                         "ambiguous": found["ambiguous"], "folders": [str(f) for f in folders]}


def compiled_fragment(script, mode):
    return torch.compile(script["eager_fn"], backend="fuselab", options={**script["OPTIONS"], "precision": mode},
                         dynamic=not script["IS_STATIC"])


def by_turns(paths, refill, cold=False):
    """({path: (begin, end) of each kept step}, {path: results of the last step}).

    In every step all paths run on the same inputs, others than in the step before, and by turns in both orders: drift of the machine
    falls on all alike. Just before, each runs on still other inputs, so that it finds its own code and not the one before's in the
    caches. Results are kept until the next step, so that no path gets the memory that the one before has just written.
    """
    spans, last = {name: [] for name in paths}, {}
    names = list(paths)
    for step in range(LOOPS):
        last = {}
        for name in names if step % 2 else names[::-1]:
            refill(LOOPS + step)
            paths[name]()
            refill(step)
            if cold:
                _core.evict_caches()
            begin = _core.profile_clock()
            last[name] = paths[name]()
            end = _core.profile_clock()
            if step >= SKIPPED:
                spans[name].append((begin, end))
    return spans, last


def wrong(script, kernel, mode, eager, paths):
    """The first line that says FAILED of each path's results on the inputs as they are now; empty when all are right."""
    modes = {path: script["PRECISION"] if path == "artifact" else mode for path in paths}
    known = {m: check.reference(script, kernel, m) for m in set(modes.values())}
    right: list[tuple[str, list]] = []  # (mode, results): large tensors take long to judge, and paths mostly have the same bits
    for path, found in paths.items():
        label = "artifact" if path == "artifact" else "precision"
        if len(found) != len(eager):
            return f"{label}: {len(found)} results, eager has {len(eager)}"
        exact = known[modes[path]]
        for i, (name, expected) in enumerate(zip(script["OUTPUT_NAMES"], eager, strict=True)):
            if not isinstance(expected, torch.Tensor):
                continue
            got = check.plain(found[i])
            if any(m == modes[path] and _core.bit_equal(check.plain(other[i]), got) for m, other in right):
                continue
            verdict = _core.judge(check.plain(expected), got, None if isinstance(exact, str) else exact[i], None, name, label)
            if not verdict["passed"]:
                return verdict["line"]
        right.append((modes[path], found))
    return ""


@contextlib.contextmanager
def recording(folder):
    """Records what is launched inside, and writes it into a new folder below this one, whose path it gives."""
    stamp = time.strftime("%Y%m%d%H%M%S") + f"{time.time_ns() % 10**9:09}"
    path = pathlib.Path(folder) / f"cpu_{stamp}_fuselab"
    _core.profile_start()
    try:
        yield path
    except BaseException:
        _core.profile_stop()
        raise
    _core.profile_stop(str(path))


def newest(folder):
    """The folder of the newest kernel_details.csv below this one: torch_npu's or ours."""
    try:
        return pathlib.Path(_core.newest_profile(str(folder)))
    except _core.Error as e:
        if e.code != "profile.not_found":
            raise
        raise FileNotFoundError(str(e)) from None


def step_sums(folder):
    """Microseconds per step."""
    return [us for _, us in _core.step_sums(str(pathlib.Path(folder) / "kernel_details.csv"))]


def table(kernel, graph, eager):
    """The lines that tools parse; at most 10 rows. Ratio = eager / graph, the last one of the averages."""
    return _core.bench_table(kernel, graph, eager)
