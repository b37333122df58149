"""Times functions by turns, so that a ratio comes from one run under one load."""
import math
import time


def once(fn, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        fn()
    return (time.perf_counter() - start) / repeats


def by_turns(functions, seconds=0.6, least=5):
    """The fastest round of each function, in seconds: what it takes undisturbed. Rounds go on for `seconds` per function."""
    for fn in functions:
        fn()
    repeats = [max(1, math.ceil(0.001 / max(once(fn, 1), 1e-9))) for fn in functions]
    samples = [[] for _ in functions]
    end = time.perf_counter() + seconds * len(functions)
    while len(samples[0]) < least or time.perf_counter() < end:
        for fn, count, taken in zip(functions, repeats, samples):
            taken.append(once(fn, count))
        if len(samples[0]) >= 1000:
            break
    return [min(taken) for taken in samples]


def geometric_mean(values):
    values = [v for v in values if v > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")
