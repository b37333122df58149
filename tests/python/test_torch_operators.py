"""Operators of PyTorch's own samples that were once wrong, refused or left to PyTorch, against eager."""
import copy

import pytest

torch = pytest.importorskip("torch")

import fuselab  # noqa: E402

FLOATS = [torch.float32, torch.float16, torch.bfloat16]


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    torch.manual_seed(0)


def check(fn, *inputs, whole=True, **tolerance):
    """Values, types, shapes and strides as eager's; `whole`: nothing of it is left to PyTorch."""
    before = fuselab.harness_stats()
    got, want = torch.compile(fn, backend="fuselab")(*inputs), fn(*inputs)
    after = fuselab.harness_stats()
    torch.testing.assert_close(got, want, equal_nan=True, **tolerance)
    assert got.stride() == want.stride()
    if whole:
        assert after["kernels"] > before["kernels"]
        assert after["fallback_reasons"] == before["fallback_reasons"]


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64])
@pytest.mark.parametrize("name", ["sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "sinc", "logit"])
def test_elementary_functions(name, dtype):
    if dtype.is_floating_point:
        x = torch.tensor([-2, -1, -0.75, -1e-3, -0.0, 0.0, 0.25, 0.5, 1, 1.5, 3, torch.inf, -torch.inf, torch.nan], dtype=dtype)
    else:
        x = torch.tensor([0, 1, 1, 0]).to(dtype)
    check(getattr(torch, name), x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("options", [{}, {"nan": 3.0, "posinf": 1.0, "neginf": -2.0}])
def test_nan_to_num(dtype, options):
    check(lambda x: torch.nan_to_num(x, **options), torch.tensor([torch.nan, torch.inf, -torch.inf, -0.0, 2.5], dtype=dtype))


@pytest.mark.parametrize("decimals", [0, 1, 3, -1, -2])
def test_round_to_decimals(decimals):
    check(lambda x: torch.round(x, decimals=decimals), torch.tensor([0.05, 0.15, -0.25, 2.5, 15.0, 25.0, 1234.5678, 1e30, torch.inf, torch.nan]))


@pytest.mark.parametrize("args", [(7,), (2, 9), (9, 2, -3), (0, 1, 0.125), (-3.5, 4)])
@pytest.mark.parametrize("dtype", [None, torch.float32, torch.int32])
def test_arange(args, dtype):
    if dtype == torch.int32 and any(isinstance(a, float) for a in args):
        pytest.skip("a step of 0")
    check(lambda x: torch.arange(*args, dtype=dtype) + x, torch.ones((), dtype=torch.int32))


@pytest.mark.parametrize("diagonal", [-2, 0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool])
def test_triangles_and_eye(diagonal, dtype):
    x = (torch.randn(2, 4, 5) * 3).to(dtype)
    check(lambda v: v.tril(diagonal), x)
    check(lambda v: v.triu(diagonal), x.mT)
    check(lambda v: v + torch.eye(4, 5), x.float())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("statistics", [None, torch.float32])
@pytest.mark.parametrize("skip", [(), ("batch_norm_training",)])
def test_batch_norm_training_in_low_precision(dtype, statistics, skip):
    """Eager saves f16 statistics of an f16 batch norm, PyTorch's shape function says f32. Errors are no larger than eager's."""
    def f(x, mean, var, weight):
        return torch.nn.functional.batch_norm(x, mean, var, weight, training=True)

    mean, var, weight = (torch.rand(5, dtype=statistics or dtype) for _ in range(3))
    x = torch.randn(4, 5, 3, dtype=dtype)
    mine, theirs = [mean.clone(), var.clone()], [mean.clone(), var.clone()]
    got = torch.compile(f, backend="fuselab", options={"skip_ops": list(skip)})(x, *mine, weight)
    want, wide = [f(x, *theirs, weight), *theirs], [mean.double(), var.double()]
    exact = [f(x.double(), *wide, weight.double()), *wide]
    for g, eager, e in zip([got, *mine], want, exact, strict=True):
        assert g.dtype == eager.dtype
        rounding = torch.finfo(g.dtype).eps * e.abs() / 2
        assert ((g - e).abs() <= (eager - e).abs().max() + rounding).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool])
def test_like(dtype):
    x = torch.ones(3, 4, dtype=dtype)
    check(lambda v: torch.full_like(v, 1), x)
    check(lambda v: torch.full_like(v, 2.5, dtype=torch.float64), x)
    check(torch.isfinite, x.t())


def test_bounds_of_bool():
    x, y = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    check(torch.clamp_min, x, y)
    check(torch.clamp_max, x, y)


@pytest.mark.parametrize("source", [torch.float32, torch.int32])
def test_copy(source):
    check(lambda x, y: torch.zeros_like(x).copy_(y), torch.randn(3, 4), torch.ones(4, dtype=source))


@pytest.mark.parametrize("repeats", [(2,), (1, 3), (2, 1, 2), (0, 2), (2, 3, 1, 1)])
@pytest.mark.parametrize("shape", [(), (3,), (3, 0), (4, 5)])
def test_repeat(repeats, shape):
    if len(repeats) >= len(shape):
        check(lambda x: x.repeat(repeats), torch.randn(shape), whole=0 not in (*repeats, *shape))
        check(lambda x: x.mT.repeat(repeats) if x.dim() > 1 else x.repeat(repeats), torch.randn(shape), whole=False)


@pytest.mark.parametrize("dtype", FLOATS)
def test_instance_norm_without_statistics(dtype):
    """Against float64: near 0 eager's x * scale + shift has cancelled."""
    x = torch.randn(3, 5, 4, 7, dtype=dtype) * 3 + 1
    before = fuselab.harness_stats()
    got = torch.compile(torch.nn.functional.instance_norm, backend="fuselab")(x)
    assert fuselab.harness_stats()["fallbacks"] == before["fallbacks"]
    torch.testing.assert_close(got, torch.nn.functional.instance_norm(x.double()).to(dtype))


NORMS = {"batch_norm": lambda: torch.nn.BatchNorm2d(4), "group_norm": lambda: torch.nn.GroupNorm(2, 4),
         "layer_norm": lambda: torch.nn.LayerNorm([6, 6])}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("name", NORMS)
def test_training_of_norms_in_low_precision(name, mixed, dtype):
    """Results, gradients and running statistics no less accurate than eager's, with f32 parameters too; nothing left to PyTorch."""
    x = (torch.randn(8, 4, 6, 6) + torch.tensor([0.0, 1.0, 3.3, 30.7]).view(4, 1, 1)).to(dtype)
    seed, model = torch.randn(x.shape).to(dtype), NORMS[name]()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape))
    model = model if mixed else model.to(dtype)

    def train(model, x, compiled=False):
        x, model = x.clone().requires_grad_(), copy.deepcopy(model).to(x.dtype if x.dtype == torch.float64 else None)
        y = (torch.compile(model, backend="fuselab") if compiled else model)(x)
        y.backward(seed.to(y.dtype))
        return [y.detach(), x.grad, *(p.grad for p in model.parameters()), *model.buffers()]

    before = fuselab.harness_stats()
    got = train(model, x, compiled=True)
    after = fuselab.harness_stats()
    assert after["kernels"] > before["kernels"]
    if name != "group_norm":  # gradients of its weight and bias have no row
        assert after["fallback_reasons"] == before["fallback_reasons"]
    for g, eager, exact in zip(got, train(model, x), train(model, x.double()), strict=True):
        assert g.dtype == eager.dtype and g.stride() == eager.stride()
        unit = torch.finfo(g.dtype).eps * exact.abs().max() if g.is_floating_point() else 0
        assert (g - exact).abs().max() <= 2 * (eager - exact).abs().max() + unit
