"""Elementary functions of every f16 and bf16 value: the correctly rounded result, all 65536 times.

The reference is float64, rounded once to the type; where float64 lies within 2^-30 of the middle between two values of the type,
200 bits of mpmath decide.
"""
import numpy as np
import pytest
import torch

from bug_support import word
from fuselab import _core

mp = pytest.importorskip("mpmath").mp
mp.prec = 200
LIMITS = {torch.float16: (11, -14, 65504.0), torch.bfloat16: (8, -126, 3.3895313892515355e38)}


def logistic(v):
    return 1 / (1 + mp.exp(-v))


ROOT = 2 ** -0.5
SCALE, ALPHA = mp.mpf(1.0507009873554804934193349852946), mp.mpf(1.6732632423543772848170429916717)
FUNCTIONS = {  # float64, 200 bits
    "exp": (torch.exp, mp.exp), "exp2": (torch.exp2, lambda v: mp.mpf(2) ** v), "expm1": (torch.expm1, mp.expm1),
    "log": (torch.log, mp.log), "log2": (torch.log2, lambda v: mp.log(v, 2)), "log10": (torch.log10, mp.log10),
    "log1p": (torch.log1p, mp.log1p),
    "sqrt": (torch.sqrt, mp.sqrt), "rsqrt": (lambda x: 1 / torch.sqrt(x), lambda v: 1 / mp.sqrt(v)),
    "reciprocal": (torch.reciprocal, lambda v: 1 / v), "sinh": (torch.sinh, mp.sinh), "cosh": (torch.cosh, mp.cosh), "asinh": (torch.asinh, mp.asinh),
    "asin": (torch.asin, mp.asin), "acos": (torch.acos, mp.acos), "atan": (torch.atan, mp.atan), "atanh": (torch.atanh, mp.atanh),
    "acosh": (torch.acosh, mp.acosh),
    "sin": (torch.sin, mp.sin), "cos": (torch.cos, mp.cos), "tan": (torch.tan, mp.tan), "tanh": (torch.tanh, mp.tanh),
    "sigmoid": (torch.sigmoid, logistic), "erf": (torch.erf, mp.erf), "erfc": (torch.erfc, mp.erfc), "square": (torch.square, lambda v: v * v),
    "silu": (lambda x: x * torch.sigmoid(x), lambda v: v * logistic(v)),
    "gelu": (lambda x: 0.5 * x * torch.erfc(-x * ROOT), lambda v: v * mp.erfc(-v / mp.sqrt(2)) / 2),
    "mish": (lambda x: x * torch.tanh(torch.nn.functional.softplus(x, threshold=700)), lambda v: v * mp.tanh(mp.log1p(mp.exp(v)))),
    "hardsigmoid": (torch.nn.functional.hardsigmoid, lambda v: (v + 3) / 6),
    "hardswish": (torch.nn.functional.hardswish, lambda v: v * (v + 3) / 6),
    "selu": (torch.selu, lambda v: SCALE * v if v > 0 else SCALE * ALPHA * mp.expm1(v)),
    "log_sigmoid": (torch.nn.functional.logsigmoid, lambda v: -mp.log1p(mp.exp(-v))),
    "softplus": (torch.nn.functional.softplus, lambda v: v if v > 20 else mp.log1p(mp.exp(v))),
    "elu": (torch.nn.functional.elu, lambda v: v if v > 0 else mp.expm1(v)), "celu": (torch.celu, lambda v: v if v > 0 else mp.expm1(v)),
}


def rounded(exact, x, dtype, precise):
    """float64 values rounded once to the type, ties to even."""
    digits, least, largest = LIMITS[dtype]
    v = exact.numpy()
    finite = np.isfinite(v) & (v != 0)
    exponent = np.where(finite, np.frexp(np.where(finite, v, 1.0))[1] - 1, 0)
    step = np.ldexp(1.0, np.maximum(exponent, least) - digits + 1)
    places = v / step
    out = np.rint(places) * step
    with np.errstate(invalid="ignore"):
        near = finite & (np.abs(np.abs(places - np.floor(places)) - 0.5) < 2.0**-30)
    for i in np.flatnonzero(near):
        scaled = precise(mp.mpf(float(x[i]))) / mp.mpf(float(step[i]))
        low = mp.floor(scaled)
        rest = scaled - low
        up = rest > 0.5 or rest == 0.5 and int(low) % 2
        out[i] = float(low + (1 if up else 0)) * step[i]
    out = np.where(np.abs(out) > largest, np.copysign(np.inf, out), out)
    return np.where(out == 0, np.copysign(0.0, v), out)


@pytest.mark.parametrize("dtype", LIMITS, ids=word)
def test_unary_functions_are_correctly_rounded(dtype):
    x = torch.arange(-2**15, 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    body = "\n".join(f"y{k} = {name}(x)" for k, name in enumerate(FUNCTIONS))
    text = f"graph g(x: {word(dtype)}[65536]) {{\n{body}\nreturn {', '.join(f'y{k}' for k in range(len(FUNCTIONS)))}\n}}"
    wrong = {}
    for (name, (wide, precise)), got in zip(FUNCTIONS.items(), _core.compile_graph(text, {"enable_autofuse": False})(x)):
        want = torch.from_numpy(rounded(wide(x.double()), x.double(), dtype, precise))
        got = got.double()
        signs = (got.signbit() == want.signbit()) | (want != 0)
        if name == "log_sigmoid":  # 0 - log1p(0) where the exponential underflows, as in PyTorch
            signs |= x > 100
        same = (got.isnan() & want.isnan()) | (got == want) & signs
        if not same.all():
            i = int((~same).nonzero()[0])
            wrong[name] = (int((~same).sum()), float(x[i]), float(got[i]), float(want[i]))
    assert not wrong
