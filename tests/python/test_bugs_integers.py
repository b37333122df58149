"""Public bug reports: integers, division and types (cases 1-18)."""
import math
import random

import numpy as np
import pytest
import torch

from bug_support import FLOATS, INTEGERS, SIGNED, SIZES, graph, run, same, sized, through_torch, word


def extremes(dtype, n, seed=0):
    """n values of an integer type, its limits first."""
    info, r = torch.iinfo(dtype), random.Random(seed)
    edge = [info.max, info.min, info.max - 1, info.min + 1, 0, 1]
    values = [edge[i] if i < len(edge) and i < n else r.randint(info.min, info.max) for i in range(n)]
    return torch.tensor(values, dtype=dtype)


def wrapped(values, dtype):
    """Exact integers reduced to the type's range."""
    info = torch.iinfo(dtype)
    return torch.tensor([(int(v) - info.min) % (info.max - info.min + 1) + info.min for v in values], dtype=dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=word)
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_case_1_pytorch_108520_narrow_arithmetic_wraps_before_widening(op, dtype):
    exact = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b}[op]
    text = sized(f"a = {op}(x, y)\nr = cast(a, dtype=i64)", f"x: {word(dtype)}", f"y: {word(dtype)}")
    for n in SIZES:
        x, y = extremes(dtype, n), extremes(dtype, n, 1)
        want = wrapped([exact(a, b) for a, b in zip(x.tolist(), y.tolist())], dtype).long()
        assert torch.equal(run(text, n, x, y), want)


@pytest.mark.parametrize("dynamic", [False, True])
def test_case_1_pytorch_108520_through_torch(dynamic):
    def f(x):
        return (x + x).to(torch.int64)

    for shape in ((), (1,), (17,)):
        x = torch.full(shape, 2147483647, dtype=torch.int32)
        assert torch.equal(through_torch(f, x, dynamic=dynamic), torch.full(shape, -2))


@pytest.mark.parametrize("dtype", INTEGERS, ids=word)
def test_case_3_pytorch_109105_chains_wrap_at_every_step(dtype):
    """Steps whose exact results leave the type: a later decision sees the wrapped value."""
    w = word(dtype)
    text = sized("a = mul(x, y)\nb = add(a, x)\nc = gt(b, 100)\nd = bitwise_right_shift(b, 1)\nr = where(c, d, b)", f"x: {w}", f"y: {w}")
    for n in SIZES:
        x, y = extremes(dtype, n, 2), extremes(dtype, n, 3)
        b = wrapped([p * q + p for p, q in zip(x.tolist(), y.tolist())], dtype)
        assert torch.equal(run(text, n, x, y), torch.where(b > 100, b >> 1, b))


def test_case_3_pytorch_109105_the_reported_values():
    x, y = torch.tensor([100, 105], dtype=torch.int8), torch.tensor([50, 105], dtype=torch.int8)
    assert through_torch(lambda a, b: (a + b).to(torch.int32), x, y).tolist() == [-106, -46]


DIVISIONS = {"div_floor": lambda a, b: a // b, "div_trunc": lambda a, b: int(math.copysign(1, a) * math.copysign(1, b)) * (abs(a) // abs(b)),
             "remainder": lambda a, b: a % b, "fmod": lambda a, b: a - b * (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1)}


@pytest.mark.parametrize("dtype", SIGNED, ids=word)
@pytest.mark.parametrize("op", DIVISIONS)
def test_case_5_pytorch_184406_smallest_value_by_minus_one(op, dtype):
    text = sized(f"r = {op}(x, y)", f"x: {word(dtype)}", f"y: {word(dtype)}")
    low = torch.iinfo(dtype).min
    for n in SIZES:
        x, y = torch.full((n,), low, dtype=dtype), torch.full((n,), -1, dtype=dtype)
        assert torch.equal(run(text, n, x, y), torch.full((n,), low if op.startswith("div") else 0, dtype=dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=word)
@pytest.mark.parametrize("op", DIVISIONS)
def test_case_6_and_11_pytorch_143649_154420_dpctl_1260_zero_divisors_are_an_error(op, dtype):
    text = sized(f"r = {op}(x, y)", f"x: {word(dtype)}", f"y: {word(dtype)}")
    for n in [*SIZES, 300_000]:  # the last one runs on several threads
        x, y = torch.ones(n, dtype=dtype), torch.ones(n, dtype=dtype)
        assert run(text, n, x, y) is not None
        y[-1] = 0
        with pytest.raises(ZeroDivisionError):
            run(text, n, x, y)
        y[-1] = 1
        assert torch.equal(run(text, n, x, y), x if op.startswith("div") else torch.zeros_like(x))  # and still works


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8], ids=word)
@pytest.mark.parametrize("op", [torch.floor_divide, torch.fmod, torch.remainder])
def test_case_6_pytorch_143649_through_torch(op, dtype):
    with pytest.raises(ZeroDivisionError):
        through_torch(lambda a, b: op(a, b) + 1, torch.tensor([2, 5], dtype=dtype), torch.tensor([0], dtype=dtype))


@pytest.mark.parametrize("dtype", INTEGERS, ids=word)
def test_case_7_pytorch_143566_shift_counts_past_the_width(dtype):
    """Left: 0. Right: what shifting all bits out leaves, 0 or -1. Negative counts are out of range as well."""
    left = sized("r = bitwise_left_shift(x, y)", f"x: {word(dtype)}", f"y: {word(dtype)}")
    right = sized("r = bitwise_right_shift(x, y)", f"x: {word(dtype)}", f"y: {word(dtype)}")
    width = torch.iinfo(dtype).bits
    for n in SIZES:
        x = extremes(dtype, n, 4)
        for count in (0, 1, width - 1, width, width + 1, 2 * width if 2 * width < 128 else width + 3, -1, -width):
            if count < 0 and dtype == torch.uint8:
                continue
            y = torch.full((n,), count, dtype=dtype)
            inside = 0 <= count < width
            want_left = [v << count if inside else 0 for v in x.tolist()]
            want_right = [v >> count if inside else (-1 if v < 0 else 0) for v in x.tolist()]
            assert torch.equal(run(left, n, x, y), wrapped(want_left, dtype)), count
            assert torch.equal(run(right, n, x, y), wrapped(want_right, dtype)), count


def test_case_7_pytorch_143566_through_torch():
    assert through_torch(lambda x: x << 64, torch.tensor([1000])).tolist() == [0]


@pytest.mark.parametrize("dtype", SIGNED, ids=word)
@pytest.mark.parametrize("op", DIVISIONS)
def test_case_9_tilelang_ascend_1764_signs_of_quotients_and_remainders(op, dtype):
    text = sized(f"r = {op}(x, y)", f"x: {word(dtype)}", f"y: {word(dtype)}")
    pairs = [(7, 2), (-7, 2), (7, -2), (-7, -2)]
    if op in ("div_floor", "remainder"):
        assert [DIVISIONS[op](*p) for p in pairs] == ([3, -4, -4, 3] if op == "div_floor" else [1, 1, -1, -1])
    r = random.Random(5)
    for n in SIZES:
        x, y = extremes(dtype, n, 6), extremes(dtype, n, 7)
        y = torch.where((y == 0) | (y == -1), torch.tensor(3, dtype=dtype), y)
        for i in range(min(n, 4)):
            x[i], y[i] = pairs[i]
        for i in range(4, n):
            if i % 2:  # small divisors, so that quotients are large
                y[i] = r.choice([-5, -3, -2, 2, 3, 5, 7])
        want = wrapped([DIVISIONS[op](a, b) for a, b in zip(x.tolist(), y.tolist())], dtype)
        assert torch.equal(run(text, n, x, y), want)


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_9_tilelang_ascend_1764_signs_of_float_quotients(dtype):
    x, y = torch.tensor([7, -7, 7, -7] * 5, dtype=dtype), torch.tensor([2, 2, -2, -2] * 5, dtype=dtype)
    w = word(dtype)
    assert run(sized("r = div_floor(x, y)", f"x: {w}", f"y: {w}"), 20, x, y).tolist() == [3, -4, -4, 3] * 5
    assert run(sized("r = remainder(x, y)", f"x: {w}", f"y: {w}"), 20, x, y).tolist() == [1, 1, -1, -1] * 5


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_10_brian2_1496_floor_division_of_exact_multiples(dtype):
    """98 // 98 is 1, k·n // n is k: never a reciprocal, never one too small."""
    text = sized("r = div_floor(x, y)", f"x: {word(dtype)}", f"y: {word(dtype)}")
    exact_up_to = {torch.bfloat16: 256, torch.float16: 2048}.get(dtype, 10**6)
    for k in (1, 2, 3, 7, 41):
        y = torch.arange(1, 1001, dtype=torch.float64)
        y = y[y * k <= exact_up_to]
        got = run(text, len(y), (y * k).to(dtype), y.to(dtype))
        assert (got == k).all()
    # and the exact floor of quotients of integers, by integer arithmetic
    a, b = np.arange(-120, 120), np.resize(np.array([7, -3, 98, 11, -98]), 240)
    got = run(text, 240, torch.from_numpy(a).to(dtype), torch.from_numpy(b).to(dtype))
    assert np.array_equal(got.double().numpy(), a // b)


@pytest.mark.parametrize("a, b, result", [(torch.bool, torch.float16, torch.float16), (torch.float16, torch.float32, torch.float32),
                                          (torch.int32, torch.bfloat16, torch.bfloat16), (torch.bool, torch.float64, torch.float64)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_case_13_pytorch_197091_dtype_of_ldexp(a, b, result, dynamic):
    x, y = torch.tensor([1, 0, 1] * 3).to(a), torch.tensor([2, 3, -1] * 3).to(b)
    got = through_torch(torch.ldexp, x, y, dynamic=dynamic)
    assert got.dtype == result and got.tolist() == [4.0, 0.0, 0.5] * 3


@pytest.mark.parametrize("dtype", INTEGERS, ids=word)
@pytest.mark.parametrize("dynamic", [False, True])
def test_case_15_pytorch_97124_integer_sum_to_float_times_number(dtype, dynamic):
    def f(a):
        return (a + a).to(torch.float32) * 0.8

    got = through_torch(f, torch.zeros(7, dtype=dtype), dynamic=dynamic)
    assert same(got, torch.zeros(7))
    # 0.8 enters as f32(0.8), as in eager
    assert torch.equal(through_torch(f, torch.full((7,), 3, dtype=dtype), dynamic=dynamic), torch.full((7,), 6.0) * np.float32(0.8))


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_16_pytorch_97365_floats_are_no_indices(dtype):
    with pytest.raises(Exception, match="tensors used as indices must be"):
        through_torch(lambda a, b: a[b - 1], torch.arange(4.0), torch.zeros(3, dtype=dtype))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=word)
def test_case_17_directml_737_times_a_mask_keeps_type_and_values(dtype):
    text = sized("r = mul(x, m)", f"x: {word(dtype)}", "m: bool")
    for n in SIZES:
        x = (torch.arange(n) % 100 - (0 if dtype == torch.uint8 else 50)).to(dtype)
        mask = torch.arange(n) % 3 != 0
        want = torch.tensor([v if m else v * 0 for v, m in zip(x.tolist(), mask.tolist())], dtype=dtype)
        assert same(run(text, n, x, mask), want)


@pytest.mark.parametrize("dtype", INTEGERS, ids=word)
@pytest.mark.parametrize("dynamic", [False, True])
def test_case_18_pytorch_93784_number_bounds_promote_integers(dtype, dynamic):
    x = torch.arange(0 if dtype == torch.uint8 else -3, 14).to(dtype)

    def f(x):
        return torch.clamp_min(x, 0.5), torch.clamp_max(x, 2.5), torch.clamp(x, 0.5, 2.5), x + 0.5, x * 0.5, torch.clamp(x, 1, 2)

    v = x.float()
    wanted = v.clamp(min=0.5), v.clamp(max=2.5), v.clamp(0.5, 2.5), v + 0.5, v * 0.5, torch.clamp(x, 1, 2)
    for got, want in zip(through_torch(f, x, dynamic=dynamic), wanted):
        assert same(got, want)


def test_graphs_of_integers_keep_out_of_floating_point():
    """2^24 + 1, 2^53 + 1 and 2^63 - 1 survive every comparison and selection."""
    for dtype, big in (("i32", 2**24 + 1), ("i64", 2**53 + 1), ("i64", 2**63 - 1)):
        t = {"i32": torch.int32, "i64": torch.int64}[dtype]
        text = sized("a = maximum(x, y)\nb = eq(x, y)\nr = where(b, y, a)", f"x: {dtype}", f"y: {dtype}")
        for n in SIZES:
            x, y = torch.full((n,), big, dtype=t), torch.full((n,), big - 1, dtype=t)
            assert torch.equal(run(text, n, x, y), x)
    assert graph(text) is not None
