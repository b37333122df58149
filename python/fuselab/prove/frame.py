"""What the tasks share: a table, a claim, a task's report, and the way they get into a folder."""
import contextlib
import csv
import dataclasses
import io
import json
import math
import os
import sys
import time

from . import plot

SIZES = ("small", "default", "full")


@dataclasses.dataclass
class Claim:
    """What a task set out to show. `why` says by how much it does not hold, and for what reason as far as that is known."""

    text: str
    holds: bool
    why: str = ""

    def line(self):
        return f"{'holds' if self.holds else 'FAILS'}: {self.text}" + ("" if self.holds or not self.why else f" ({self.why})")


@dataclasses.dataclass
class Table:
    name: str     # of its files
    title: str
    columns: list
    rows: list    # of lists, as long as columns
    all_rows: list | None = None   # what the CSV file holds where `rows` shows only a part

    def csv(self):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([plain(v) for v in row] for row in (self.rows if self.all_rows is None else self.all_rows))
        return text.getvalue()

    def markdown(self):
        cells = [[shown(v).replace("|", "\\|") for v in row] for row in [self.columns, *self.rows]]
        cells.insert(1, ["---"] * len(self.columns))
        return "\n".join("| " + " | ".join(row) + " |" for row in cells) + "\n"


@dataclasses.dataclass
class Report:
    task: str
    title: str
    about: str                                     # what was run, with sizes
    tables: list = dataclasses.field(default_factory=list)
    plots: list = dataclasses.field(default_factory=list)    # of plot.Plot
    claims: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)   # what a reader must know to judge the figures
    seconds: float = 0.0

    def table(self, name, title, columns, rows):
        self.tables.append(Table(f"{self.task}_{name}", title, columns, rows))

    def claim(self, text, holds, why=""):
        self.claims.append(Claim(text, bool(holds), why))

    @property
    def holds(self):
        return all(c.holds for c in self.claims)

    def markdown(self):
        parts = [f"## {self.task}: {self.title}\n\n{self.about}\n"]
        parts.append("\n".join(f"- {c.line()}" for c in self.claims) + "\n")
        parts += [f"**{t.title}**\n\n{t.markdown()}" for t in self.tables]
        parts += [f"![{p.title}]({p.name}.svg)\n" for p in self.plots]
        parts += [f"{note}\n" for note in self.notes]
        return "\n".join(parts)

    def data(self):
        return {"task": self.task, "title": self.title, "about": self.about, "holds": self.holds, "seconds": round(self.seconds, 2),
                "claims": [dataclasses.asdict(c) for c in self.claims], "notes": self.notes,
                "tables": {t.name: [dict(zip(t.columns, map(plain, row), strict=True)) for row in t.rows] for t in self.tables},
                "titles": {t.name: t.title for t in self.tables}, "plots": {p.name: p.title for p in self.plots}}


def plain(value):
    """A number or text for CSV and JSON."""
    if hasattr(value, "item"):
        value = value.item()
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)   # JSON has no infinity and no NaN


def shown(value):
    """For people: four digits."""
    value = plain(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def cores():
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Progress:
    """Lines on stderr with the seconds since the start; where someone is looking, one line that is written over."""

    def __init__(self, quiet=False, stream=None):
        self.stream, self.quiet, self.start = stream or sys.stderr, quiet, time.monotonic()
        self.task, self.open, self.last = "", False, 0.0

    def line(self, text):
        if not self.quiet:
            self._close()
            print(f"[{time.monotonic() - self.start:7.1f} s] {self.task}{text}", file=self.stream, flush=True)

    def step(self, done, total, text=""):
        """Part of a task; at most five times a second, and without a terminal every 30 s."""
        now, terminal = time.monotonic(), self.stream.isatty()
        if self.quiet or now - self.last < (0.2 if terminal else 30):
            return
        self.last = now
        message = f"[{now - self.start:7.1f} s] {self.task}{done} of {total} {text}"
        if terminal:
            print(f"\r{message}\033[K", end="", file=self.stream, flush=True)
            self.open = True
        else:
            print(message, file=self.stream, flush=True)

    def _close(self):
        if self.open:
            print("\r\033[K", end="", file=self.stream)
            self.open = False

    @contextlib.contextmanager
    def of(self, task):
        self.task = f"{task}: "
        self.last = time.monotonic()
        try:
            yield self
        finally:
            self._close()
            self.task = ""


def write(folder, name, text):
    """Whole or not at all."""
    path = os.path.join(folder, name)
    aside = f"{path}.{os.getpid()}"
    with open(aside, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(aside, path)


def write_task(folder, report, facts):
    """`facts`: (name, value) pairs of the run, by which `read_task` knows results that belong together."""
    for table in report.tables:
        write(folder, f"{table.name}.csv", table.csv())
    for drawn in report.plots:
        write(folder, f"{drawn.name}.svg", drawn.svg)
    write(folder, f"{report.task}.md", report.markdown())
    write(folder, f"{report.task}.json", json.dumps(report.data() | {"run": dict(facts)}, indent=1) + "\n")


def read_task(folder, task, facts):
    """The report that an earlier run with the same facts (but for the date) left in the folder, or None."""
    try:
        with open(os.path.join(folder, f"{task}.json"), encoding="utf-8") as file:
            data = json.load(file)
        if {**data["run"], "date": ""} != {**dict(facts), "date": ""}:
            return None
        report = Report(task, data["title"], data["about"], notes=data["notes"], seconds=data["seconds"])
        report.claims = [Claim(**c) for c in data["claims"]]
        report.tables = [Table(name, data["titles"][name], list(rows[0]) if rows else [], [list(r.values()) for r in rows])
                         for name, rows in data["tables"].items()]
        for name, title in data["plots"].items():
            with open(os.path.join(folder, f"{name}.svg"), encoding="utf-8") as file:
                report.plots.append(plot.Plot(name, title, file.read()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return report
