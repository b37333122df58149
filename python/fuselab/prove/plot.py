"""Plots as plain SVG: lines over x, and bars side by side."""
import dataclasses
import html
import math

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 340, 70, 190, 30, 45


@dataclasses.dataclass
class Plot:
    name: str    # of its file
    title: str
    svg: str


def _ticks(low, high, n=5):
    span = (high - low) or abs(high) or 1.0
    step = 10 ** math.floor(math.log10(span / n))
    step *= next(f for f in (1, 2, 5, 10) if span / (step * f) <= n)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _number(v):
    return f"{v:.6g}"


class _Canvas:
    def __init__(self, title, x_label, y_label):
        e = html.escape
        self.parts = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}' "
                      "font-family='system-ui,sans-serif' font-size='12'>",
                      f"<rect width='{WIDTH}' height='{HEIGHT}' fill='white'/>",
                      f"<text x='{LEFT}' y='18' font-size='14'>{e(title)}</text>",
                      f"<text x='{(LEFT + WIDTH - RIGHT) / 2}' y='{HEIGHT - 8}' text-anchor='middle'>{e(x_label)}</text>",
                      f"<text transform='translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)' text-anchor='middle'>{e(y_label)}</text>"]

    def y_axis(self, ticks, place, label=_number):
        for v in ticks:
            y = place(v)
            self.parts.append(f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{y:.1f}' y2='{y:.1f}' stroke='#e3e3e3'/>")
            self.parts.append(f"<text x='{LEFT - 6}' y='{y + 4:.1f}' text-anchor='end'>{label(v)}</text>")

    def legend(self, names):
        for i, name in enumerate(names):
            y = TOP + 10 + 18 * i
            self.parts.append(f"<rect x='{WIDTH - RIGHT + 14}' y='{y - 8}' width='12' height='8' fill='{COLOURS[i % len(COLOURS)]}'/>")
            self.parts.append(f"<text x='{WIDTH - RIGHT + 32}' y='{y}'>{html.escape(name)}</text>")

    def svg(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def lines(title, x_label, y_label, series, dashed=()):
    """series: {name: [(x, y), ...]}; points that are not finite are left out. Names in `dashed` have broken lines."""
    series = {n: [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)] for n, points in series.items()}
    xs = [x for points in series.values() for x, _ in points] or [0, 1]
    ys = [y for points in series.values() for _, y in points] or [0, 1]
    x0, x1, y0, y1 = min(xs), max(xs), min(ys), max(ys)
    x1, y1 = (x1 if x1 > x0 else x0 + 1), (y1 if y1 > y0 else y0 + (abs(y0) or 1) * 1e-6)
    px = lambda x: LEFT + (x - x0) / (x1 - x0) * (WIDTH - RIGHT - LEFT)
    py = lambda y: HEIGHT - BOTTOM - (y - y0) / (y1 - y0) * (HEIGHT - BOTTOM - TOP)
    c = _Canvas(title, x_label, y_label)
    c.y_axis(_ticks(y0, y1), py)
    for v in _ticks(x0, x1, 8):
        c.parts.append(f"<text x='{px(v):.1f}' y='{HEIGHT - BOTTOM + 16}' text-anchor='middle'>{_number(v)}</text>")
    for i, (name, points) in enumerate(series.items()):
        path = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in points)
        dash = " stroke-dasharray='5 4'" if name in dashed else ""
        c.parts.append(f"<polyline fill='none' stroke='{COLOURS[i % len(COLOURS)]}' stroke-width='1.6'{dash} points='{path}'/>")
    c.legend(series)
    return c.svg()


def bars(title, y_label, groups, series, *, log=False):
    """groups: names along x; series: {name: [one value per group]}. `log`: decades from 1e-7; 0 has no bar."""
    low = 1e-7
    top = max([v for values in series.values() for v in values] + [low * 10])
    if log:
        top = 10 ** math.ceil(math.log10(top))
        share = lambda v: math.log10(max(v, low) / low) / math.log10(top / low)
        ticks = [10.0**k for k in range(-7, round(math.log10(top)) + 1)]
    else:
        share = lambda v: v / top
        ticks = _ticks(0, top)
    py = lambda v: HEIGHT - BOTTOM - share(v) * (HEIGHT - BOTTOM - TOP)
    c = _Canvas(title, "", y_label)
    c.y_axis(ticks, py)
    wide = (WIDTH - RIGHT - LEFT) / max(1, len(groups))
    each = wide * 0.8 / max(1, len(series))
    for g, group in enumerate(groups):
        x = LEFT + wide * (g + 0.1)
        c.parts.append(f"<text x='{x + wide * 0.4:.1f}' y='{HEIGHT - BOTTOM + 16}' text-anchor='middle'>{html.escape(str(group))}</text>")
        for i, values in enumerate(series.values()):
            y = py(values[g])
            c.parts.append(f"<rect x='{x + i * each:.1f}' y='{y:.1f}' width='{each * 0.92:.1f}' height='{HEIGHT - BOTTOM - y:.1f}' "
                           f"fill='{COLOURS[i % len(COLOURS)]}'/>")
    c.legend(series)
    return c.svg()
