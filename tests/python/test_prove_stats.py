"""The statistics of `fuselab prove` against NumPy, and the knobs of the kernel IR against the same arithmetic in NumPy."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from fuselab.prove import task_c2, task_c3
from fuselab.prove.ir import compile_ir, forced_chunk, kernel_of
from fuselab.prove.stats import Tally, Truth, shares, ulp, ulp_errors


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_ulp_is_numpys_spacing(dtype):
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(5000) * 2.0 ** rng.integers(-30, 15, 5000)).astype(dtype)
    x = np.concatenate([x, np.array([0, 1, 0.75, 2, np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal, 1000], dtype)])
    made = ulp(torch.from_numpy(x).double(), getattr(torch, dtype)).numpy()
    np.testing.assert_array_equal(made, np.spacing(np.abs(x)).astype(np.float64))


def test_errors_are_numpys():
    rng = np.random.default_rng(2)
    exact = rng.standard_normal(4000)
    actual = exact.astype(np.float32)
    errors, wrong = ulp_errors(torch.from_numpy(actual), torch.from_numpy(exact))
    expected = np.abs(actual.astype(np.float64) - exact) / np.spacing(np.abs(exact.astype(np.float32))).astype(np.float64)
    assert wrong == 0
    assert errors.numpy() == pytest.approx(expected, rel=1e-6) or np.max(np.abs(errors.numpy() - expected)) <= 0.5  # at powers of two
    assert errors.max() <= 0.5


def test_values_that_are_not_finite_are_counted():
    exact = torch.tensor([float("nan"), float("inf"), -float("inf"), 1.0, 1.0, 1e6, float("inf"), 2.0], dtype=torch.float64)
    actual = torch.tensor([float("nan"), float("inf"), float("inf"), float("nan"), 1.0, float("inf"), 1.0, 2.0]).half()
    errors, wrong = ulp_errors(actual, exact)
    assert wrong == 3  # the sign, a NaN for 1, 1 for infinity; 1e6 is infinity in f16
    assert errors.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("n", [1, 2, 99, 100, 12345])
def test_tally_has_numpys_percentiles(n):
    rng = np.random.default_rng(n)
    x = np.abs(rng.standard_normal(n)) ** 3
    x[rng.random(n) < 0.2] = 0
    tally = Tally()
    for part in np.array_split(x, 3):
        tally.add(torch.from_numpy(part))
    assert tally.count == n
    assert tally.max == x.max()
    assert tally.mean == pytest.approx(x.mean(), rel=1e-12)
    for share in (0.2, 0.5, 0.99, 1.0):
        assert tally.percentile(share) == pytest.approx(np.percentile(x, share * 100, method="inverted_cdf"), rel=1 / 1000)


def test_tally_remembers_where_the_maximum_was():
    tally = Tally()
    for seed, largest in enumerate([0.5, 3.0, 3.0, 1.0]):
        tally.add(torch.tensor([0.0, largest]), seed)
    assert (tally.max, tally.where) == (3.0, 1)


def test_shares():
    assert shares(torch.tensor([0, 0, 1, 2, 5])) == (0.4, 0.2, 0.4)


def tree_sum(x, chunk):
    """The order of a sum along a row (fuselab/kernel/ir.h), in NumPy."""
    steps = chunk // 16
    lanes = x.astype(np.float32).reshape(-1, 16)
    blocks = []
    for first in range(0, len(lanes), steps):
        block = lanes[first:first + steps]
        c = []
        for chain in range(4):
            total = np.zeros(16, np.float32)
            for row in block[chain::4]:
                total = total + row
            c.append(total)
        blocks.append((c[0] + c[1]) + (c[2] + c[3]))
    while len(blocks) > 1:  # their number is a power of two here
        blocks = [a + b for a, b in zip(blocks[::2], blocks[1::2], strict=True)]
    row = blocks[0]
    while len(row) > 1:
        row = row[: len(row) // 2] + row[len(row) // 2:]
    return row[0]


@pytest.mark.parametrize("chunk", [64, 512, 1024, 2048])
def test_a_forced_chunk_is_that_order(chunk):
    graph, ir = kernel_of(task_c2.GRAPH)
    kernel = compile_ir(graph, forced_chunk(ir, chunk))
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal(task_c2.LENGTH).astype(np.float16)
        t, y = kernel(torch.from_numpy(x[None]))
        expected = tree_sum(x, chunk)
        assert t.item() == expected
        assert y.item() == np.float16(expected)


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_newtons_rounds_are_numpys(rounds):
    f = np.float32
    x = np.random.default_rng(0).uniform(0.01, 100, (32, 32)).astype(np.float16)
    d = np.random.default_rng(1).uniform(0.01, 100, (32, 32)).astype(np.float16)
    a, b = x.astype(f), d.astype(f)
    s = (np.int32(0x5F375A86) - (a.view(np.int32) >> 1)).view(f)
    r = (np.int32(0x7EF311C7) - b.view(np.int32)).view(f)
    for _ in range(rounds):
        s = s * (f(1.5) - (f(0.5) * a) * (s * s))
        r = r * (f(2) - b * r)
    for op, given, expected in (("rsqrt", [x], s), ("div", [x, d], a * r)):
        graph, ir = kernel_of(task_c3.graph(op, 32))
        wide, y = compile_ir(graph, task_c3.newton_ir(ir, op, rounds))(*map(torch.from_numpy, given))
        np.testing.assert_array_equal(wide.numpy(), expected)
        np.testing.assert_array_equal(y.numpy(), expected.astype(np.float16))


def test_row_scale_is_numpys():
    rng = np.random.default_rng(3)
    exact = rng.standard_normal((8, 100)) ** 5
    actual = exact.astype(np.float32)
    unit = np.spacing(np.maximum(np.abs(exact), np.sqrt((exact**2).mean(-1, keepdims=True))).astype(np.float32)).astype(np.float64)
    made = Truth(torch.from_numpy(exact), torch.float32).largest_scaled(torch.from_numpy(actual))
    assert made == pytest.approx((np.abs(actual - exact) / unit).max(), rel=1e-12)
