"""E: training a GPT-2-shaped language model, eager against fused, over several seeds."""
import concurrent.futures
import dataclasses
import itertools
import json
import math
import os
import subprocess
import sys

import torch

from . import frame, plot
from .language_model import Characters, Model, batch, text

TITLE = "training curves, eager against fused"


@dataclasses.dataclass
class Size:
    layers: int
    width: int
    steps: int
    every: int      # steps between recorded points
    eager: int      # seeds
    fused: int
    batch: int


SIZES = {"small": Size(2, 64, 200, 50, 3, 1, 8), "default": Size(4, 128, 1000, 50, 3, 3, 8), "full": Size(4, 256, 5000, 50, 5, 5, 16)}
CURVES = ("loss", "gradient norm", "perplexity")


def train(size, symbols, data, held, seed, fused, progress):
    """{curve: [(step, value)]}. Loss and gradient norm are those of the step; perplexity is on text that is not trained on."""
    torch.manual_seed(seed)
    model = Model(symbols, size.layers, size.width)
    torch._dynamo.reset()
    loss_of = torch.compile(model, backend="fuselab") if fused else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    order = torch.Generator().manual_seed(seed)
    probe = batch(held, 16, torch.Generator().manual_seed(1))
    curves = {name: [] for name in CURVES}
    for step in range(size.steps + 1):
        optimizer.zero_grad()
        loss = loss_of(batch(data, size.batch, order))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if step % size.every == 0:
            with torch.no_grad():
                perplexity = math.exp(float(loss_of(probe)))
            for name, value in zip(CURVES, (float(loss.detach()), float(norm), perplexity), strict=True):
                curves[name].append((step, value))
        optimizer.step()
        progress.step(step, size.steps, f"steps, {'fused' if fused else 'eager'}, seed {seed}")
    return curves


def texts():
    """(characters, text to train on, text held back), the same in every process."""
    words = text(4000, 0)
    characters = Characters(words)
    return characters, characters.encode(words), characters.encode(text(600, 1))


def run(size, report, progress):
    s = SIZES[size]
    characters, data, _ = texts()
    report.about = (f"{s.layers} layers, width {s.width}, 4 heads, context 64, f32, AdamW, {s.steps} steps of {s.batch} pieces of a text made here "
                    f"({len(data)} characters, {len(characters)} symbols). {s.eager} seeds eager, {s.fused} fused; a seed fixes weights and order. "
                    "Each training is a process with one thread.")
    runs = [(fused, seed) for fused, seeds in ((True, s.fused), (False, s.eager)) for seed in range(seeds)]
    curves, done = {}, 0
    with concurrent.futures.ThreadPoolExecutor(frame.cores()) as pool:
        waiting = {pool.submit(_process, size, fused, seed): f"{'fused' if fused else 'eager'} {seed}" for fused, seed in runs}
        progress.line(f"{len(waiting)} trainings, {frame.cores()} at a time")
        for future in concurrent.futures.as_completed(waiting):
            curves[waiting[future]] = future.result()
            done += 1
            progress.line(f"{waiting[future]} is done ({done} of {len(waiting)})")
    judge(curves, s.eager, s.fused, report)


def _process(size, fused, seed):
    """The curves of one training, made in a process of its own: models this small gain nothing from a second thread."""
    done = subprocess.run([sys.executable, "-m", "fuselab.prove.task_e", size, str(int(fused)), str(seed)], capture_output=True, text=True,
                          check=False, env=os.environ | {"OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise RuntimeError(f"a process of task E ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def judge(curves, eager_seeds, fused_seeds, report):
    """Tables, plots and claims of curves {"eager 0": {curve: [(step, value)]}, ...}.

    Rounding differences grow in training until two runs of one seed are as different as noise lets them be, so at a single step, where
    eager's few seeds may happen to meet, even one of eager's seeds lies outside the others. Distances are averaged over the curve.
    """
    eager = [f"eager {i}" for i in range(eager_seeds)]
    fused = [f"fused {i}" for i in range(fused_seeds)]
    verdicts: list = []
    for curve in CURVES:
        steps = [step for step, _ in curves[eager[0]][curve]]
        rows, beyond, outside = [], 0, 0
        twins, seeds, means, halves = [], [], [], []   # a distance for each step
        for i, step in enumerate(steps):
            at = {name: curves[name][curve][i][1] for name in eager + fused}
            low, high = min(at[n] for n in eager), max(at[n] for n in eager)
            apart = [abs(at[f"fused {k}"] - at[f"eager {k}"]) for k in range(fused_seeds)]
            rows.append([step, *[at[n] for n in eager + fused], high - low, max(apart)])
            twins.append(sum(apart) / len(apart))
            seeds.append(_mean(abs(at[a] - at[b]) for a, b in itertools.combinations(eager, 2)))
            means.append(abs(_mean(at[n] for n in fused) - _mean(at[n] for n in eager)))
            halves.append((high - low) / 2)
            beyond += not max(apart) <= high - low
            outside += sum(not min(others) <= at[n] <= max(others) for n in eager for others in [[at[m] for m in eager if m != n]])
        short = curve.replace(" ", "_")
        report.table(short, f"{curve}; spread: between eager's seeds; distance: largest of a fused run to the eager run of its seed",
                     ["step", *eager, *fused, "spread", "distance"], rows)
        report.plots.append(plot.Plot(f"E_{short}", f"{curve}: eager (lines) and fused (broken lines)", plot.lines(
            curve, "step", curve, {n: curves[n][curve] for n in eager + fused}, dashed=fused)))
        report.claim(f"{curve}: over the curve, a fused run is closer to the eager run of its seed than eager's seeds are to each other",
                     _mean(twins) <= _mean(seeds), f"{_mean(twins):.3g} apart, seeds {_mean(seeds):.3g}")
        verdict = [curve, _mean(twins), _mean(seeds), "", "", beyond, len(steps), outside / eager_seeds]
        if fused_seeds == eager_seeds:
            report.claim(f"{curve}: over the curve, the mean of the fused runs is within the spread of eager's seeds", _mean(means) <= _mean(halves),
                         f"{_mean(means):.3g} from eager's mean, half the spread {_mean(halves):.3g}")
            verdict[3:5] = _mean(means), _mean(halves)
        verdicts.append(verdict)
    report.table("verdict", "Distances, averaged over the curve; and the points where the largest distance exceeds the spread, beside those "
                 "where a seed of eager's lies outside the other seeds",
                 ["curve", "fused to eager, same seed", "eager's seeds", "mean to mean", "half the spread", "points beyond", "points",
                  "points of an eager seed"], verdicts)
    report.notes.append("A seed fixes the start; from there roundings alone separate a fused run from its eager twin, slowly at first, and then, "
                        "as in any such training, until they are as far apart as noise is. Single points decide nothing: eager's own seeds lie "
                        "outside each other at most of them.")


def _mean(values):
    values = list(values)
    return sum(values) / len(values)


def main(size, fused, seed):
    from .. import torch_backend

    torch_backend.register()
    torch.set_num_threads(1)
    characters, data, held = texts()
    print(json.dumps(train(SIZES[size], len(characters), data, held, int(seed), fused == "1", frame.Progress(True))))


if __name__ == "__main__":
    main(*sys.argv[1:])
