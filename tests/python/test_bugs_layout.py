"""Public bug reports: layout, aliasing, shapes (cases 62-70)."""
import collections
import copy
import warnings

import pytest
import torch

import fuselab
from bug_support import FLOATS, SIZES, run, same, same_bits, through_torch, word


def alike(got, want):
    """Bits, strides and offset."""
    return same_bits(got, want) and got.stride() == want.stride() and got.storage_offset() == want.storage_offset()


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32], ids=word)
def test_case_62_pytorch_183986_index_add_on_an_expanded_tensor(dtype):
    def f(x):
        return torch.zeros(1, 8, dtype=x.dtype).expand(4, -1).index_add(0, torch.tensor([0, 1, 0]), x * 1)

    want = torch.tensor([2, 1, 0, 0]).to(dtype)[:, None].expand(4, 8)
    assert torch.equal(through_torch(f, torch.ones(3, 8, dtype=dtype)), want)


@pytest.mark.parametrize("dynamic", [False, True])
def test_case_63_pytorch_111133_index_add_into_a_permuted_view(dynamic):
    def f(x, v):
        y = x * 1
        y.t().index_add_(0, torch.tensor([0, 4, 2]), v)
        return y, y.t()

    x, v = torch.ones(3, 5), torch.arange(9.0).reshape(3, 3)
    want = torch.ones(3, 5)
    for row, at in enumerate([0, 4, 2]):
        want[:, at] += v[row]
    y, t = through_torch(f, x, v, dynamic=dynamic)
    assert torch.equal(y, want) and torch.equal(t, want.t()) and t.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()

    def g(x, v):
        x.permute(1, 0).index_add_(0, torch.tensor([0, 4, 2]), v)
        return x * 2

    base = x.clone()
    doubled = through_torch(g, base, v, dynamic=dynamic)
    assert torch.equal(base, want) and torch.equal(doubled, want * 2)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("make", [
    lambda: torch.arange(6.0).as_strided((6, 1), (1, 0)), lambda: torch.arange(6.0).as_strided((1, 6), (0, 1)),
    lambda: torch.arange(6.0).as_strided((1, 6), (77, 1)), lambda: torch.arange(12.0).as_strided((3, 1, 4), (4, 0, 1)),
    lambda: torch.ones(1).expand(5), lambda: torch.arange(4.0)[:, None].expand(4, 3), lambda: torch.ones(1, 1).as_strided((1, 1), (0, 0))])
def test_case_64_pytorch_195066_strides_of_size_one_and_zero(make, dynamic):
    def f(x):
        return x + 1, x.sum(-1), x.t() * 2 if x.dim() == 2 else x * 2

    x = make()
    for got, want in zip(through_torch(f, x, dynamic=dynamic), f(x)):
        assert torch.equal(got, want)
        assert [s for s, n in zip(got.stride(), got.shape) if n > 1] == [s for s, n in zip(want.stride(), want.shape) if n > 1]


@pytest.mark.parametrize("dynamic", [False, True])
def test_case_65_pytorch_130394_175325_strides_and_offsets_of_results(dynamic):
    def f(x):
        y = x * 2
        return (y.as_strided((2, 2), (3, 1), 1), y.as_strided((3,), (4,), 2), y[1:, 1:], y.t()[1:], torch.empty_strided((2, 3), (1, 2)).fill_(3.0),
                torch.empty_strided((2, 2), (5, 1)).copy_(y[:2, :2]))

    x = torch.arange(12.0).reshape(3, 4)
    for got, want in zip(through_torch(f, x, dynamic=dynamic), f(x)):
        assert alike(got, want)


@pytest.mark.parametrize("dynamic", [False, True])
def test_case_65_pytorch_130394_175325_views_of_inputs(dynamic):
    def f(x):
        return x.as_strided((2, 2), (2, 1), 3), x[1:], x.t()

    x = torch.arange(20.0)[2:14].reshape(3, 4)
    for got, want in zip(through_torch(f, x, dynamic=dynamic), f(x)):
        assert alike(got, want) and got.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


@pytest.mark.parametrize("dynamic", [False, True])
def test_case_67_pytorch_186057_182193_titan_2430_offsets_beyond_31_bits(dynamic):
    """A view whose row distance is above 2^31 elements over memory that is small, and offsets computed from symbolic sizes."""
    far = torch.empty(2**32 + 64, dtype=torch.int8)  # untouched pages take no memory
    far[:16], far[2**32 - 8:2**32 + 8] = torch.arange(16, dtype=torch.int8), torch.arange(16, dtype=torch.int8) + 50
    x = far.as_strided((2, 8), (2**32 - 8, 1))
    assert torch.equal(through_torch(lambda x: x + 1, x, dynamic=dynamic), torch.stack([torch.arange(8), torch.arange(8) + 50]).to(torch.int8) + 1)
    assert torch.equal(through_torch(lambda x: x[1:, 2:] * 1, x, dynamic=dynamic), (torch.arange(2, 8) + 50).to(torch.int8)[None])
    assert through_torch(lambda f: f[2**32:2**32 + 4] + 0, far, dynamic=dynamic).tolist() == [58, 59, 60, 61]


def test_case_67_pytorch_186057_symbolic_extents():
    """The product of the sizes is above 2^31, what is read is not."""
    text = ("graph g(n: size, m: size, x: i8[m]) {\ne = expand(x, shape=[n, m])\n"
            "s = slice(e, dim=0, start=0, end=2, step=1)\nr = add(s, 1)\nreturn r\n}")
    assert run(text, 2**40, 5, torch.arange(5, dtype=torch.int8)).tolist() == [[1, 2, 3, 4, 5]] * 2


def test_case_68_pytorch_168279_122294_sizes_zero_and_one():
    """Example sizes 0 and 1: other sizes come out right afterwards, and recompilations are counted."""
    torch._dynamo.reset()
    f = torch.compile(lambda x: (x * 2).sum(-1), backend="fuselab", dynamic=True)
    before = fuselab.harness_stats()
    for n in (1, 0, *SIZES, 1, 0):
        x = torch.arange(2.0 * n).reshape(2, n)
        assert torch.equal(f(x), (x * 2).sum(-1)), n
    after = fuselab.harness_stats()
    graphs = after["graphs"] - before["graphs"]
    assert 1 <= graphs <= 3  # one for 0, one for 1, one for the rest
    assert after["recompiles"] - before["recompiles"] == graphs - 1


@pytest.mark.parametrize("shape, sizes", [((1,), [1]), ((5, 1), [1]), ((0, 1, 3), [0, 1]), ((4, 3), [])])
def test_case_68_specialised_sizes_are_noted(shape, sizes):
    torch._dynamo.reset()
    before = collections.Counter(fuselab.harness_stats()["notes"])
    torch.compile(lambda first: first + 1, backend="fuselab", dynamic=True)(torch.zeros(shape))
    notes = collections.Counter(fuselab.harness_stats()["notes"]) - before
    assert sum(notes.values()) == len(sizes)
    for size in sizes:
        assert any(f"size {size} of dimension {shape.index(size)} is compiled as a constant" in n and "first" in n for n in notes)
    torch._dynamo.reset()
    fixed = collections.Counter(fuselab.harness_stats()["notes"])
    torch.compile(lambda first: first + 1, backend="fuselab", dynamic=False)(torch.zeros(shape))
    assert collections.Counter(fuselab.harness_stats()["notes"]) == fixed  # there every size is a constant


def test_case_68_sizes_of_parameters_are_no_news():
    torch._dynamo.reset()
    before = dict(fuselab.harness_stats()["notes"])
    model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.ReLU())
    torch.compile(model, backend="fuselab", dynamic=True)(torch.zeros(4, 3))
    assert fuselab.harness_stats()["notes"] == before


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_69_onnxruntime_4110_inner_values_that_are_results(dtype, dynamic):
    def f(x):
        a = x * 3
        b = a.exp()
        c = b.sum(-1, keepdim=True)
        return a, b / c, c, a

    x = torch.linspace(-1, 1, 34).reshape(2, 17).to(dtype)
    a, p, c, again = through_torch(f, x, dynamic=dynamic)
    assert torch.equal(a, x * 3) and again is a
    torch.testing.assert_close(p.double(), a.double().softmax(-1), rtol=4 * torch.finfo(dtype).eps, atol=1e-7)
    torch.testing.assert_close(c.double(), a.double().exp().sum(-1, keepdim=True), rtol=2 * torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 2, 3), (4, 1, 3)])
def test_case_69_onnxruntime_27455_gammas_of_more_dimensions(shape, dtype):
    torch.manual_seed(0)
    x, w, b = torch.randn(5, *shape).to(dtype), torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)

    def f(x, w, b):
        return torch.nn.functional.layer_norm(x, shape, w, b)

    got = through_torch(f, x, w, b)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(got.double(), f(x.double(), w.double(), b.double()), rtol=4 * eps, atol=8 * eps)
    # and as an ordinary factor of three dimensions over a normalised last one
    scaled = through_torch(lambda x, w: torch.nn.functional.layer_norm(x, shape[-1:]) * w, x, w)
    torch.testing.assert_close(scaled.double(), torch.nn.functional.layer_norm(x.double(), shape[-1:]) * w.double(), rtol=4 * eps, atol=8 * eps)


@pytest.mark.parametrize("eps", [1e-5, 1e-7, 1e-12, 0.0])
@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_case_69_onnxruntime_15722_small_epsilons_are_not_rounded_away(dtype, eps):
    """1e-7 is no f16 number that matters, 1e-12 is none at all: it enters in the compute type."""
    x = (torch.randn(4, 33, generator=torch.Generator().manual_seed(0)) * 3e-4).to(dtype)
    got = through_torch(lambda x: torch.nn.functional.layer_norm(x, (33,), eps=eps), x)
    want = torch.nn.functional.layer_norm(x.double(), (33,), eps=eps)
    torch.testing.assert_close(got.double(), want, rtol=8 * torch.finfo(dtype).eps, atol=8 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("dynamic", [False, True])
def test_case_70_tinygrad_16192_the_first_call_and_later_ones_are_equal(dynamic):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.n, self.b = torch.nn.Linear(16, 33), torch.nn.LayerNorm(33), torch.nn.Linear(33, 16)

        def forward(self, x):
            return x + self.b(torch.nn.functional.gelu(self.n(self.a(x)))).softmax(-1)

    torch.manual_seed(0)
    torch._dynamo.reset()
    net, x = Net(), torch.randn(7, 16)
    compiled = torch.compile(copy.deepcopy(net), backend="fuselab", dynamic=dynamic)
    runs = []
    for _ in range(3):
        compiled.zero_grad()
        y = compiled(x)
        y.square().sum().backward()
        runs.append([y.detach().clone(), *(p.grad.clone() for p in compiled.parameters())])
    for later in runs[1:]:
        assert all(same_bits(p, q) for p, q in zip(runs[0], later))
    with torch.no_grad():
        first = compiled(x).clone()
        assert all(same_bits(compiled(x), first) for _ in range(2))


def test_found_6_scan_of_a_constant():
    got = through_torch(lambda: torch.tensor(0.3).cumsum(0))
    assert same(got, torch.tensor(0.3))
    got = through_torch(lambda x: torch.tensor(0.3).cumsum(0) + x, torch.ones(3))
    assert torch.equal(got, torch.full((3,), 1.3))


@pytest.mark.parametrize("dynamic", [False, True])
def test_found_10_strides_of_results(dynamic):
    m, h = torch.rand(5, 3), torch.rand(5, 3).half()
    cases = [(lambda x: torch.pow(0.5, x), (m.t(),)), (torch.copysign, (h.t(), torch.randn(3, 5))), (torch.copysign, (h.t(), torch.randn(5, 3).t())),
             (torch.logical_and, ((m > 0.5).t(), (m > 0.2).t())), (torch.logical_or, (m.t(), m.t())), (lambda x, y: x + y, (m.t(), torch.rand(3, 5))),
             (lambda x: x.exp(), (torch.rand(2, 3, 4).permute(2, 0, 1),)), (lambda x: x.clamp(0.2, 0.8), (m.t(),)), (torch.isnan, (m.t(),)),
             (lambda x: torch.where(x > 0.5, x, 0.0), (m.t(),)), (lambda x: x.to(torch.float16), (m.t(),)),
             (lambda x: x.sum(0, keepdim=True) + x, (m.t(),))]
    for f, inputs in cases:
        got, want = through_torch(f, *inputs, dynamic=dynamic), f(*inputs)
        assert got.dtype == want.dtype and got.stride() == want.stride()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=word)
@pytest.mark.parametrize("reduce", ["amax", "amin", "max"])
@pytest.mark.parametrize("factor", [0.3, 1.7])
def test_found_1_gradient_through_an_extreme_of_a_product(factor, reduce, dtype):
    """The recomputed product must be the one whose extreme was saved: else no element equals it and the gradient is 0/0."""
    def f(a):
        y = a * factor
        return (y.max() if reduce == "max" else getattr(y, reduce)(-1)).float().sum()

    a = torch.randn(4, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
    mine, theirs = a.clone().requires_grad_(), a.clone().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        through_torch(f, mine).backward()
        f(theirs).backward()
    assert mine.grad.isfinite().all()
    torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64], ids=word)
def test_reshapes_that_regroup_elements(dtype, dynamic):
    """[3, 7] as [7, 3]: no strides in a kernel's loops say that. Of inputs, of computed values, of permuted ones, before and after rows."""
    cases = [lambda x: x.view(7, 3) + 1, lambda x: (x + 1).view(7, 3) * 2, lambda x: (x.t() * 2).reshape(3, 7) * 2, lambda x: x.t().reshape(3, 7) + x,
             lambda x: (x + 2).view(7, 3).sum(0), lambda x: (x.sum(1, keepdim=True) + x).view(7, 3) + 1, lambda x: x[:, 1:].reshape(2, 9) + 1,
             lambda x: (x + 1).view(7, 3)]
    x = torch.arange(21).reshape(3, 7).to(dtype)
    for f in cases:
        fallbacks = fuselab.harness_stats()["fallbacks"]
        got = through_torch(f, x, dynamic=dynamic)
        assert same_bits(got, f(x)) and got.stride() == f(x).stride()
        assert dynamic or fuselab.harness_stats()["fallbacks"] == fallbacks  # nothing runs in PyTorch


@pytest.mark.parametrize("shape", ["[7, 3]", "[m, n]"])
@pytest.mark.parametrize("strides", ["", "{1, 3}"])
def test_reshapes_that_regroup_elements_in_graphs(shape, strides):
    if shape == "[m, n]":
        head, sizes = ("graph g(n: size, m: size, x: f32[n, m]{1, n})" if strides else "graph g(n: size, m: size, x: f32[n, m])"), (3, 7)
    else:
        head, sizes = f"graph g(x: f32[3, 7]{strides})", ()
    x = torch.arange(21.0).reshape(7, 3).t() if strides else torch.arange(21.0).reshape(3, 7)
    for body, want in ((f"r = reshape(x, shape={shape})\ny = add(r, 1)", x.reshape(7, 3) + 1),
                       (f"a = exp(x)\nr = reshape(a, shape={shape})\ny = sum(r, dims=[0])", x.exp().reshape(7, 3).sum(0))):
        torch.testing.assert_close(run(head + " {\n" + body + "\nreturn y\n}", *sizes, x), want)
