"""Public bug reports: signed zeros, NaN and infinities, softmax and attention (cases 20-36)."""
import math

import pytest
import torch

from bug_support import FLOATS, SIZES, bits, run, same, same_bits, sized, through_torch, word

INF, NAN = math.inf, math.nan
MODES = [{}, {"precision": "eager"}, {"opt_level": 0}]
F32_NANS = [0x7FC00001, 0x7FAB2AC8, 0x7F800001, -0x400001, -0x7FFFFF]


def repeated(values, n, dtype):
    return torch.tensor([values[i % len(values)] for i in range(n)], dtype=torch.float64).to(dtype)


def nans(n):
    return torch.tensor([F32_NANS[i % len(F32_NANS)] for i in range(n)], dtype=torch.int32).view(torch.float32)


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_20_pytorch_196039_relu_keeps_negative_zero(dtype, mode):
    text = sized("r = relu(x)", f"x: {word(dtype)}")
    for n in SIZES:
        x = repeated([-0.0, 0.0, -1.0, 2.0, -INF, INF], n, dtype)
        assert same(run(text, n, x, **mode), repeated([-0.0, 0.0, 0.0, 2.0, 0.0, INF], n, dtype))


def test_case_20_pytorch_196039_relu_keeps_nan_payloads_in_eager_mode():
    for n in SIZES:
        x = nans(n)
        got = run(sized("r = relu(x)", "x: f32"), n, x, precision="eager")
        assert torch.equal(bits(got) | 0x400000, bits(x) | 0x400000)  # a signalling NaN may come out quiet


IDENTITIES = {  # what stands for an operation that a careless simplifier drops -> its results at -0, 0, nan, inf, -1
    "add(x, 0)": [0.0, 0.0, NAN, INF, -1.0], "add(x, 0.0)": [0.0, 0.0, NAN, INF, -1.0],
    "sub(x, 0)": [-0.0, 0.0, NAN, INF, -1.0], "add(x, -0.0)": [-0.0, 0.0, NAN, INF, -1.0],
    "sub(0, x)": [0.0, 0.0, NAN, -INF, 1.0], "neg(x)": [0.0, -0.0, NAN, -INF, 1.0],
    "mul(x, 1)": [-0.0, 0.0, NAN, INF, -1.0], "div(x, 1)": [-0.0, 0.0, NAN, INF, -1.0], "mul(x, -1)": [0.0, -0.0, NAN, -INF, 1.0],
    "mul(x, 0)": [-0.0, 0.0, NAN, NAN, -0.0], "mul(0, x)": [-0.0, 0.0, NAN, NAN, -0.0], "div(0, x)": [NAN, NAN, NAN, 0.0, -0.0],
    "sub(x, x)": [0.0, 0.0, NAN, NAN, 0.0], "div(x, x)": [NAN, NAN, NAN, NAN, 1.0], "pow(x, 0)": [1.0] * 5, "pow(x, 1)": [-0.0, 0.0, NAN, INF, -1.0],
    "maximum(x, x)": [-0.0, 0.0, NAN, INF, -1.0], "abs(abs(x))": [0.0, 0.0, NAN, INF, 1.0], "eq(x, x)": [1, 1, 0, 1, 1]}


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=word)
@pytest.mark.parametrize("body", IDENTITIES)
def test_case_21_pytorch_189799_and_found_2_neutral_elements_keep_signs_and_nans(body, dtype, mode):
    nested = body == "abs(abs(x))"
    text = sized("a = abs(x)\nr = abs(a)" if nested else f"r = {body}", f"x: {word(dtype)}")
    out = torch.bool if body.startswith("eq") else dtype
    for n in (1, 5, 17):
        x = repeated([-0.0, 0.0, NAN, INF, -1.0], n, dtype)
        assert same(run(text, n, x, **mode), repeated(IDENTITIES[body], n, out)), body


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_21_pytorch_189799_reciprocal_of_ceil_plus_zero(dtype, dynamic):
    x = torch.tensor([-0.5, -0.1, -0.9], dtype=dtype)
    assert through_torch(lambda x: torch.reciprocal(torch.ceil(x) + 0), x, dynamic=dynamic).tolist() == [INF] * 3


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_found_2_times_and_by_an_integer_zero(dtype, dynamic):
    got = through_torch(lambda x: (x * 0, 0 / x, 0 / (x * 0)), torch.tensor([NAN, INF, -1.0, 0.0], dtype=dtype), dynamic=dynamic)
    for g, want in zip(got, ([NAN, NAN, -0.0, 0.0], [NAN, 0.0, -0.0, NAN], [NAN, NAN, NAN, NAN])):
        assert same(g, torch.tensor(want, dtype=dtype))


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_22_pytorch_183606_frac_of_negative_zero(dtype, mode):
    for n in SIZES:
        x = repeated([-0.0, 0.0, 1.5, -1.5, NAN], n, dtype)
        assert same(run(sized("r = frac(x)", f"x: {word(dtype)}"), n, x, **mode), repeated([-0.0, 0.0, 0.5, -0.5, NAN], n, dtype))


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_case_24_pytorch_101009_division_by_relu(mode):
    """relu of a negative number is +0, so the sign of the infinity is the numerator's."""
    text = sized("a = relu(x)\nr = div(y, a)", "x: f32", "y: f32")
    for n in SIZES:
        x, y = torch.full((n,), -1.0), repeated([-20.57, 3.5], n, torch.float32)
        assert same(run(text, n, x, y, **mode), repeated([-INF, INF], n, torch.float32))


@pytest.mark.parametrize("op", ["minimum", "maximum"])
def test_case_25_pytorch_196030_nan_payloads_through_minimum(op):
    text = sized(f"r = {op}(x, y)", "x: f32", "y: f32")
    for n in SIZES:
        x, y = nans(n), torch.ones(n)
        assert run(text, n, x, y).isnan().all()
        for got in (run(text, n, x, y, precision="eager"), run(text, n, y, x, precision="eager")):
            assert torch.equal(bits(got) | 0x400000, bits(x) | 0x400000)


@pytest.mark.parametrize("n", [1, 7, 100, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=word)
def test_case_27_pytorch_132107_cumsum_of_infinities(dtype, n):
    got = through_torch(lambda x: torch.cumsum(x * 2, 0) + 1, torch.full((n,), INF, dtype=dtype), dynamic=n > 1)
    assert (got == INF).all()


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_28_tinygrad_5282_4035_nan_in_decisions(dtype, mode):
    w = word(dtype)
    text = (f"graph g(n: size, x: {w}[n], y: {w}[n]) {{\na = isnan(x)\nb = lt(x, y)\nc = maximum(x, y)\nd = ne(x, x)\ne = where(b, x, y)\n"
            "f = clamp(x, 0, 1)\ng = isfinite(x)\nreturn a, b, c, d, e, f, g\n}")
    for n in SIZES:
        x, y = repeated([NAN, 0.5, -INF], n, dtype), repeated([1.0, 1.0, NAN], n, dtype)
        wanted = [[1, 0, 0], [0, 1, 0], [NAN, 1.0, NAN], [1, 0, 0], [1.0, 0.5, NAN], [NAN, 0.5, 0.0], [0, 1, 0]]
        for got, want in zip(run(text, n, x, y, **mode), wanted):
            assert same(got, repeated(want, n, got.dtype))


@pytest.mark.parametrize("op", ["amax", "amin"])
@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_28_tinygrad_4035_extremes_of_rows_with_a_nan(dtype, op):
    text = f"graph g(n: size, m: size, x: {word(dtype)}[n, m]) {{\nr = {op}(x, dims=[1])\nc = {op}(x, dims=[0])\nreturn r, c\n}}"
    for n in SIZES:
        for at in {0, n // 2, n - 1}:
            x = torch.ones(3, n, dtype=dtype)
            x[1, at] = NAN
            r, c = run(text, 3, n, x)
            assert r.isnan().tolist() == [False, True, False] and c.isnan().sum() == 1 and c[at].isnan()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=word)
def test_case_28_jax_939_gradient_of_a_norm_at_zero(dtype):
    x = torch.zeros(3, 7, dtype=dtype, requires_grad=True)
    through_torch(lambda x: (x * 1).norm(dim=-1).sum(), x).backward()
    assert (x.grad == 0).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_29_pytorch_181692_nan_to_num(dtype):
    x = torch.tensor([NAN, INF, -INF, 1.0] * 5, dtype=dtype)
    info = torch.finfo(dtype)
    got = through_torch(lambda x: torch.nan_to_num(x * 1, nan=2.0), x)
    assert same(got, torch.tensor([2.0, info.max, info.min, 1.0] * 5, dtype=torch.float64).to(dtype))


def one_hot(x, dim):
    return torch.nn.functional.one_hot(x.double().argmax(dim), x.shape[dim]).movedim(-1, dim)


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=word)
@pytest.mark.parametrize("dim", [0, 1])
def test_case_31_pytorch_163932_100775_softmax_of_huge_products(dim, dtype, mode):
    """Distances of 1e12 and more between logits: one-hot, exactly; a row of one is 1."""
    w = word(dtype)
    text = (f"graph g(n: size, m: size, x: {w}[n, m], s: {w}[1]) {{\na = mul(x, s)\n"
            f"r = softmax(a, dim={dim})\nl = log_softmax(a, dim={dim})\nreturn r, l\n}}")
    torch.manual_seed(0)
    for n in [1, 7, 16, 17, 25, 1000]:
        count = min(n, 120) if dtype == torch.bfloat16 else n  # distinct values
        line = torch.arange(n) % count
        x = torch.stack([line[torch.randperm(n)].double() + 1 for _ in range(3)], 1 - dim).to(dtype)
        x[x == x.amax(dim, keepdim=True)] = 0  # the largest value may repeat: one place of it remains
        top = torch.randint(n, (3,))
        for row, at in enumerate(top.tolist()):
            x.select(1 - dim, row)[at] = count + 1
        got, logs = run(text, *x.shape, x, torch.tensor([1e12], dtype=dtype), **mode)
        assert torch.equal(got, one_hot(x, dim).to(dtype))
        assert logs.isfinite().all() and (logs.gather(dim, x.double().argmax(dim, keepdim=True)) == 0).all()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("n", [1, 25])
def test_case_31_pytorch_163932_100775_through_torch(n, dynamic):
    x = torch.linspace(-1e7, 1e7, 4 * n).reshape(4, n)
    got = through_torch(lambda x: torch.softmax(x * 1e7, -1), x, dynamic=dynamic)
    assert torch.equal(got, one_hot(x, 1).float())


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
@pytest.mark.parametrize("dim", [0, 1])
def test_case_32_pytorch_101039_softmax_of_quotients_sums_to_one(dim, dtype):
    """The exponentials and their sum see one quotient, however often it is computed."""
    w = word(dtype)
    text = f"graph g(n: size, m: size, x: {w}[n, m]) {{\na = div(x, 1e-6)\nr = softmax(a, dim={dim})\nreturn r\n}}"
    torch.manual_seed(1)
    for n in [2, *SIZES]:
        x = (torch.randn((n, 33) if dim == 0 else (33, n), dtype=torch.float64) * 3e-6).to(dtype)
        got = run(text, *x.shape, x)
        quotient = x.double() / 1e-6
        if dtype == torch.float32:
            quotient = (x / torch.tensor(1e-6)).double()  # rounded, so that only softmax's own error is left
        eps = torch.finfo(dtype).eps
        away = quotient.amax(dim, keepdim=True) - quotient  # its rounding is a relative error of the exponential
        want = quotient.softmax(dim)
        assert ((got.double() - want).abs() <= (8 + 2 * away) * eps * want + torch.finfo(dtype).tiny * eps).all()
        assert ((got.double().sum(dim) - 1).abs() <= eps * max(n, 2)).all()


@pytest.mark.parametrize("n", [17, 600])
def test_case_35_pytorch_127055_band_mask(n):
    """Each row keeps its last 10 places: never a row of NaN."""
    row = torch.arange(n)
    mask = (row[:, None] >= row) & (row[:, None] - row < 10)

    def f(q):
        scores = (q @ q.transpose(-1, -2)).masked_fill(~mask, -INF)
        return torch.softmax(scores, -1)

    q = torch.randn(2, n, 8, generator=torch.Generator().manual_seed(0))
    got = through_torch(f, q)
    assert not got.isnan().any() and (got[:, ~mask] == 0).all()
    torch.testing.assert_close(got.double(), f(q.double()), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("n", [1, 7, 17])
def test_case_36_pytorch_141128_nan_query(n):
    """Attention with a NaN query is NaN there and nowhere else. PyTorch's own fused operator returns zeros (as PyTorch runs it, we pass it on)."""
    q = torch.randn(1, 2, n, 8, generator=torch.Generator().manual_seed(0))
    k = q.clone()
    q[0, 0, 0] = NAN
    got = through_torch(lambda q, k: torch.softmax(q @ k.transpose(-1, -2) * 0.35, -1) @ k, q, k)
    assert got[0, 0, 0].isnan().all() and got[0, 1].isfinite().all() and got[0, 0, 1:].isfinite().all()
    fused = torch.nn.functional.scaled_dot_product_attention
    assert same(through_torch(lambda q, k: fused(q * 1, k, k) * 1, q, k), fused(q, k, k))


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
@pytest.mark.parametrize("dim", [0, 1])
def test_rows_of_minus_infinity_softmax_to_nan(dim, dtype):
    text = f"graph g(n: size, m: size, x: {word(dtype)}[n, m]) {{\nr = softmax(x, dim={dim})\nreturn r\n}}"
    for n in SIZES:
        x = torch.zeros((n, 2) if dim == 0 else (2, n), dtype=dtype)
        x.select(1 - dim, 1).fill_(-INF)
        got = run(text, *x.shape, x)
        assert got.select(1 - dim, 1).isnan().all() and got.select(1 - dim, 0).isfinite().all()
    assert same_bits(x, x)
