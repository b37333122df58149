"""What PyTorch says the operators of the table mean.

`call(row, args, attrs)` runs a row's ATen overload. As a program it writes tests/cases/op_meanings.json, the values that
tests/unit/ops_meaning_test.cpp compares the fp64 meanings with:

    python tests/python/op_values.py TABLE.json tests/cases/op_meanings.json      (TABLE.json: `fuselab ops --json`)
"""
import json
import math
import random
import sys

import torch

aten = torch.ops.aten


def overload(text):
    text = text.partition("[")[0]
    space, _, rest = text.rpartition("::")
    name, _, kind = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space or "aten"), name), kind or "default")


def schema_name(row, item, names):
    options = row["aten_names"].get(item, item).split("|")
    return next((o for o in options if o in names), None)


def call(row, args, attrs):
    """The row's results for operands `args` (tensors, numbers, None) and attributes; None when no overload takes them."""
    for form in row["aten"]:
        op = overload(form)
        names = {a.name: a for a in op._schema.arguments}
        kwargs = {}
        for spec, value in zip(row["args"], args):
            kwargs[schema_name(row, spec["name"], names) or ""] = value
        for name, value in attrs.items():
            kwargs[schema_name(row, name, names) or ""] = value
        condition = form.partition("[")[2].rstrip("]")
        if condition:
            key, _, value = condition.partition("=")
            kwargs[key] = {"none": None, "true": True, "false": False}.get(value, value)
        if "" in kwargs:
            continue
        for name, a in names.items():
            if name in kwargs or a.has_default_value():
                continue
            kwargs[name] = _filler(name, str(a.type), kwargs)
        try:
            out = op(**kwargs)
        except (RuntimeError, TypeError, NotImplementedError):
            continue
        out = list(out) if isinstance(out, (tuple, list)) else [out]
        return [out[row["aten_result"]]] if row["aten_result"] >= 0 else out[:row["results"]]
    return None


def rms_norm_gradient(row, operands):
    """ATen has no CPU kernel for it, so autograd of rms_norm; rstd must belong to the input."""
    grad, x = operands[0], operands[1].clone().requires_grad_()
    w = operands[3] if len(operands) > 3 else torch.ones(x.shape[-1:], dtype=x.dtype)
    w = w.clone().requires_grad_()
    torch.nn.functional.rms_norm(x, x.shape[-1:], w, eps=0.0).backward(grad)
    return [x.grad if row["name"] == "rms_norm_backward_input" else w.grad]


def _filler(name, kind, given):
    """A value for a schema argument the row does not have."""
    x = given.get("self", given.get("input", given.get("grad_output", given.get("grad_out"))))
    if name == "output_mask":
        return [True] * (2 if "rstd" in given and "mean" not in given else 3)
    if name in ("half_to_float", "self_is_result", "is_result"):
        return False
    if name == "input_dtype":
        return x.dtype
    if name == "N":
        return x.shape[0]
    if name == "C":
        return x.shape[1]
    if name == "HxW":
        return math.prod(x.shape[2:])
    if name in ("momentum", "eps"):
        return 0.1 if name == "momentum" else 1e-5
    if name == "buffer":
        return x
    if name in ("input", "weight", "bias", "mean", "rstd", "save_mean", "save_invstd"):
        channels = given.get("normalized_shape") or [x.shape[1]]
        rows = [*x.shape[:x.dim() - len(channels)], *[1] * len(channels)] if "normalized_shape" in given else channels
        return x if name == "input" else torch.ones(rows if name in ("mean", "rstd") else channels, dtype=x.dtype)
    return None


def parse_special(note):
    left, right = note.split("->")
    return [float(v) for v in left.split()], [float(v) for v in right.split()]


# ------------------------------------------------------------------------------------------------- the literals

POINTS = [0.0, 0.5, -0.75, 1.0, -1.25, 2.5, -3.5, 6.0, -7.25, 1e-3, -1e-9, 12.5, -19.75, 21.5]
POSITIVE = {"log", "log2", "log10", "sqrt", "rsqrt"}
# Attribute sets beyond the defaults.
ATTRS = {
    "add": [{"alpha": -2.5}], "sub": [{"alpha": 0.75}], "rsub": [{"alpha": 3}], "gelu": [{"approximate": "tanh"}],
    "gelu_backward": [{"approximate": "tanh"}], "softplus": [{"beta": 2.5, "threshold": 5}], "elu": [{"alpha": 1.5, "scale": 2, "input_scale": 0.5}],
    "celu": [{"alpha": 2.5}], "leaky_relu": [{"negative_slope": 0.2}], "hardtanh": [{"min_val": -2, "max_val": 3}],
    "threshold": [{"threshold": 1.0, "value": 9.0}], "hardshrink": [{"lambd": 1.0}], "softshrink": [{"lambd": 1.0}],
    "addcmul": [{"value": -0.5}], "addcdiv": [{"value": 2.5}], "elu_backward": [{"alpha": 1.5, "scale": 2, "input_scale": 0.5, "is_result": False}],
    "softplus_backward": [{"beta": 2.5, "threshold": 5}], "leaky_relu_backward": [{"negative_slope": 0.2, "self_is_result": False}],
    "hardtanh_backward": [{"min_val": -2, "max_val": 3}], "threshold_backward": [{"threshold": 1}]}
BOOLEAN_ARGS = {("where", 0), ("masked_fill", 1)}


def number(v):
    return v if math.isfinite(v) else repr(v)


def defaults(row):
    return {a["name"]: a["fallback"] for a in row["attrs"] if "fallback" in a}


def operands(row, values, dtype, size):
    """Pointwise operands: every value repeated `size` times, in the shape its place asks for."""
    tensors = [torch.full((size,), bool(v) if (row["name"], k) in BOOLEAN_ARGS else v,
                          dtype=torch.bool if (row["name"], k) in BOOLEAN_ARGS else dtype) for k, v in enumerate(values)]
    if row["name"] == "masked_fill":
        tensors[2] = tensors[2][0]
    if row["name"] == "batch_norm":  # the others lie along the channels
        tensors = [tensors[0].reshape(size, 1)] + [t[:1] for t in tensors[1:]]
    return tensors


def pointwise_cases(row, rng):
    for attrs in [{}, *ATTRS.get(row["name"], [])]:
        full = {**defaults(row), **attrs}
        if any(a["name"] not in full for a in row["attrs"]):
            continue
        for i, x in enumerate(POINTS):
            values = [x] + [rng.choice(POINTS) for _ in row["args"][1:]]
            if row["name"] in POSITIVE or row["name"] == "log1p":
                values[0] = abs(x)
            if row["name"] == "log_sigmoid_backward":
                values[2] = math.exp(-abs(values[1]))
            if row["name"] == "batch_norm":
                values[4] = abs(values[4])
            if row["name"] == "pow":
                values = [abs(x) + 0.25, values[1] / 4]
            for k in range(len(values)):
                if (row["name"], k) in BOOLEAN_ARGS:
                    values[k] = float(i % 2)
            tensors = operands(row, values, torch.float64, 1)
            out = call(row, tensors, full)
            if out is not None:
                yield {"op": row["name"], "args": values, "attrs": attrs, "out": [number(float(o)) for o in out]}


def reduce_cases(row, rng):
    """One row of n elements; operands that do not vary along it are single numbers repeated."""
    for n in (1, 2, 7, 33):
        x = [rng.uniform(-4, 4) + 3 for _ in range(n)]
        extra = [[rng.uniform(-2, 2) for _ in range(n)] for _ in row["args"][1:]]
        t = lambda v: torch.tensor(v, dtype=torch.float64)  # noqa: E731
        kind, attrs, args = row["reduce"], defaults(row), [x, *extra]
        names = [a["name"] for a in row["args"]]
        for k, name in enumerate(names):
            if name in ("mean", "running_mean"):
                args[k] = [0.25] * n
            if name in ("rstd", "running_var"):
                args[k] = [1.5] * n
            if name == "output":
                args[k] = (torch.softmax(t(x), 0) if row["name"] == "softmax_backward" else torch.log_softmax(t(x), 0)).tolist()
        tensors = [t(v) for v in args]
        per_row = lambda name: name in ("mean", "rstd", "running_mean", "running_var")  # noqa: E731
        if kind == "dim":
            attrs["dim"] = 0
        elif kind == "dims":
            attrs["dims"] = [0]
        elif kind == "trailing":
            attrs["normalized_shape"] = [n]
            tensors = [v[:1].reshape(1, 1) if per_row(m) else v if m in ("weight", "bias") else v.reshape(1, n)
                       for m, v in zip(names, tensors)]
        elif kind == "leading":
            attrs["normalized_shape"] = [1]
            tensors = [v.reshape(n, 1) for v in tensors]
        elif kind == "group":
            attrs["num_groups"] = 1
            tensors = [v[:1].reshape(1, 1) if per_row(m) else v if m in ("weight", "bias") else v.reshape(1, n) for m, v in zip(names, tensors)]
            if n == 1:
                continue
        elif kind == "batch":
            if n == 1:
                continue
            for k, name in enumerate(names):
                if name in ("weight", "bias"):
                    args[k] = [args[k][0]] * n
            tensors = [t(v)[:1] if per_row(m) or m in ("weight", "bias") else t(v).reshape(n, 1) for m, v in zip(names, args)]
        if row["name"] in ("argmax", "argmin", "prod"):
            attrs["dims"] = 0
        if row["name"].startswith("rms_norm_backward"):
            wide = tensors[1]
            rstd = wide.square().mean(-1, keepdim=True).rsqrt()
            args[names.index("rstd")] = rstd.expand(wide.shape).flatten().tolist()
            out = rms_norm_gradient(row, tensors)
        else:
            out = call(row, tensors, attrs)
        if out is None:
            continue
        stored = {k: v for k, v in attrs.items() if k in ("correction", "eps", "momentum")}
        yield {"op": row["name"], "args": args, "attrs": stored, "out": [[number(v) for v in o.double().flatten().tolist()] for o in out]}


def main(table_file, out_file):
    with open(table_file) as f:
        rows = json.load(f)["operators"]
    rng, cases, missing = random.Random(1), [], []
    for row in rows:
        if row["kind"] not in ("pointwise", "reduce") or row["lower"] == "-" or row["name"] in ("cast", "copy"):
            continue
        made = list((pointwise_cases if row["kind"] == "pointwise" else reduce_cases)(row, rng))
        if not made:
            missing.append(row["name"])
        cases += made
    with open(out_file, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
    print(f"{len(cases)} cases; none for: {', '.join(missing) or '-'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
