"""Cost of one call of a small compiled graph over the floor that any Dynamo backend pays (one that returns a constant).

    python bench/call_overhead.py [--size 16] [--json]
"""
import argparse
import json
import statistics
import time

import torch

import fuselab  # noqa: F401  registers the backend


def constant_backend(gm, inputs):
    """What no backend can be cheaper than: Dynamo's guards and a call that returns a made result."""
    with torch.no_grad():
        result = tuple(torch.empty(tuple(int(n) for n in inputs[0].shape)) for _ in range(1))
    return lambda *args: result


def per_call(fn, args, calls=2000, rounds=15):
    best = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            fn(*args)
        best.append((time.perf_counter() - start) / calls)
    return statistics.median(best) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    x, y = torch.randn(args.size), torch.randn(args.size)
    rows = {}
    with torch.no_grad():
        for name, backend in (("floor", constant_backend), ("fuselab", "fuselab")):
            torch._dynamo.reset()
            f = torch.compile(lambda x, y: (x + y).abs(), backend=backend)
            f(x, y)
            rows[name] = per_call(f, (x, y))
        rows["eager"] = per_call(lambda x, y: (x + y).abs(), (x, y))
    rows["over floor"] = rows["fuselab"] - rows["floor"]
    print(json.dumps(rows) if args.json else "\n".join(f"{k:12} {v:7.2f} us" for k, v in rows.items()))


if __name__ == "__main__":
    main()
