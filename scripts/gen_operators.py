"""Writes docs/operators.md from the op table:  gen_operators.py [TABLE.json] > docs/operators.md

TABLE.json is what `fuselab ops --json` prints; without it the installed module is asked.
"""
import json
import sys

KINDS = {
    "pointwise": "Pointwise operators", "reduce": "Reductions and operators over rows", "create": "Creating tensors",
    "view": "Views", "move": "Moves", "extern": "Run by the host framework"}
TYPES = {
    "promote": "promoted", "promote_float": "promoted, integers to f32", "bool": "bool", "first": "the first argument's",
    "int_sum": "integers to i64", "i64": "i64", "attr_dtype": "`dtype`", "where": "promoted", "any_all": "bool (u8 stays u8)",
    "compute": "f32 for f16 and bf16"}


def signature(row):
    words = [a["name"] + ("?" if a["optional"] else "") for a in row["args"]]
    for a in row["attrs"]:
        value = a.get("fallback", None)
        words.append(a["name"] + ("=" + json.dumps(value) if "fallback" in a else "=…"))
    return f"{row['name']}({', '.join(words)})"


def dtypes(row):
    if row["kind"] in ("view", "create") or row["type"] == "attr_dtype":
        return "all"
    floats = row["lower"] != "-"
    ints = row["lower_int"] != "-"
    bools = (row["lower_bool"] or row["lower_int"] or row["lower"]) != "-"
    if row["type"] == "promote_float":
        ints = bools = floats
    words = [w for w, there in (("float", floats), ("integer", ints), ("bool", bools)) if there]
    return "all" if len(words) == 3 else ", ".join(words)


def accuracy(row):
    if row["kind"] == "view" or row["lower"] == "-":
        return "exact"
    if row["ulp"] == 0:
        return "exact"
    wide = "" if row["ulp_f64"] == row["ulp"] else f", {row['ulp_f64']:g} in f64"
    return f"{row['ulp']:g} ULP{wide}"


def main(rows):
    lines = [
        "# Operators", "",
        "Made from the op table by `make docs`; do not edit.", "",
        f"{len(rows)} operators. *Dtypes*: what the arguments may be after promotion. *Result*: its dtype. *Accuracy*: the budget of the",
        "operator's own error in its compute type (f32 for f16 and bf16), for reductions beside the error of the sums. *Decides*: the",
        "arguments are rounded to their own dtype first (rule R3 of precision.md). `?` marks arguments that may be `none`, `=…` attributes",
        "that must be given.", ""]
    for kind, title in KINDS.items():
        chosen = [r for r in rows if r["kind"] == kind]
        if not chosen:
            continue
        lines += [f"## {title}", ""]
        for r in chosen:
            lines += [f"### {r['name']}", "", f"`{signature(r)}`", "", r["doc"], ""]
            facts = [f"dtypes {dtypes(r)}", f"result {TYPES.get(r['type'], r['type'])}", f"accuracy {accuracy(r)}"]
            if r["decides"]:
                facts.append("decides")
            lines.append("- " + "; ".join(facts))
            for spec in r.get("more", []):
                lines.append(f"- also returns `{spec['name']}` ({TYPES.get(spec['type'], spec['type'])})")
            names = [f"PyTorch `{', '.join(r['aten'])}`" if r["aten"] else ""]
            names += [f"{label} `{r[key]}`" for key, label in (("onnx", "ONNX"), ("ascend_ir", "Ascend IR"), ("cann", "CANN kernel"))
                      if r[key]]
            if any(names):
                lines.append("- " + "; ".join(n for n in names if n))
            if r["special"]:
                lines.append("- special values: " + "; ".join(f"`{s}`" for s in r["special"]))
            lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with open(sys.argv[1]) as f:
            table = json.load(f)["operators"]
    else:
        from fuselab import _core

        table = json.loads(_core.op_table())
    print(main(table), end="")
