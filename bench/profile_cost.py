"""What the step profiler adds to a launch: the C++ path alone, and a call of a compiled graph with several kernels from Python.

    python bench/profile_cost.py [--json]

Processor time of this thread, fastest of several rounds: other processes do not count. The aim is below 200 ns per launch.
"""
import argparse
import json
import time

import torch

import fuselab
from fuselab import _core

LIMIT = 200.0


def per_call(fn, recorded, calls=500):
    if recorded:
        _core.profile_start()
    fn()
    start = time.thread_time_ns()
    for _ in range(calls):
        fn()
    spent = time.thread_time_ns() - start
    if recorded:
        _core.profile_stop()
    return spent / calls


def model_cost(rounds=15):
    """(nanoseconds per launch, launches per call) of four kernels that cannot be one."""
    text = """graph four(x: f32[64]) {
  a = neg(x)
  b = abs(a)
  c = neg(b)
  d = abs(c)
  return d
}
"""
    graph = fuselab.compile(text, no_fuse=True)
    x = torch.randn(64)
    launches = sum(kernel["uses"] for kernel in graph.kernels)
    off = on = float("inf")
    for _ in range(rounds):
        off = min(off, per_call(lambda: graph.core(x), False))
        on = min(on, per_call(lambda: graph.core(x), True))
    return max(0.0, on - off) / launches, launches


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    one = _core.recording_cost_ns()
    several, launches = model_cost()
    rows = {"one launch per call (ns)": one, f"{launches} launches per call (ns each)": several, "limit (ns)": LIMIT}
    print(json.dumps(rows) if args.json else "\n".join(f"{k:32} {v:7.1f}" for k, v in rows.items()))
    return 0 if max(one, several) < LIMIT else 1


if __name__ == "__main__":
    raise SystemExit(main())
