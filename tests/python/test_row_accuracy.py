"""Normalisations and softmax: results that cancel or lie far below the row's maximum are closer than PyTorch's; hard rows stay right."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import fuselab

ROWS, N = 64, 512
LAYER = "layer_norm(x, w, b, normalized_shape=[512], eps=1e-05)"
NORMS = {
    "layer_norm": (f"graph f(x: f32[64, 512], w: f32[512], b: f32[512]) {{ y = {LAYER} return y }}", (ROWS, N), (N,)),
    "group_norm": (
        "graph f(x: f32[32, 4, 256], w: f32[4], b: f32[4]) { y = group_norm(x, w, b, num_groups=2, eps=1e-05) return y }", (32, 4, 256), (4,)),
    "batch_norm": (
        "graph f(x: f32[64, 16, 32], w: f32[16], b: f32[16]) { y, m, s = batch_norm_own_statistics(x, w, b, eps=1e-05) return y }",
        (64, 16, 32), (16,)),
}


def reference(name, x, w, b):
    """PyTorch's own function of these inputs, in their dtype."""
    if name == "layer_norm":
        return torch.nn.functional.layer_norm(x, x.shape[-1:], w, b)
    if name == "group_norm":
        return torch.nn.functional.group_norm(x, 2, w, b)
    return torch.nn.functional.batch_norm(x, None, None, w, b, training=True)


def random(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", NORMS)
def test_results_that_cancel_are_closer_than_pytorchs(name):
    text, shape, channels = NORMS[name]
    kernel = fuselab.compile(text)
    squares = {"fused": 0.0, "eager": 0.0}
    count = 0
    for seed in range(8):
        x, w, b = random(shape, seed), random(channels, seed + 100), random(channels, seed + 200)
        exact = reference(name, x.double(), w.double(), b.double())
        near = exact.abs() < 0.02  # the last rounding is below 1e-9 here: what is left comes from mean, deviation and product
        count += int(near.sum())
        for which, y in (("fused", kernel(x, w, b)), ("eager", reference(name, x, w, b))):
            squares[which] += float(((y.double() - exact)[near] ** 2).sum())
    rms = {k: (v / count) ** 0.5 for k, v in squares.items()}
    assert count > 500
    assert rms["fused"] < 2.5e-8 and rms["fused"] < 0.85 * rms["eager"], rms


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 3e-39, 1e30, 3.4e38])
def test_rows_of_equal_values_are_the_bias_exactly(value):
    x = torch.full((ROWS, N), value)
    w, b = random((N,), 1), random((N,), 2)
    assert torch.equal(fuselab.compile(NORMS["layer_norm"][0])(x, w, b), b.expand(ROWS, N))


@pytest.mark.parametrize("mean", [1.0, 1e3, 1e6, 1.5e7])
def test_rows_far_from_zero(mean):
    """Against fp64: a deviation is a difference of neighbours, which f32 has exactly; the mean between two floats is not lost."""
    x = (random((ROWS, N), 3) + mean).float()
    one, zero = torch.ones(N), torch.zeros(N)
    exact = torch.nn.functional.layer_norm(x.double(), (N,))
    y = fuselab.compile(NORMS["layer_norm"][0])(x, one, zero)
    assert float((y.double() - exact).abs().max()) < 2e-6


def test_one_value_beside_the_others():
    """Variance from the sum about the mean's high part: (1 ulp)^2 (1 - 1/N) / N, here seen with eps = 0."""
    x = torch.full((1, N), 1000.0)
    x[0, 7] = float(np.nextafter(np.float32(1000), np.float32(2000)))
    text = NORMS["layer_norm"][0].replace("[64, 512]", "[1, 512]").replace("1e-05", "0.0")
    y = fuselab.compile(text)(x, torch.ones(N), torch.zeros(N))
    root = (N - 1) ** 0.5
    assert float(y[0, 7]) == pytest.approx(root, rel=1e-6)
    assert float(y[0, 8]) == pytest.approx(-1 / root, rel=1e-6)


SOFTMAX = "graph f(x: f32[64, 512]) { y = softmax(x, dim=-1) return y }"


def ulps(y, exact):
    return (y.double() - exact).abs() / torch.from_numpy(np.spacing(exact.float().numpy())).double()


@pytest.mark.parametrize("most", [4.0, 16.0, 60.0])
def test_softmax_far_below_the_maximum(most):
    """exp(x - max) where x - max is rounded by up to 2^-19: half of that would be 16 ulp of the result."""
    x = torch.rand((ROWS, N), generator=torch.Generator().manual_seed(4)) * most
    exact = torch.softmax(x.double(), -1)
    fused, eager = ulps(fuselab.compile(SOFTMAX)(x), exact), ulps(torch.softmax(x, -1), exact)
    assert float(fused.max()) < 3.5 and fused.max() <= eager.max()
    assert float(fused.mean()) < 0.8


def test_softmax_edges_are_pytorchs():
    inf = float("inf")
    x = torch.randn((ROWS, N), generator=torch.Generator().manual_seed(5))
    x[0, ::2] = -inf
    x[1] = -inf
    x[2, 5] = inf
    x[3, 5] = float("nan")
    x[4, 1:] = -200.0  # underflows
    x[5, 1:] = x[5, 0] - 95.0  # subnormal
    x[6] = 3e38
    x[7, ::2] = -3e38
    x[8, 0], x[8, 1:] = 3e38, -3e38
    y, exact = fuselab.compile(SOFTMAX)(x), torch.softmax(x.double(), -1)
    assert torch.equal(torch.isnan(y), torch.isnan(exact))
    known = ~torch.isnan(exact)
    assert float((y.double() - exact)[known].abs().max()) < 1e-6
    assert bool((y[0, ::2] == 0).all()) and bool((y[7, ::2] == 0).all()) and float(y[8, 0]) == 1
    assert float(((y.double() - exact).abs() / exact)[5, 1:].max()) < 1e-3  # of 1e-44 to 1e-42: a few bits are left
