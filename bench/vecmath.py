"""The elementary functions in f32: errors over all inputs, and rates, of fuselab, PyTorch eager (MKL, ATen) and SLEEF.

    python bench/vecmath.py prove [NAME...] [--stride N] [--pairs N] [--state FILE] [--jobs 2]
    python bench/vecmath.py rates [NAME...] [--rounds 9]
    python bench/vecmath.py table [--state FILE]

prove: every function of one argument over all 2^32 inputs (or every N-th), pow, atan2 and fmod over N pairs (special values, random bits,
moderate numbers, bases near 1, integers, results over the whole range), judged in compiled code: exact values in double, MPFR near the
midpoints of two f32. The texts compiled for AVX-512 and AVX2 see every input, baseline x86-64 every 64th (it calls fma from the C
library), eager every input. State is kept after every piece, so a run that was stopped goes on where it was; a function whose text
changed starts anew. Exit status 1 if special values or bits differ, or an error is above eager's.
rates: million results per second of one thread, in cache and from memory; the best of several interleaved rounds of process CPU time.
table: both as the Markdown tables of docs/vector-math.md.

It needs a built tree (make build), clang++-19, libsleef-dev and libmpfr-dev, and compiles its parts into build/vecmath.
"""
import argparse
import concurrent.futures
import ctypes
import hashlib
import importlib.util
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "vecmath"
SETS = {"avx512": "x86-64-v4", "avx2": "x86-64-v3", "baseline": "x86-64"}
PIECE, CHUNK = 1 << 27, 1 << 16
BASELINE_EVERY = 64
aten = torch.ops.aten

# name -> eager(x, y, out)
EAGER = {name: (lambda f: lambda x, _, out: f(x, out=out))(getattr(torch, name)) for name in (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc rsqrt sigmoid").split()}
EAGER |= {
    "recip": lambda x, _, out: torch.reciprocal(x, out=out), "silu": lambda x, _, out: aten.silu.out(x, out=out),
    "gelu": lambda x, _, out: aten.gelu.out(x, out=out), "gelu_tanh": lambda x, _, out: aten.gelu.out(x, approximate="tanh", out=out),
    "softplus": lambda x, _, out: aten.softplus.out(x, out=out), "hardswish": lambda x, _, out: aten.hardswish.out(x, out=out),
    "log_sigmoid": lambda x, _, out: out.copy_(torch.nn.functional.logsigmoid(x)), "mish": lambda x, _, out: aten.mish.out(x, out=out),
    "pow": lambda x, y, out: torch.pow(x, y, out=out), "atan2": lambda x, y, out: torch.atan2(x, y, out=out),
    "fmod": lambda x, y, out: torch.fmod(x, y, out=out),
}
PAIRS = ("pow", "atan2", "fmod")
LISTED = ("exp exp2 expm1 log log2 log10 log1p sin cos tan tanh sigmoid erf erfc gelu silu rsqrt pow atan2 softplus mish "
          "gelu_tanh").split()   # these must not be worse than eager; the others are shown too


class Tally(ctypes.Structure):
    _fields_ = [("max", ctypes.c_double), ("sum", ctypes.c_double), ("at", ctypes.c_float), ("at2", ctypes.c_float),
                *((name, ctypes.c_uint64) for name in ("inputs", "counted", "misrounded", "special", "asked"))]

    def add(self, other):
        if other.max > self.max:
            self.max, self.at, self.at2 = other.max, other.at, other.at2
        for name in ("sum", "inputs", "counted", "misrounded", "special", "asked"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def mean(self):
        return self.sum / max(self.counted, 1)

    def as_dict(self):
        return {name: float.hex(float(getattr(self, name))) if kind is not ctypes.c_uint64 else getattr(self, name)
                for name, kind in self._fields_}

    @classmethod
    def of(cls, saved):
        return cls(**{k: float.fromhex(v) if isinstance(v, str) else v for k, v in saved.items()})


def has_avx512():
    flags = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return flags is not None and "avx512vl" in flags[1].split()


def call(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        sys.exit(f"{words[0]} failed:\n{done.stderr[-3000:]}")
    return done.stdout


def newer(file, *sources):
    return file.exists() and all(file.stat().st_mtime > s.stat().st_mtime for s in sources)


class Parts:
    """The compiled judge and the loops of these functions' texts on each instruction set this processor has."""

    def __init__(self, names):
        BUILD.mkdir(parents=True, exist_ok=True)
        lib = pathlib.Path(importlib.util.find_spec("fuselab").origin).parent  # where libfuselab is, installed or in the source tree
        dump, judge = BUILD / "dump", BUILD / "libjudge.so"
        if not newer(dump, lib / "libfuselab.so", ROOT / "tests/exhaustive/vecmath_dump.cpp"):
            call("g++", "-std=c++20", "-O1", "-I.", "tests/exhaustive/vecmath_dump.cpp", f"-L{lib}", "-lfuselab", "-lfmt", f"-Wl,-rpath,{lib}",
                 "-Wl,--unresolved-symbols=ignore-in-shared-libs", "-o", dump)
        texts = {name: call(dump, name) for name in names}
        self.hashes = {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}
        together = call(dump, *names)
        folder = BUILD / hashlib.sha256(together.encode()).hexdigest()[:16]
        folder.mkdir(exist_ok=True)
        (folder / "texts.cpp").write_text(together)
        self.sets = {}
        for isa, march in SETS.items():
            so = folder / f"lib{isa}.so"
            if not so.exists():
                made = so.with_suffix(f".{os.getpid()}")
                call("clang++-19", "-w", "-O2", "-fPIC", "-shared", "-ffp-contract=off", f"-march={march}", folder / "texts.cpp", "-lm", "-o", made)
                made.replace(so)
            if isa != "avx512" or has_avx512():
                self.sets[isa] = ctypes.CDLL(str(so))
        sources = [ROOT / "bench/vecmath/judge.cpp", ROOT / "bench/vecmath/sleef.h", ROOT / "tests/exhaustive/vecmath_reference.h"]
        if not newer(judge, *sources):
            made = judge.with_suffix(f".{os.getpid()}")
            call("clang++-19", "-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-fPIC", "-shared", "-I.", sources[0], "-lsleef",
                 "-lmpfr", "-lgmp", "-o", made)
            made.replace(judge)
        self.judge = ctypes.CDLL(str(judge))
        self.judge.judge_differ.restype = ctypes.c_uint64
        self.judge.judge_sleef.restype = ctypes.c_bool

    def loop(self, isa, name):
        return getattr(self.sets[isa], f"run_{name}_f32")


def pointer(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def judge_piece(parts, name, first, count, stride, who):
    """Tallies over `count` inputs from number `first` on: of "ours" and "eager" as asked for, and how many of our results differ on each
    other instruction set."""
    judge, f = parts.judge, parts.judge.judge_find(name.encode())
    x, y, ours, other, eager = (torch.ones(CHUNK) for _ in range(5))
    exact = torch.empty(CHUNK, dtype=torch.float64)
    px, py, p_ours, p_other, p_eager, p_exact = map(pointer, (x, y, ours, other, eager, exact))
    isas = list(parts.sets)
    loops = [parts.loop(isa, name) for isa in isas]
    tallies, differ, size = {w: Tally() for w in who}, dict.fromkeys(isas[1:], 0), ctypes.c_long(CHUNK)
    for at in range(first, first + count, CHUNK):
        if name in PAIRS:
            judge.judge_pairs(f, ctypes.c_uint64(at), px, py, size)
        else:
            judge.judge_patterns(ctypes.c_uint64(at * stride), ctypes.c_uint64(stride), px, size)
        judge.judge_exact(f, px, py, p_exact, size)
        if "eager" in who:
            EAGER[name](x, y, eager)
            judge.judge_compare(f, px, py, p_exact, p_eager, size, ctypes.byref(tallies["eager"]))
        if "ours" not in who:
            continue
        loops[0](px, py, p_ours, size)
        judge.judge_compare(f, px, py, p_exact, p_ours, size, ctypes.byref(tallies["ours"]))
        for isa, loop in zip(isas[1:], loops[1:]):
            if isa == "baseline" and at // CHUNK % BASELINE_EVERY:
                continue
            loop(px, py, p_other, size)
            differ[isa] += judge.judge_differ(p_ours, p_other, size)
    return tallies, differ


def prove(parts, names, stride, pairs, state_file, jobs):
    state = json.loads(state_file.read_text()) if state_file.exists() else {}
    torch.set_num_threads(1)
    failed = False
    for name in names:
        total = pairs if name in PAIRS else -(-2**32 // stride)
        total = -(-total // CHUNK) * CHUNK
        keys = {"ours": f"{parts.hashes[name]} {total}", "eager": f"torch {torch.__version__} {total}"}
        have = state.setdefault(name, {})
        for who, key in keys.items():
            if have.get(who, {}).get("key") != key:
                have[who] = {"key": key, "next": 0, "tally": Tally().as_dict(), "differ": {}, "seconds": 0.0}
        cover(parts, name, have, total, stride, jobs, lambda: save(state, state_file))
        failed = report(name, have) or failed
    return 1 if failed else 0


def save(state, file):
    partial = file.with_suffix(".new")
    partial.write_text(json.dumps(state, indent=1) + "\n")
    partial.replace(file)


def cover(parts, name, have, total, stride, jobs, keep):
    """Brings both tallies of one function to `total` inputs, piece by piece, `jobs` pieces at a time."""
    piece = min(PIECE, max(CHUNK, total // 16))
    todo = [(at, [w for w in ("ours", "eager") if have[w]["next"] <= at]) for at in range(0, total, piece)]
    todo = [(at, who) for at, who in todo if who]
    began = time.time()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tasks = [pool.submit(judge_piece, parts, name, at, min(piece, total - at), stride, who) for at, who in todo]
        for (at, who), task in zip(todo, tasks):
            tallies, differ = task.result()
            for w in who:
                tally = Tally.of(have[w]["tally"])
                tally.add(tallies[w])
                have[w] |= {"tally": tally.as_dict(), "next": min(at + piece, total), "seconds": have[w]["seconds"] + time.time() - began}
            began = time.time()
            if "ours" in who:
                have["ours"]["differ"] = {isa: have["ours"]["differ"].get(isa, 0) + n for isa, n in differ.items()}
            keep()
            if sys.stderr.isatty():
                print(f"\r{name}: {min(at + piece, total) / total:4.0%} of {total} inputs", end="\x1b[K", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r", end="\x1b[K", file=sys.stderr)


def report(name, have):
    """Prints a function's line; true where it fails."""
    ours, eager = Tally.of(have["ours"]["tally"]), Tally.of(have["eager"]["tally"])
    wrong = [f"{isa} bits differ at {n}" for isa, n in have["ours"]["differ"].items() if n]
    wrong += [f"{ours.special} wrong special values"] if ours.special else []
    if name in LISTED:
        wrong += ["largest error above eager's"] if ours.max > eager.max else []
        wrong += ["mean error above eager's"] if ours.mean > eager.mean else []
    print(f"{name:12s}{ours.inputs:11d} inputs {have['ours']['seconds']:4.0f} s", end="")
    for who, t in (("", ours), ("eager ", eager)):
        at = t.at.hex() + (f" {t.at2.hex()}" if name in PAIRS else "")
        print(f" | {who}max {t.max:.6f} at {at}, mean {t.mean:.7f}, misrounded {t.misrounded / t.inputs:.3%}, special {t.special}", end="")
    print(f" | {ours.asked} by MPFR" + "".join("; " + w for w in wrong), flush=True)
    return bool(wrong)


# Inputs of the rates: where models use the functions. Every function without a line: -8 .. 8.
RANGES = {"log": (0.01, 8), "log2": (0.01, 8), "log10": (0.01, 8), "log1p": (-0.9, 8), "rsqrt": (0.01, 8), "recip": (0.01, 8),
          "asin": (-1, 1), "acos": (-1, 1), "atanh": (-0.99, 0.99), "acosh": (1, 8), "pow": (0.01, 8)}


def rates(parts, names, rounds):
    """name -> {size: {who: million results a second}}"""
    torch.set_num_threads(1)
    isa = next(iter(parts.sets))
    result = {}
    for name in names:
        f, loop, result[name] = parts.judge.judge_find(name.encode()), parts.loop(isa, name), {}
        for place, n in (("cache", 1 << 13), ("memory", 1 << 24)):
            low, high = RANGES.get(name, (-8, 8))
            generator = torch.Generator().manual_seed(1)
            x = torch.rand(n, generator=generator) * (high - low) + low
            y = torch.rand(n, generator=generator) * 8 - 4
            out = torch.empty(n)
            px, py, po, size = pointer(x), pointer(y), pointer(out), ctypes.c_long(n)
            who = {"ours": lambda: loop(px, py, po, size), "eager": lambda: EAGER[name](x, y, out)}  # noqa: B023
            if parts.judge.judge_sleef(f, px, py, po, ctypes.c_long(16)):
                who["sleef"] = lambda: parts.judge.judge_sleef(f, px, py, po, size)  # noqa: B023
            best = dict.fromkeys(who, math.inf)
            repeats = max(1, (1 << 20) // n)
            for _ in range(rounds if place == "cache" else max(3, rounds // 2)):
                for key, run in who.items():
                    run()
                    began = time.thread_time_ns()
                    for _ in range(repeats):
                        run()
                    best[key] = min(best[key], (time.thread_time_ns() - began) / repeats)
            result[name][place] = {key: 1e3 * n / t for key, t in best.items()}
        r = result[name]
        print(f"{name:12s}" + "".join(f" | {place} ours {v['ours']:6.0f} eager {v['eager']:6.0f}" + (f" sleef {v['sleef']:6.0f}" if "sleef" in v
              else " " * 13) for place, v in r.items()) + f" | cache/eager {r['cache']['ours'] / r['cache']['eager']:.2f} memory/eager "
              f"{r['memory']['ours'] / r['memory']['eager']:.2f}" + (f" cache/sleef {r['cache']['ours'] / r['cache']['sleef']:.2f}"
              if "sleef" in r["cache"] else ""), flush=True)
    return result


def means(result, names):
    """Geometric means of the ratios: cache and memory against eager and SLEEF."""
    def mean(place, other):
        ratios = [r[place]["ours"] / r[place][other] for name, r in result.items() if name in names and other in r[place]]
        return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
    return {f"{place}, {other}": mean(place, other) for place in ("cache", "memory") for other in ("eager", "sleef")}


def figure(value):
    return f"{value:.4f}" if value < 100 else f"{value:.3g}"


def table(state, rated):
    """Errors and rates as two Markdown tables."""
    lines = ["| function | inputs | max | max, eager | mean | mean, eager | misrounded | misrounded, eager | special | special, eager |",
             "|---" * 10 + "|"]
    for name in EAGER:
        if name in state:
            both = [Tally.of(state[name][w]["tally"]) for w in ("ours", "eager")]
            row = [name, "all" if both[0].inputs == 2**32 else str(both[0].inputs), *(figure(t.max) for t in both)]
            row += [f"{t.mean:.5f}" if t.mean < 100 else f"{t.mean:.3g}" for t in both]
            row += [f"{100 * t.misrounded / t.inputs:.2g} %" for t in both] + [str(t.special) for t in both]
            lines.append("| " + " | ".join(row) + " |")
    lines += ["", "| function | cache | eager | SLEEF | ratio, eager | ratio, SLEEF | memory | eager | SLEEF | ratio, eager |", "|---" * 10 + "|"]
    for name, r in rated.items():
        cache, memory = r["cache"], r["memory"]
        shown = [f"{cache[w]:.0f}" if w in cache else "" for w in ("ours", "eager", "sleef")]
        shown += [f"{cache['ours'] / cache[w]:.2f}" if w in cache else "" for w in ("eager", "sleef")]
        shown += [f"{memory[w]:.0f}" if w in memory else "" for w in ("ours", "eager", "sleef")]
        lines.append("| " + " | ".join([name, *shown, f"{memory['ours'] / memory['eager']:.2f}"]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["prove", "rates", "table"])
    parser.add_argument("names", nargs="*", metavar="NAME", help="functions; all if none is given")
    parser.add_argument("--stride", type=int, default=1, help="of the 2^32 bit patterns (odd; 1: all)")
    parser.add_argument("--pairs", type=int, default=1 << 28, help="how many, for functions of two arguments")
    parser.add_argument("--state", type=pathlib.Path, default=BUILD / "state.json", help="the results so far")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="threads of prove")
    parser.add_argument("--rounds", type=int, default=9, help="of rates")
    args = parser.parse_args()
    unknown = [n for n in args.names if n not in EAGER]
    if unknown:
        parser.error(f"no function is called {', '.join(unknown)}; there are {', '.join(EAGER)}")
    if args.what == "table":
        saved = args.state.with_name("rates.json")
        print(table(json.loads(args.state.read_text()), json.loads(saved.read_text()) if saved.exists() else {}))
        return 0
    names = args.names or list(EAGER)
    parts = Parts(names)
    if args.what == "prove":
        return prove(parts, names, args.stride, args.pairs, args.state, args.jobs)
    result = rates(parts, names, args.rounds)
    saved = args.state.with_name("rates.json")
    saved.write_text(json.dumps((json.loads(saved.read_text()) if saved.exists() else {}) | result, indent=1) + "\n")
    for which, chosen in (("the listed functions", LISTED), ("all", list(EAGER))):
        print(f"geometric means, {which}: " + "; ".join(f"{k} {v:.2f}" for k, v in means(result, chosen).items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
