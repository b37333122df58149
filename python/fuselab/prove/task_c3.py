"""C3: rsqrt and division by Newton's iteration from an integer seed, round by round, against the exact form."""
import torch

from . import plot
from .ir import compile_ir, kernel_of
from .stats import ulp_distance, ulp_errors

TITLE = "rounds of Newton's iteration"
SIZES = {"small": 256, "default": 1024, "full": 1024}
ROUNDS = (0, 1, 2, 3)


def graph(op, n):
    t = f"f16[{n}, {n}]"
    if op == "rsqrt":
        return f"graph newton(x: {t}) {{ w = cast(x, dtype=f32) r = rsqrt(w) y = cast(r, dtype=f16) return r, y }}"
    return f"graph newton(x: {t}, d: {t}) {{ a = cast(x, dtype=f32) b = cast(d, dtype=f32) r = div(a, b) y = cast(r, dtype=f16) return r, y }}"


def renumbered(word, numbers):
    """`%3,` under the number that %3 has now."""
    name = word.rstrip(",:")
    return numbers.get(name, name) + word[len(name):]


def newton_ir(ir, op, rounds):
    """The kernel's IR with its rsqrt or div statement replaced: a seed from the bits, then `rounds` of Newton's iteration.

    rsqrt: s <- s (1.5 - 0.5 x s^2). div: s <- s (2 - d s), then x s.
    """
    lines, numbers = [], {}
    state = {"next": 0}

    def emit(body):
        lines.append(f"  %{state['next']} = {body}: f32")
        state["next"] += 1
        return f"%{state['next'] - 1}"

    for line in ir.splitlines():
        text = line.strip()
        if not text.startswith("%"):
            lines.append(line)
            continue
        left, _, right = text.partition(" = ")
        words = [renumbered(w, numbers) for w in right.split(" ")]
        if words[0] != op:
            lines.append(f"  %{state['next']} = {' '.join(words)}")
            numbers[left] = f"%{state['next']}"
            state["next"] += 1
            continue
        last = words[1 if op == "rsqrt" else 2].rstrip(",:")
        seed = "rsqrt_seed" if op == "rsqrt" else "recip_seed"
        s = emit(f"{seed} {last}")
        if op == "rsqrt":
            half, three = emit("const 0.5"), emit("const 1.5")
            scaled = emit(f"mul {half}, {last}")
            for _ in range(rounds):
                square = emit(f"mul {s}, {s}")
                product = emit(f"mul {scaled}, {square}")
                factor = emit(f"sub {three}, {product}")
                s = emit(f"mul {s}, {factor}")
        else:
            two = emit("const 2.0")
            for _ in range(rounds):
                product = emit(f"mul {last}, {s}")
                factor = emit(f"sub {two}, {product}")
                s = emit(f"mul {s}, {factor}")
            dividend = words[1].rstrip(",:")
            s = emit(f"mul {dividend}, {s}")
        numbers[left] = s
    if not any("_seed" in line for line in lines):
        raise RuntimeError(f"the kernel has no {op} to replace:\n{ir}")
    return "\n".join(lines) + "\n"


def run(size, report, progress):
    n = SIZES[size]
    g = torch.Generator().manual_seed(0)
    report.about = (f"f16[{n}, {n}] uniform in (0.01, 100), computed in f32: a first guess from the bits (integer subtraction, no estimate "
                    "instruction), then 0 to 3 rounds of Newton's iteration; and what kernels do, the IEEE operations. "
                    "Distances to the correctly rounded f16.")
    for op in ("rsqrt", "div"):
        given = [(torch.rand(n, n, generator=g) * 99.99 + 0.01).half() for _ in range(1 if op == "rsqrt" else 2)]
        wide = [t.double() for t in given]
        exact = wide[0].rsqrt() if op == "rsqrt" else wide[0] / wide[1]
        right = exact.half()
        text, ir = kernel_of(graph(op, n))
        forms = {f"{r} rounds": newton_ir(ir, op, r) for r in ROUNDS} | {"exact form": ir}
        rows: list = []
        histogram: dict = {}
        for name, form in forms.items():
            progress.line(f"{op}, {name}")
            r, y = compile_ir(text, form)(*given)
            d = ulp_distance(y, right)
            histogram[name] = [float((d == k).double().mean()) for k in range(4)] + [float((d > 3).double().mean())]
            e32 = ulp_errors(r, exact)[0]
            relative = ((r.double() - exact) / exact).abs()
            rows.append([name, *histogram[name], int(d.max()), float(relative.max()), float(e32.max())])
        report.table(f"{op}", f"{op}: shares by distance to the correctly rounded f16, and the f32 value before the store",
                     ["form", "0 ULP", "1", "2", "3", "more", "max ULP, f16", "max relative, f32", "max ULP, f32"], rows)
        report.plots.append(plot.Plot(f"C3_{op}", f"{op}: share of elements by ULP", plot.bars(
            f"{op}: distance to the correctly rounded f16", "share", ["0", "1", "2", "3", "more"], histogram, log=True)))
        report.claim(f"{op}: the exact form is correctly rounded in every element", rows[-1][1] == 1, f"{1 - rows[-1][1]:.3%} are not")
        errors = [row[7] for row in rows[:len(ROUNDS)]]
        report.claim(f"{op}: every round lessens the largest error", all(b < a for a, b in zip(errors, errors[1:])),
                     ", ".join(f"{e:.3g}" for e in errors))
        report.claim(f"{op}: no number of rounds is better than the exact form", all(row[1] <= rows[-1][1] for row in rows), "")
