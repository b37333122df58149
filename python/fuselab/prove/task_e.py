"""E: training a GPT-2-shaped language model, eager against fused, over several seeds."""
import concurrent.futures
import dataclasses
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
    """Tables, plots and claims of curves {"eager 0": {curve: [(step, value)]}, ...}."""
    eager = [f"eager {i}" for i in range(eager_seeds)]
    fused = [f"fused {i}" for i in range(fused_seeds)]
    for curve in CURVES:
        steps = [step for step, _ in curves[eager[0]][curve]]
        rows, beyond, outside = [], [], []
        for i, step in enumerate(steps):
            at = {name: curves[name][curve][i][1] for name in eager + fused}
            low, high = min(at[n] for n in eager), max(at[n] for n in eager)
            apart = max(abs(at[f"fused {k}"] - at[f"eager {k}"]) for k in range(fused_seeds))
            mean = sum(at[n] for n in fused) / len(fused)
            rows.append([step, *[at[n] for n in eager + fused], high - low, apart])
            if not apart <= high - low:
                beyond.append((step, apart, high - low))
            if not low <= mean <= high:
                outside.append((step, mean, low, high))
        short = curve.replace(" ", "_")
        report.table(short, f"{curve}; spread: between eager's seeds; distance: largest of a fused run to the eager run of its seed",
                     ["step", *eager, *fused, "spread", "distance"], rows)
        report.plots.append(plot.Plot(f"E_{short}", f"{curve}: eager (lines) and fused (broken lines)", plot.lines(
            curve, "step", curve, {n: curves[n][curve] for n in eager + fused}, dashed=fused)))
        report.claim(f"{curve}: a fused run stays closer to the eager run of its seed than eager's seeds are to each other", not beyond,
                     "; ".join(f"step {a}: {b:.3g} apart, spread {c:.3g}" for a, b, c in beyond[:3]))
        if fused_seeds == eager_seeds:
            report.claim(f"{curve}: the mean of the fused runs lies between eager's lowest and highest", not outside,
                         "; ".join(f"step {a}: {b:.6g}, eager {c:.6g} to {d:.6g}" for a, b, c, d in outside[:3]))


def main(size, fused, seed):
    from .. import torch_backend

    torch_backend.register()
    torch.set_num_threads(1)
    characters, data, held = texts()
    print(json.dumps(train(SIZES[size], len(characters), data, held, int(seed), fused == "1", frame.Progress(True))))


if __name__ == "__main__":
    main(*sys.argv[1:])
