"""Public bug reports: reductions and accumulation (cases 38-49)."""
import math
import random

import pytest
import torch

from bug_support import FLOATS, SIZES, run, same, through_torch, word

INF, NAN = math.inf, math.nan
BOTH = [0, 1]


def reduction(op, dtype, dim, more="", results="r"):
    return f"graph g(n: size, m: size, x: {word(dtype)}[n, m]) {{\n{results} = {op}(x, dims=[{dim}]{more})\nreturn {results}\n}}"


def lying(rows, dim):
    """Rows along dimension `dim`."""
    t = torch.stack([torch.as_tensor(r) for r in rows])
    return t.T.contiguous() if dim == 0 else t


@pytest.mark.parametrize("dim", BOTH)
def test_case_38_pytorch_154703_long_sums_do_not_saturate(dim):
    """2^25 ones: a running f32 sum stops at 2^24."""
    n = 2**25
    ones = torch.ones(n).reshape((n, 1) if dim == 0 else (1, n))
    assert run(reduction("sum", torch.float32, dim), *ones.shape, ones).item() == n
    assert run(reduction("mean", torch.float32, dim), *ones.shape, ones).item() == 1.0


@pytest.mark.parametrize("dim", BOTH)
def test_case_38_pytorch_154703_error_of_a_mean_does_not_grow_with_its_length(dim):
    torch.manual_seed(0)
    for n in [*SIZES, 2**20 + 3]:
        x = torch.rand((n, 2) if dim == 0 else (2, n))
        got = run(reduction("mean", torch.float32, dim), *x.shape, x)
        torch.testing.assert_close(got.double(), x.double().mean(dim), rtol=3e-7, atol=0)


@pytest.mark.parametrize("dim", BOTH)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=word)
def test_case_39_pytorch_91597_mean_of_many_half_ones(dtype, dim):
    for n in [*SIZES, 100000]:
        x = torch.ones((n, 2) if dim == 0 else (2, n), dtype=dtype)
        assert same(run(reduction("mean", dtype, dim), *x.shape, x), torch.ones(2, dtype=dtype))


@pytest.mark.parametrize("dynamic", [False, True])
def test_case_39_pytorch_91597_through_torch(dynamic):
    assert through_torch(lambda x: x.mean(), torch.ones(100000, dtype=torch.float16), dynamic=dynamic).item() == 1.0


@pytest.mark.parametrize("dim", BOTH)
@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_40_pytorch_59489_sums_are_rounded_once(dtype, dim):
    """Integers whose sum is exact in f32: the result is the exact sum, correctly rounded."""
    r = random.Random(0)
    for n in SIZES:
        top = 60 if n == 1000 else 127
        rows = [[r.randint(-5, top) for _ in range(n)] for _ in range(5)]
        want = torch.tensor([sum(v) for v in rows], dtype=torch.float64).to(dtype)
        x = lying([torch.tensor(v, dtype=torch.float64) for v in rows], dim).to(dtype)
        assert same(run(reduction("sum", dtype, dim), *x.shape, x), want)


def test_case_40_pytorch_59489_the_reported_sum():
    values = [62] * 57 + [61] * 15  # 72 integers, exact sum 4449; neighbours in f16 are 4448 and 4452
    assert sum(values) == 4449
    x = torch.tensor(values, dtype=torch.float16).reshape(9, 8)
    assert through_torch(lambda x: x.sum(), x).item() == 4448.0


SCANNED = {
    "cumsum": lambda n, g: torch.randn(n, generator=g) * 0.01,
    "cumprod": lambda n, g: 0.99 + 0.02 * torch.rand(n, generator=g)}


@pytest.mark.parametrize("op, dtype, n", [("cumsum", torch.float16, 500_000), ("cumsum", torch.bfloat16, 1000),
                                          ("cumprod", torch.bfloat16, 1000), ("cumprod", torch.float16, 1000)])
def test_case_42_pytorch_180150_180155_scans_accumulate_in_f32(op, dtype, n):
    x = SCANNED[op](n, torch.Generator().manual_seed(0)).to(dtype)
    scan = getattr(torch, op)
    exact = scan(x.double(), 0)
    wide = (scan(x.float(), 0).to(dtype).double() - exact).abs().max()
    got = (through_torch(lambda x: scan(x * 1, 0), x).double() - exact).abs().max()
    assert got <= wide * 1.1 + 1e-12


@pytest.mark.parametrize("op", [torch.var_mean, torch.std_mean])
@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_43_pytorch_197108_and_found_9_statistics_of_nothing(dtype, op):
    spread, mean = through_torch(lambda x: op(x * 1), torch.ones(0, dtype=dtype))
    assert math.isnan(spread) and math.isnan(mean)
    for shape, dims in (((0, 1), 0), ((3, 0), 1), ((0, 0), (0, 1))):
        spread, mean = through_torch(lambda x, d=dims: op(x * 1, dim=d), torch.ones(shape, dtype=dtype))
        assert spread.isnan().all() and mean.isnan().all() and spread.shape == torch.ones(shape).sum(dims).shape
    spread, mean = through_torch(lambda x: op(x * 1, dim=1), torch.ones(0, 1, dtype=dtype))
    assert spread.shape == mean.shape == (0,)


@pytest.mark.parametrize("dim", BOTH)
@pytest.mark.parametrize("dtype", FLOATS, ids=word)
@pytest.mark.parametrize("op", ["var", "std"])
def test_case_43_and_found_3_variance_of_one_element(op, dtype, dim):
    """Correction 1: always NaN. Correction 0: 0, and NaN for NaN and infinities."""
    x = torch.tensor([1.5, NAN, INF, -INF, 0.0, -2.0, 100.0] * 3, dtype=dtype)
    x = x[None] if dim == 0 else x[:, None]
    assert run(reduction(op, dtype, dim, ", correction=1"), *x.shape, x).isnan().all()
    got = run(reduction(op, dtype, dim, ", correction=0"), *x.shape, x)
    assert same(got, torch.tensor([0.0, NAN, NAN, NAN, 0.0, 0.0, 0.0] * 3, dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
@pytest.mark.parametrize("value", [NAN, INF])
def test_found_3_through_torch(value, dtype):
    x = torch.tensor([value], dtype=dtype)
    got = through_torch(lambda x: (torch.var(x, correction=0), torch.std(x, correction=0), torch.std_mean(x, correction=0)[0]), x)
    assert all(math.isnan(g) for g in got)


@pytest.mark.parametrize("dim", BOTH)
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int8, torch.int32, torch.int64, torch.uint8], ids=word)
@pytest.mark.parametrize("op", ["argmax", "argmin", "max_dim", "min_dim"])
def test_case_45_pytorch_99879_first_of_ties_and_of_nans(op, dtype, dim):
    r = random.Random(1)
    pair = op.endswith("_dim")
    spelled = f"v, r = {op}(x, dim={dim})\nreturn v, r" if pair else f"r = {op}(x, dims=[{dim}])\nreturn r"
    text = f"graph g(n: size, m: size, x: {word(dtype)}[n, m]) {{\n{spelled}\n}}"
    best = max if "max" in op else min
    for n in [*SIZES, 40, 4099]:
        rows = [[float(r.randint(0, 3)) for _ in range(n)] for _ in range(7)]
        rows[0] = [2.0] * n
        if dtype.is_floating_point:
            for row, ats in ((1, {n - 1}), (2, {0, n - 1}), (3, {n // 2, n // 2 + 1})):
                for at in ats:
                    if at < n:
                        rows[row][at] = NAN
            rows[4] = [-INF] * n
            rows[5] = [INF] * n
            rows[6] = [0.0 if i % 2 else -0.0 for i in range(n)]
        want = [next((i for i, v in enumerate(row) if v != v), None) for row in rows]
        want = [row.index(best(row)) if at is None else at for row, at in zip(rows, want)]
        x = lying([torch.tensor(v, dtype=torch.float64) for v in rows], dim).to(dtype)
        got = run(text, *x.shape, x)
        index = got[1] if pair else got
        assert index.tolist() == want, n
        if pair:
            values = torch.stack([x.select(1 - dim, i)[at] for i, at in enumerate(want)])
            assert same(got[0], values)  # of zeros the first, whatever its sign
            if x.shape[dim]:
                eager = getattr(torch, op[:3])(x, dim)
                assert same(got[0], eager.values) and torch.equal(got[1], eager.indices)


def test_case_47_pytorch_154168_more_than_2_to_the_32_elements():
    """A view of 2^33 elements over 8: positions beyond 32 bits are computed in 64."""
    n = 2**30
    text = f"graph g(x: f32[8]) {{\ne = expand(x, shape=[{n}, 8])\nr = slice(e, dim=0, start={n - 2}, end={n}, step=1)\ny = add(r, 1)\nreturn y\n}}"
    assert run(text, torch.arange(8.0)).tolist() == [list(map(float, range(1, 9)))] * 2
    text = (f"graph g(x: i64[1]) {{\ni = iota(size={2**33}, dtype=i64)\ns = slice(i, dim=0, start={2**33 - 3}, end={2**33}, step=1)\n"
            "r = add(s, x)\nreturn r\n}")
    assert run(text, torch.ones(1, dtype=torch.int64)).tolist() == [2**33 - 2, 2**33 - 1, 2**33]
    big = torch.ones(1).expand(2**33)
    got = through_torch(lambda x: x[2**32 + 5:2**32 + 8] * 2, big)
    assert got.tolist() == [2.0] * 3


@pytest.mark.parametrize("op", [torch.argmin, torch.argmax])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64], ids=word)
def test_case_48_pytorch_95370_arg_reductions_of_empty_tensors(dtype, op):
    got = through_torch(lambda x: op(x.view(0, 3), 1), torch.zeros(0, 3, dtype=dtype))
    assert got.shape == (0,) and got.dtype == torch.int64
    got = through_torch(lambda x: op(x, 0).view(0, 3), torch.zeros(3, 0, 3, dtype=dtype))
    assert got.shape == (0, 3)


@pytest.mark.parametrize("op", [torch.argmin, torch.argmax, torch.amax])
def test_case_48_pytorch_95370_nothing_has_no_extreme(op):
    with pytest.raises(Exception, match="(?i)specify the dim|non-zero size|numel|empty|expected reduction dim|zero-size dimension"):
        through_torch(lambda x: op(x, 1), torch.zeros(3, 0))


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
@pytest.mark.parametrize("dynamic", [False, True])
def test_case_49_pytorch_107066_empty_operands(dtype, dynamic):
    """Nothing is read, whatever else the kernel does; sums of nothing are their neutral elements."""
    def f(x, y):
        return x + y[:, :0], x.sum(1), x.prod(1), x.sum(), x.mean(1), (x * 2).softmax(1)

    got = through_torch(f, torch.ones(5, 0, dtype=dtype), torch.ones(5, 3, dtype=dtype), dynamic=dynamic)
    wanted = (5, 0), [0.0] * 5, [1.0] * 5, 0.0, [NAN] * 5, (5, 0)
    for g, want in zip(got, wanted):
        assert g.dtype == dtype
        assert g.shape == want if isinstance(want, tuple) else same(g, torch.tensor(want, dtype=dtype))


def test_case_49_pytorch_197095_interpolate_of_nothing_raises():
    with pytest.raises(Exception, match="(?i)non-empty|greater than 0|input and output sizes|dimension with size 0"):
        through_torch(lambda x: torch.nn.functional.interpolate(x * 1, size=(4, 4), mode="bilinear"), torch.zeros(1, 1, 0, 4))


@pytest.mark.parametrize("op", ["any", "all"])
@pytest.mark.parametrize("dim", BOTH)
def test_found_7_any_and_all_of_uint8_stay_uint8(op, dim):
    for dtype, out in ((torch.uint8, torch.uint8), (torch.int8, torch.bool), (torch.float32, torch.bool), (torch.bool, torch.bool)):
        for n in SIZES:
            rows = [[0] * n, [1] * n, [i == n - 1 for i in range(n)], [i != n // 2 for i in range(n)]]
            x = lying([torch.tensor(v) for v in rows], dim).to(dtype)
            want = torch.tensor([(any if op == "any" else all)(v) for v in rows]).to(out)
            assert same(run(reduction(op, dtype, dim), *x.shape, x), want)


@pytest.mark.parametrize("shape", [(3, 4), (0, 2)])
def test_found_7_through_torch(shape):
    x = (torch.arange(math.prod(shape)) % 5).to(torch.uint8).reshape(shape)
    for f in (lambda x: torch.any(x, 0), lambda x: torch.all(x, 1), torch.any):
        assert same(through_torch(f, x), f(x)) and f(x).dtype == torch.uint8


@pytest.mark.parametrize("dim", BOTH)
@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_found_8_variance_of_equal_values_is_zero(dtype, dim):
    for value in (1.418e14, 0.1, -3.3e-5, 1e30, 7.0):
        if not torch.tensor(value).to(dtype).isfinite():
            continue
        for n in SIZES[1:]:
            x = torch.full((n, 3) if dim == 0 else (3, n), value, dtype=torch.float64).to(dtype)
            assert (run(reduction("var", dtype, dim), *x.shape, x) == 0).all(), (value, n)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=word)
def test_found_8_layer_norm_of_equal_values_is_zero(dtype):
    text = f"graph g(n: size, m: size, x: {word(dtype)}[n, m]) {{\nr = layer_norm(x, none, none, normalized_shape=[m])\nreturn r\n}}"
    for value in (1.418e14, 0.1, -3.3e-5, 7.0):
        for n in SIZES:
            assert (run(text, 3, n, torch.full((3, n), value, dtype=dtype)) == 0).all(), (value, n)


@pytest.mark.parametrize("dim", BOTH)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=word)
@pytest.mark.parametrize("op", ["var", "std"])
def test_found_11_variance_has_no_cancellation(op, dtype, dim):
    """Means far above the spread. Expected: exact rational arithmetic on the stored values."""
    from fractions import Fraction

    torch.manual_seed(2)
    for n in SIZES[1:]:
        for offset in (0.0, 100.0):
            x = (torch.randn((n, 3) if dim == 0 else (3, n), dtype=torch.float64) + offset).to(dtype)
            got = run(reduction(op, dtype, dim), *x.shape, x)
            for i in range(3):
                row = [Fraction(v) for v in x.select(1 - dim, i).double().tolist()]
                mean = sum(row) / n
                want = float(sum((v - mean) ** 2 for v in row) / (n - 1))
                want = math.sqrt(want) if op == "std" else want
                assert abs(got[i].item() - want) <= 2 * torch.finfo(dtype).eps * want, (n, offset)
