"""Every special-value row of the op table through a compiled kernel: each float type, single elements, vector body and tail."""
import json
import math

import pytest
import torch

from bug_support import FLOATS, run, word
from fuselab import _core
from op_values import BOOLEAN_ARGS, parse_special

ROWS = [r for r in json.loads(_core.op_table()) if r["special"]]


def fits(v, dtype):
    return not math.isfinite(v) or float(torch.tensor(v, dtype=torch.float64).to(dtype)) == v


def text_of(row, dtype):
    """The operator over n elements; batch_norm's parameters lie along a channel of one."""
    params, names = [], []
    for k, a in enumerate(row["args"]):
        kind = "bool" if (row["name"], k) in BOOLEAN_ARGS else word(dtype)
        params.append(f"x{k}: {kind}[{'1' if a.get('channel') or row['name'] == 'batch_norm' and k else 'n, 1'}]")
        names.append(f"x{k}")
    return f"graph g(n: size, {', '.join(params)}) {{\nr = {row['name']}({', '.join(names)})\nreturn r\n}}"


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["name"])
def test_special_values_in_compiled_kernels(row):
    for dtype in FLOATS:
        text = text_of(row, dtype)
        for note in row["special"]:
            values, (wanted, *_) = parse_special(note)
            if not all(fits(v, dtype) for v in [*values, wanted]):
                continue
            for n in (1, 16, 19):
                inputs = []
                for k, v in enumerate(values):
                    flat = row["name"] == "batch_norm" and k
                    kind = torch.bool if (row["name"], k) in BOOLEAN_ARGS else dtype
                    inputs.append(torch.full((1,) if flat else (n, 1), bool(v) if kind == torch.bool else v, dtype=kind))
                got = run(text, n, *inputs).double()
                if math.isnan(wanted):
                    assert got.isnan().all(), (note, dtype, n)
                else:
                    assert (got == wanted).all() and (got.signbit() == (math.copysign(1, wanted) < 0)).all(), (note, dtype, n)
