"""What benchmark.py calls: `main(globals())` of the script. The modes, their lines and exit codes.

Exit codes, every mode: 0 all asked for was done and held, 1 it ran and failed or could not be run, 2 the call was wrong.
"""
import argparse
import json
import math
import os
import sys
import traceback

PAGE = "docs/repro.md"


class CannotRun(Exception):
    """A reason for exit code 1 that needs no traceback."""


class Wrong(Exception):
    """A reason for exit code 2."""


def main(script, argv=None):
    """Runs the modes that the command line asks for; returns the exit code."""
    parser = _parser(script)
    try:
        args = parser.parse_args(argv)
    except SystemExit as e:
        return e.code if isinstance(e.code, int) else 2
    has_check = "eager_fn" in script
    if (args.check or args.bench) and not has_check:
        mode = "--check" if args.check else "--bench"
        print(f"{parser.prog}: error: {mode} is not to be had in this script, only --profile: "
              f"{script.get('NO_CHECK_REASON') or 'it has no eager_fn'}. See {PAGE}#profile-only.", file=sys.stderr)
        return 2
    if (args.cold or args.recorded) and not args.bench:
        print(f"{parser.prog}: error: --cold and --recorded go with --bench", file=sys.stderr)
        return 2
    out = Output(args)
    try:
        _run(script, args, out)
    except Wrong as e:
        print(f"{parser.prog}: error: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        out.fail("interrupted")
    except Exception as e:  # whatever it is: its reason, and exit 1
        if args.verbose:
            traceback.print_exc()
        out.fail(_reason(e))
    return out.finish()


def _parser(script):
    parser = argparse.ArgumentParser(
        prog=os.path.basename(str(script.get("__file__", "benchmark.py"))),
        description=f"The kernel {script.get('KERNEL')} on its own. Without a mode: --profile.",
        epilog=f"Exit codes: 0 done and held, 1 failed, 2 the call was wrong. {PAGE} says more.")
    parser.add_argument("--check", action="store_true", help="eager, recompiled fragment and artifact against each other and fp64")
    parser.add_argument("--bench", action="store_true", help="time of the eager and of the recompiled fragment, by turns")
    parser.add_argument("--profile", action="store_true", help="run the artifact 11 times and write ./profiling (the default)")
    parser.add_argument("--e2e", action="store_true", help="with a mode: the artifact is made anew from the script's KERNEL_IR")
    parser.add_argument("--cold", action="store_true", help="with --bench: nothing is in a cache when a step begins")
    parser.add_argument("--recorded", action="store_true",
                        help="with --bench: the table of the newest profiles in ./bench_eager_prof and ./bench_compiled_prof, also "
                             "torch_npu's; runs nothing")
    parser.add_argument("--inputs", metavar="FILE", help="inputs by name from a file (.safetensors, .npz, .pt) instead of random ones")
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help="of the random inputs (default 0)")
    parser.add_argument("--precision", choices=("block", "eager"), help="of the recompiled fragment (default: as it was)")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout instead of lines")
    parser.add_argument("--verbose", action="store_true", help="with tracebacks")
    return parser


def _seed(text):
    value = int(text)
    if not 0 <= value < 2**64:
        raise argparse.ArgumentTypeError("a seed is a number from 0 to 2**64 - 1")
    return value


def _reason(error):
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _strict(value):
    """JSON has no nan and no infinity: they become texts."""
    if isinstance(value, dict):
        return {k: _strict(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(v) for v in value]
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


class Output:
    """Lines for people, or with --json one document."""

    def __init__(self, args):
        self.json, self.lines, self.failed, self.data = args.json, [], False, {}

    def line(self, text):
        self.lines.append(text)
        if not self.json:
            print(text, flush=True)

    def fail(self, reason):
        self.failed = True
        self.data["error"] = reason
        print(f"FAILED: {reason}", file=sys.stderr)

    def finish(self):
        if self.json:
            print(json.dumps(_strict({**self.data, "passed": not self.failed, "lines": self.lines}), indent=2))
        return 1 if self.failed else 0


def _run(script, args, out):
    import torch

    from .. import Error, __version__

    made, here = script["MADE_WITH"], {"fuselab": __version__, "torch": torch.__version__}
    other = [f"{k} {made[k]} (here {here[k]})" for k in made if made[k] and made[k] != here[k]]
    if other:
        print(f"WARNING: this script was made with {' and '.join(other)}; the artifact runs as it stands.", file=sys.stderr)
    from . import bench, check
    from .kernel import Kernel

    out.data.update(kernel=script["KERNEL"], seed=args.seed)
    kernel = Kernel(script, args)
    out.line(f"kernel {script['KERNEL']}, seed {args.seed}")
    try:
        if args.check:
            check.run(script, args, kernel, out)
        if args.bench:
            bench.bench(script, args, kernel, out)
        if args.profile or not (args.check or args.bench):
            bench.profile(script, args, kernel, out)
    except Error as e:
        if e.code in ("jit.compile", "jit.link", "kernel.syntax", "kernel.invalid"):
            raise CannotRun(f"{e}\nThe kernel alone: fuselab compile kernel.ir; {PAGE}#the-artifact-does-not-compile") from e
        raise
