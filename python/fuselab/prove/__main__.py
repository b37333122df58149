"""`python -m fuselab.prove`: the command line over the tasks."""
import argparse
import datetime
import importlib
import json
import os
import pathlib
import platform
import sys
import time
import traceback

from . import frame, page

TASKS = ("A", "B", "C1", "C2", "C3", "D", "E", "F")


def parser():
    p = argparse.ArgumentParser(
        prog="fuselab prove", description="Runs the studies of the precision report and writes their tables and plots into a folder.",
        epilog="Exit codes: 0 every claim holds, 1 one does not or a task could not be run, 2 the call was wrong.\n"
               "Examples:\n  fuselab prove\n  fuselab prove A C --small\n  fuselab prove B --out report --json\n  fuselab prove F --out report --add",
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tasks", nargs="*", metavar="TASK", help=f"{', '.join(TASKS)}; C is C1, C2 and C3; none: all")
    size = p.add_mutually_exclusive_group()
    size.add_argument("--small", dest="size", action="store_const", const="small", help="sizes for a test run: under 3 minutes for all")
    size.add_argument("--full", dest="size", action="store_const", const="full", help="the sizes of the plan: hours")
    p.set_defaults(size="default")
    p.add_argument("--out", default="fuselab_prove", metavar="DIR", help="folder of tables, plots and index.html (default: %(default)s)")
    p.add_argument("--add", action="store_true", help="keep in the pages of DIR the tasks of earlier runs of this size, version and processor")
    p.add_argument("--json", action="store_true", help="print the results as JSON")
    p.add_argument("--quiet", action="store_true", help="no progress on stderr")
    return p


def chosen(names):
    """The tasks meant, in order; throws ValueError naming the one that does not exist."""
    out = []
    for name in names:
        found = [t for t in TASKS if name.upper() in (t, t[0])]
        if not found:
            raise ValueError(f"there is no task {name}; there are {', '.join(TASKS)}")
        out += found
    return [t for t in TASKS if t in out] or list(TASKS)


def about(size):
    import torch

    from .. import __version__

    model = ""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    except OSError:
        pass
    return [("size", size), ("fuselab", __version__), ("PyTorch", torch.__version__), ("Python", platform.python_version()),
            ("processor", f"{model or platform.machine()}, {frame.cores()} cores"),
            ("date", datetime.date.today().isoformat())]


def run_task(task, size, progress):
    """Its report. What it throws is a claim that does not hold: the other tasks run all the same."""
    module = importlib.import_module(f".task_{task.lower()}", __package__)
    report = frame.Report(task, module.TITLE, "")
    began = time.monotonic()
    with progress.of(task):
        try:
            module.run(size, report, progress)
        except Exception as e:  # noqa: BLE001
            progress.line(traceback.format_exc())
            report.claim("the task runs to its end", False, f"{type(e).__name__}: {e}")
        report.seconds = time.monotonic() - began
        for claim in report.claims:
            if not claim.holds:
                progress.line(claim.line())
        held = sum(c.holds for c in report.claims)
        progress.line(f"{held} of {len(report.claims)} claims hold, {report.seconds:.1f} s")
    return report


def main(argv=None):
    args = parser().parse_args(argv)
    try:
        tasks = chosen(args.tasks)
        os.makedirs(args.out, exist_ok=True)
    except (ValueError, OSError) as e:
        return _error(args.json, str(e), 2)
    progress = frame.Progress(args.quiet)
    progress.line("importing PyTorch")
    try:
        import torch
    except ImportError as e:
        return _error(args.json, f"PyTorch cannot be imported ({e}): the studies compare with it; install torch for {sys.executable}", 1)
    from .. import torch_backend

    torch_backend.register()
    facts = about(args.size)
    torch.manual_seed(0)
    reports: list = []
    earlier = {t: frame.read_task(args.out, t, facts) for t in TASKS if args.add and t not in tasks}

    def all_reports():
        known = {**earlier, **{r.task: r for r in reports}}
        return [known[t] for t in TASKS if known.get(t)]

    try:
        frame.write(args.out, "index.html", page.page(all_reports(), facts))   # a folder that cannot be written shows now, not after an hour
        for task in tasks:
            reports.append(run_task(task, args.size, progress))
            frame.write_task(args.out, reports[-1], facts)
            frame.write(args.out, "index.html", page.page(all_reports(), facts))
        reports = all_reports()
        text = "# Precision report\n\n" + "\n".join(f"- {k}: {v}" for k, v in facts) + "\n\n" + "\n".join(r.markdown() for r in reports)
        frame.write(args.out, "report.md", text)
        document = {"about": dict(facts), "holds": all(r.holds for r in reports), "tasks": [r.data() for r in reports]}
        frame.write(args.out, "report.json", json.dumps(document, indent=1) + "\n")
    except OSError as e:
        return _error(args.json, f"the results cannot be written to {args.out}: {e.strerror}; give --out a folder with room", 1)
    except KeyboardInterrupt:
        return _error(args.json, f"stopped; what was done is in {args.out}", 130)
    if args.json:
        print(json.dumps(document, indent=1))
    else:
        for r in reports:
            print(f"{r.task:3} {r.title}: {sum(c.holds for c in r.claims)} of {len(r.claims)} claims hold, {r.seconds:.1f} s")
            for claim in r.claims:
                if not claim.holds:
                    print(f"    {claim.line()}")
        print(f"page: {os.path.join(args.out, 'index.html')}")
    return 0 if document["holds"] else 1


def _error(as_json, message, code):
    print(f"fuselab: error: {message}", file=sys.stderr)
    if as_json:
        print(json.dumps({"error": {"code": "prove", "message": message}, "exit": code}))
    return code


if __name__ == "__main__":
    sys.exit(main())
