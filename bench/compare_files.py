"""What `fuselab compare` takes for two files of 500 MB: wall clock, CPU time, resident memory.

    python bench/compare_files.py [MEGABYTES]

The files (25 f32 tensors, a fifth of them equal, two thirds of the others' elements one unit apart) are made in a folder that is
removed at the end, and are in the page cache when the program starts.
"""

import multiprocessing
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import time

TENSORS = 25


def make(folder, megabytes):
    import numpy as np

    from fuselab import numerics

    rng = np.random.default_rng(0)
    a, b = {}, {}
    for i in range(TENSORS):
        x = rng.standard_normal(megabytes * 1_000_000 // 4 // TENSORS, dtype=np.float32)
        steps = rng.integers(-1, 2, x.shape, dtype=np.int32) * (x != 0) if i % 5 else np.int32(0)
        a[f"layer{i}"] = x
        b[f"layer{i}"] = (x.view(np.int32) + steps).astype(np.int32).view(np.float32)
    for name, tensors in (("a", a), ("b", b)):
        numerics.save(folder / f"{name}.safetensors", tensors)


def program():
    """The program of this installation or build."""
    beside = pathlib.Path(sysconfig.get_path("scripts")) / "fuselab"
    built = pathlib.Path(__file__).parents[1] / "build/dev/bin/fuselab"
    return str(next(p for p in (built, beside) if p.exists()))


def main():
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / f"{name}.safetensors" for name in "ab"]
        maker = multiprocessing.Process(target=make, args=(pathlib.Path(folder), megabytes))  # a child's resident memory begins as ours
        maker.start()
        maker.join()
        for _ in range(3):
            start = time.perf_counter()
            done = subprocess.Popen([program(), "compare", *map(str, paths)], stdout=subprocess.PIPE, text=True)
            last = done.stdout.read().splitlines()[-1]
            _, status, used = os.wait4(done.pid, 0)
            wall = time.perf_counter() - start
            assert status == 0, last
            print(f"{megabytes} MB each: {wall:.1f} s wall, {used.ru_utime + used.ru_stime:.1f} s CPU, {used.ru_maxrss / 1024:.0f} MB "
                  f"resident; {last}")


if __name__ == "__main__":
    main()
