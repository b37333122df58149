"""Public bug reports: elementwise accuracy, contraction, the checker's judgement (cases 34, 50-60)."""
import math

import numpy as np
import pytest
import torch

import fuselab
from bug_support import FLOATS, SIZES, bits, graph, kernels_of, run, same, same_bits, sized, through_torch, word
from fuselab import _core

mp = pytest.importorskip("mpmath")
mp.mp.prec = 200


def exactly(fn, x):
    """The function's values to 200 bits, as float64 (its rounding is far below an f32 ULP)."""
    return torch.tensor([float(fn(mp.mpf(v))) for v in x.double().flatten().tolist()], dtype=torch.float64).reshape(x.shape)


def ulps(got, want):
    """Distance in units of got's type at the exact value."""
    info = torch.finfo(got.dtype)
    exponent = torch.frexp(want).exponent - 1
    least = math.frexp(info.tiny)[1] - 1
    spacing = info.eps * torch.exp2(exponent.clamp(min=least).double())
    return ((got.double() - want).abs() / spacing).max().item()


SMALL = [1e-8, 1e-7, 1e-5, 1e-3, 0.0616, 1e-30, 1e-38, 0.3, 0.9, 1.7]
FUNCTIONS = {"erf": mp.erf, "expm1": mp.expm1, "log1p": mp.log1p, "tanh": mp.tanh, "sin": mp.sin, "tan": mp.tan, "erfc": mp.erfc, "exp": mp.exp}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=word)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_case_50_51_pytorch_198183_190533_and_found_4_5_near_zero(name, dtype):
    """Relative accuracy where a formula like exp(x) - 1 has none; vector body and tail give the same bits."""
    one = torch.tensor([v * s for v in SMALL for s in (1, -1)], dtype=torch.float64)
    extra = torch.logspace(-300 if dtype == torch.float64 else -37, 0, 400, dtype=torch.float64)
    x = torch.cat([one, extra, -extra]).to(dtype)
    text = sized(f"r = {name}(x)", f"x: {word(dtype)}")
    if name == "log1p":
        x = x[x > -1]
    got = run(text, len(x), x)
    assert ulps(got, exactly(FUNCTIONS[name], x)) <= (4.0 if name == "erfc" else 2.0)
    for n in (3, 8, 64):
        assert same_bits(run(text, n, x[:n].contiguous()), got[:n])


def test_case_50_pytorch_198183_the_reported_values():
    x = torch.tensor([1e-8, 1e-7, 1e-5, 1e-3])
    for got in (run(sized("r = erf(x)", "x: f32"), 4, x), through_torch(torch.erf, x)):
        assert [f"{v:.7e}" for v in got.tolist()] == ["1.1283792e-08", "1.1283792e-07", "1.1283792e-05", "1.1283788e-03"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=word)
def test_case_50_pytorch_198183_atanh_of_tiny_arguments(dtype):
    x = torch.tensor([1e-8, -1e-9, 1e-20, 0.0, -0.0] * 5, dtype=dtype)
    torch.testing.assert_close(through_torch(lambda x: torch.atanh(x * 1), x), x, rtol=torch.finfo(dtype).eps, atol=0)


def test_case_51_pytorch_190533_189803_expm1():
    got = run(sized("r = expm1(x)", "x: f32"), 2, torch.tensor([1e-7, 1e-8]))
    assert torch.equal(got, torch.tensor([1.00000008e-07, 9.9999999e-09]))
    assert run(sized("r = expm1(x)", "x: f64"), 1, torch.tensor([1e-17], dtype=torch.float64)).item() == 1e-17


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
@pytest.mark.parametrize("name, factor", [("elu", 1.0), ("celu", 1.0), ("selu", 1.0507009873554805 * 1.6732632423543772)])
def test_found_4_exponential_units_have_the_accuracy_of_expm1(name, factor, dtype):
    x = -torch.logspace(-6 if dtype == torch.float16 else -30, 0.5, 300, dtype=torch.float64).to(dtype)
    x = x[x != 0]
    got = run(sized(f"r = {name}(x)", f"x: {word(dtype)}"), len(x), x)
    assert ulps(got, exactly(lambda v: factor * mp.expm1(v), x)) <= (3.0 if dtype in (torch.float32, torch.float64) else 0.51)


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_53_pytorch_189804_189801_tails_keep_their_sign(dtype):
    """gelu and elu of negative numbers are negative or -0, never +0 and never positive."""
    x = -torch.logspace(-6, 2, 300, dtype=torch.float64).to(dtype)
    x = x[x != 0]
    for body in ("gelu(x)", 'gelu(x, approximate="tanh")', "silu(x)", "elu(x)", "mish(x)", "selu(x)", "celu(x)", "leaky_relu(x)"):
        got = run(sized(f"r = {body}", f"x: {word(dtype)}"), len(x), x)
        assert got.signbit().all(), body
    got = run(sized("a = elu(x)\nr = reciprocal(a)", "x: f32"), 2, torch.tensor([-1e-30, -1e-8]))
    assert got.isfinite().all() and (got < 0).all()


def test_case_53_pytorch_189804_the_tail_of_gelu():
    x = -torch.linspace(0.5, 14, 1000)
    got = run(sized("r = gelu(x)", "x: f32"), len(x), x)
    assert ulps(got, exactly(lambda v: v * mp.erfc(-v / mp.sqrt(2)) / 2, x)) <= 8


def test_case_54_pytorch_142223_small_differences_of_tanh_pass():
    """1.79e-7 after a sum of 64 products, the 3 units in the last place that another order of addition gives, is no error."""
    torch.manual_seed(0)
    x, w = torch.randn(100, 64), torch.randn(64)
    text = "graph g(x: f32[100, 64], w: f32[64]) {\n p = mul(x, w)\n s = sum(p, dims=[1])\n y = tanh(s)\n return y\n}"
    reference = _core.fp64_reference(text, [x, w])[0]
    y = torch.tanh((x * w).sum(1))
    near = reference.value.abs().sub(0.7).abs().argmin()
    off = y.clone()
    off[near] += 1.79e-7
    assert abs((off - y)[near].item() - 1.79e-7) < 1e-8 and _core.judge(y, off, reference)["passed"]
    off[near] += 1e-2  # what is an error all the same
    assert not _core.judge(y, off, reference)["passed"]


def test_case_34_cubecl_1070_a_nan_reference_is_not_met_by_a_number():
    x = torch.tensor([float("nan")] + [1.0] * 99)
    for expected, actual in ((x, torch.ones(100)), (torch.ones(100), x), (x, torch.cat([torch.tensor([math.inf]), torch.ones(99)]))):
        assert not _core.judge(expected, actual)["passed"]
    assert _core.judge(x, x)["passed"]


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
@pytest.mark.parametrize("dynamic", [False, True])
def test_case_56_pytorch_181692_147255_rrelu_in_evaluation(dtype, dynamic):
    x = torch.tensor([-48.0, -1.0, 0.0, 3.0] * 5, dtype=dtype)
    got = through_torch(lambda x: torch.nn.functional.rrelu(x * 1, training=False), x, dynamic=dynamic)
    want = torch.where(x >= 0, x.double(), x.double() * (11 / 48))
    assert ulps(got, want) <= 1.0 and (got >= 0).tolist() == (x >= 0).tolist()


@pytest.mark.parametrize("mode", [{}, {"precision": "eager"}], ids=str)
def test_case_57_triton_10671_products_and_sums_are_not_contracted(mode):
    text = sized("a = div(x, 0.75)\nb = mul(a, 0.75)\nc = add(b, 0.25)\nr = sqrt(c)", "x: f32")
    for n in SIZES:
        assert same(run(text, n, torch.full((n,), -0.25), **mode), torch.zeros(n))
    assert all("fma" not in ir for ir in kernels_of(text, **mode))
    r = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        w = {np.float32: "f32", np.float64: "f64"}[dtype]
        for body, exact in (("p = mul(x, y)\nr = add(p, z)", lambda x, y, z: x * y + z), ("p = mul(x, y)\nr = sub(z, p)", lambda x, y, z: z - x * y),
                            ("p = mul(x, y)\nq = mul(z, z)\nr = sub(p, q)", lambda x, y, z: x * y - z * z)):
            for n in SIZES:
                x, y, z = (r.standard_normal(n).astype(dtype) for _ in range(3))
                got = run(sized(body, f"x: {w}", f"y: {w}", f"z: {w}"), n, *map(torch.from_numpy, (x, y, z)), **mode)
                assert np.array_equal(got.numpy(), exact(x, y, z))


def test_case_58_pytorch_136181_scale_of_an_fp8_cast():
    """A bf16 scale used in f32: kept unrounded inside the kernel, so nearer to the exact quotient than eager; both judged right."""
    x = torch.tensor([4.28125, -3.0, 1.5] * 7, dtype=torch.bfloat16)
    exact = 448 / 4.28125

    def f(x):
        return (448 / torch.clamp(torch.abs(torch.max(x)), min=1e-12)).float()

    eager, fused, strict = f(x).item(), through_torch(f, x).item(), through_torch(f, x, precision="eager").item()
    assert abs(eager - 104.5) < 1e-6 and abs(fused - exact) <= abs(eager - exact) and strict == eager


@pytest.mark.parametrize("mode", [{}, {"precision": "eager"}], ids=str)
@pytest.mark.parametrize("low", [torch.float16, torch.bfloat16], ids=word)
def test_case_60_pytorch_141436_mixed_division(low, mode):
    """One ULP of the result's type, however large the quotient: f32 with f32 beside it, the low type alone."""
    w = word(low)
    mixed = sized("r = div(x, y)", f"x: {w}", "y: f32")
    alone = sized("r = div(x, y)", f"x: {w}", f"y: {w}")
    torch.manual_seed(3)
    for n in SIZES:
        x, y = (torch.randn(n) * 100).to(low), (torch.rand(n) * 1e-2 + 1e-4)
        got = run(mixed, n, x, y, **mode)
        assert got.dtype == torch.float32 and ulps(got, x.double() / y.double()) <= 0.5
        y = (y * 100).to(low)
        want = x.double() / y.double()
        if low == torch.float16:
            x = x / 64
            want = x.double() / y.double()
        assert ulps(run(alone, n, x, y, **mode), want) <= 0.5 + 1e-4


def test_case_60_pytorch_141436_scan_of_quotients():
    x, y = torch.rand(300).bfloat16() * 9 + 1, torch.rand(300) + 0.5
    got = through_torch(lambda x, y: torch.cumsum(x / y, 0), x, y)
    torch.testing.assert_close(got.double(), (x.double() / y.double()).cumsum(0), rtol=3e-6, atol=0)


def test_kernels_hold_the_same_bits_for_every_size():
    """The n-th element does not depend on how many follow: vector body, tail and single elements."""
    for name in ("exp", "log", "tanh", "sigmoid", "erf", "sin", "gelu", "rsqrt", "expm1", "softplus"):
        x = torch.linspace(0.01, 9, 1000)
        text = sized(f"r = {name}(x)", "x: f32")
        whole = run(text, 1000, x)
        for n in (1, 7, 16, 17, 31):
            assert torch.equal(bits(run(text, n, x[3:3 + n].contiguous())), bits(whole[3:3 + n])), name
    assert graph(text) is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=word)
@pytest.mark.parametrize("name, low, high", [("gelu", -12.5, 4), ("erfc", -6, 9), ("erf", -6, 6), ("mish", -30, 20), ("softplus", -40, 40),
                                             ("silu", -80, 20), ("log_sigmoid", -40, 40), ("sinh", -20, 20), ("tan", -100, 100), ("expm1", -40, 40)])
def test_budgets_of_the_table_hold(name, low, high, dtype):
    """The verdict judges by the table's budgets, so a right kernel must lie within them."""
    x = torch.linspace(low, high, 50_001, dtype=torch.float64).to(dtype)
    text = f"graph g(x: {word(dtype)}[50001]) {{\nr = {name}(x)\nreturn r\n}}"
    got = run(text, x)
    assert _core.judge(got, got, _core.fp64_reference(text, [x])[0])["passed"]


def test_case_80_aiconfigurator_1221_one_row_stands_for_no_batch(tmp_path):
    """A single row (or step) that was recorded must miss where more are asked about; nothing is broadcast."""
    import fuselab.numerics as fn
    from fuselab.testing import assert_close

    one, batch = torch.ones(1, 8), torch.ones(4, 8)
    for expected, actual in ((one, batch), (batch, one), (batch[0], batch), (torch.tensor(1.0), batch)):
        assert not _core.judge(expected, actual)["passed"]
        found = fn.compare({"x": expected}, {"x": actual})
        assert not found.passed and "sizes [" in found.text()
        assert not fn.cann_metrics(expected, actual)["passed"]
        for function in (fn.ulp_diff, fn.error_stats):
            with pytest.raises(fuselab.Error, match="cannot compare|differ"):
                function(expected, actual)
        with pytest.raises(AssertionError):
            assert_close(actual, expected)
    (kernel,) = _core.compile_graph("graph g(x: f32[4, 8]) {\n  y = exp(x)\n  return y\n}\n").kernels
    call = _core.compile_artifact(kernel["graph"], kernel)
    with pytest.raises(fuselab.Error, match="4, 8"):
        call(one)
    # A profile of one step says nothing about the spread of ten.
    assert _core.bench_verdict([1.0] * 10, [2.0])["ambiguous"]
