"""Writes docs/how-a-kernel-is-made.md: one kernel followed through all passes, with the texts the program itself makes.

gen_kernel_tour.py FUSELAB_PROGRAM > docs/how-a-kernel-is-made.md
"""
import difflib
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
GRAPH = "examples/residual_norm.graph"

# What to say before the text after each pass. A pass without an entry here is an error: the page must explain all of them.
PASSES = {
    "lower": """`lower` (fuselab/kernel/lower.h) turns the block into loops over axes with typed statements. A `parallel` axis counts independent rows,
an `inner` axis is reduced. The recipe of every operator comes from its row in the op table (docs/operators.md): `layer_norm` is spelled out here,
its mean in f64 and kept as a high and a low part, so that subtracting it loses nothing. The dtypes are still those of the graph; `h` and `l` would be f16.""",
    "improve_precision": """`improve_precision` (fuselab/kernel/improve_precision.h) comes first after `lower`, so that no other pass ever sees arithmetic in f16. A cast to f32
stands after each load that feeds a computation, a cast back before each store; everything between is f32 (rule R1 of [precision](precision.md)). Every rounding is a
statement one can see.""",
    "one_value": """`one_value` (fuselab/kernel/one_value.h): `sum` leaves the kernel *and* is used inside. It is rounded once, and the norm reads the rounded value, the
same one that the next kernel will load (R4).""",
    "simplify": """`simplify` (fuselab/kernel/simplify.h) removes what changes no bit: equal statements, casts that do nothing, dead statements (R11).""",
}


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def fence(text, language=""):
    return ["```" + language, text.rstrip("\n"), "```", ""]


def changed(before, after):
    """A unified diff of two IR texts. Statement numbers move when one is put in: lines are compared without them, printed with."""
    strip = lambda line: re.sub(r"%\d+", "%", line)  # noqa: E731
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, [strip(x) for x in old], [strip(x) for x in new], autojunk=False)
    lines = []
    for group in matcher.get_grouped_opcodes(2):
        if lines:
            lines.append("  ...")
        for kind, a0, a1, b0, b1 in group:
            if kind == "equal":
                lines += ["  " + x for x in new[b0:b1]]
            else:
                lines += ["- " + x for x in old[a0:a1]] + ["+ " + x for x in new[b0:b1]]
    return "\n".join(lines)


def main():
    explained = json.loads(run("explain", GRAPH, "--json"))
    passes = json.loads(run("explain", GRAPH, "--passes", "--json"))["kernels"][0]
    made = json.loads(run("compile", GRAPH, "--json"))
    texts = made["kernels"][0] if "kernels" in made else made[0] if isinstance(made, list) else made
    name = passes["name"]
    step = next(s for s in explained["steps"] if s["kind"] == "kernel")

    page = [
        "# How a kernel is made", "",
        "Made by `make docs` from what the program prints; do not edit. The same for any graph: `fuselab explain FILE --passes` and `fuselab compile FILE`.", "",
        "## The graph", "",
        f"{GRAPH}, in the [text form](graph-form.md). `B` is a symbolic size: one kernel serves every batch.", ""]
    page += fence((ROOT / GRAPH).read_text())
    page += [
        "## Fusing", "",
        "`fuse` (fuselab/fuse/fuse.h) collects operators that can run in the same loops and never makes a cycle. Here both operators become one block, so `sum` is not",
        "written and read again:", ""]
    page += fence(run("explain", GRAPH))
    page += [
        f"The name says what the kernel does: `{name}` is a {step['block']} block of these operators; the last part is a hash of what it computes.", "",
        "## Kernel IR, pass by pass", ""]
    before = None
    for entry in passes["passes"]:
        page += [f"### {entry['pass']}", "", PASSES[entry["pass"]], ""]
        page += fence(entry["ir"]) if before is None else fence(changed(before, entry["ir"]), "diff")
        before = entry["ir"]
    shown = {entry["pass"] for entry in passes["passes"]}
    for other, text in PASSES.items():
        if other not in shown:
            page += [f"### {other}", "", text, "", "It changes nothing here.", ""]
    page += [
        "### The order of sums", "",
        "The line `tree` fixes the order in which a reduction adds: 16 lanes along the row, four chains per lane, blocks of 32 steps, blocks added pairwise, the lanes last. It is part of",
        "the IR and knows nothing of threads, tiles or vector width, which is why results do not depend on them (R6).", "",
        "## Schedule", "",
        "`schedule` (fuselab/kernel/schedule.h) decides how the loops run, and cannot change a bit. This kernel is of the form *rows*: one row is one unit of work for a thread, 16 lanes run along",
        "it, in three passes over the row: the first for the mean, the second for the variance, the third for the results. What two passes need is kept in a scratch row or computed",
        "again, whichever is cheaper. A kernel without a reduction is of the form *element*: rows of 16 lanes; where an argument lies the other way round (transposed, channels-last), 16 rows",
        "run together and 16 x 16 of its elements at a time are transposed in registers. The form *rows* turns such rows into scratch before its passes.", "",
        "## The texts", "",
        "`codegen` (fuselab/codegen/codegen.h) prints header-free C++ on vector types, the same text for AVX2, AVX-512 and any other processor. `tiling_def` is the struct of one launch's numbers, `host_impl`",
        "fills it from the sizes, `device_impl` does units `begin` to `end`.", "",
        "### tiling_def", ""]
    page += fence(texts["tiling_def"], "cpp")
    page += ["### host_impl", ""] + fence(texts["host_impl"], "cpp")
    device = texts["device_impl"]
    at = device.index(f'extern "C" long {name}_run')
    page += [
        "### device_impl", "",
        f"The first {device[:at].count(chr(10))} lines, types and the helpers this kernel uses, are left out here.", ""]
    page += fence(device[at:], "cpp")
    page += [
        "## Machine code", "",
        "`jit` (fuselab/jit/jit.h) gives the text to the clang inside the library, links the object in memory and keeps it in the kernel cache, under a key of text, target, compiler and version. No process",
        "is started and no header is read. `fuselab explain FILE --timing` shows what each phase took; [performance](performance.md) has figures.", "",
        "## Checking it", "",
        f"    fuselab check {GRAPH} --size B=7", ""]
    page += fence(run("check", GRAPH, "--size", "B=7"))
    page += ["The lines are explained in [precision](precision.md) and [repro](repro.md)."]
    print("\n".join(page))


if __name__ == "__main__":
    PROGRAM = sys.argv[1]
    main()
