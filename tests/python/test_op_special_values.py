"""The table's special values against PyTorch, in scalar and vector code and in both float types."""
import json
import math

import pytest
import torch

from fuselab import _core
from op_values import call, defaults, operands, parse_special

# Where PyTorch's own kernels disagree with each other (scalar and vector code) or lose what the table keeps.
EXCEPTIONS = {
    ("frac", "-0 -> -0"),                       # gives +0; the sign is the argument's
    ("minimum", "-0 0 -> -0"), ("minimum", "0 -0 -> -0"), ("maximum", "-0 0 -> 0"), ("maximum", "0 -0 -> 0"),  # either zero
    ("clamp", "-0 0 1 -> -0"), ("clamp_min", "-0 0 -> -0"),  # either zero
    ("gelu", "inf -> inf"),                     # NaN in vector code
    ("hardtanh_backward", "2 nan -> 0"), ("hardswish_backward", "2 nan -> nan"),  # otherwise in scalar code
    ("hardshrink_backward", "2 nan -> 0"), ("softshrink_backward", "2 nan -> 0"),
    ("hardsigmoid_backward", "6 0 -> 1"),       # multiplies by a 1/6 rounded to f32, in f64 too
}
ROWS = [r for r in json.loads(_core.op_table()) if r["special"]]


def same(a, b):
    return math.isnan(a) and math.isnan(b) or a == b and math.copysign(1, a) == math.copysign(1, b)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["name"])
def test_special_values_are_eagers(row):
    for note in row["special"]:
        if (row["name"], note) in EXCEPTIONS:
            continue
        values, wanted = parse_special(note)
        for dtype, size in ((torch.float32, 1), (torch.float32, 64), (torch.float64, 64)):
            result = call(row, operands(row, values, dtype, size), defaults(row))
            got = float(result[0].flatten()[0])
            assert same(got, wanted[0]), f"{note}: PyTorch gives {got} for {dtype}, {size} elements"
