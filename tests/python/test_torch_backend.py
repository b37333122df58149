"""torch.compile(backend="fuselab") against PyTorch eager: graphs, aliasing, mutation, modes, dynamic sizes, options."""
import copy

import pytest

torch = pytest.importorskip("torch")

from torch.utils._pytree import tree_leaves  # noqa: E402

import fuselab  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_dynamo():
    torch._dynamo.reset()
    torch.manual_seed(0)


def same(got, want):
    """Values, types, shapes and strides."""
    got, want = tree_leaves(got), tree_leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        if isinstance(w, torch.Tensor):
            torch.testing.assert_close(g, w)
            assert g.stride() == w.stride()
            assert g.storage_offset() == w.storage_offset()
        else:
            assert g == w and type(g) is type(w)


def check(fn, *inputs, **options):
    """Compiles, runs on copies, compares results and the inputs afterwards; returns the compiled function."""
    compiled = torch.compile(fn, backend="fuselab", **options)
    mine, theirs = copy.deepcopy(inputs), copy.deepcopy(inputs)
    same(compiled(*mine), fn(*theirs))
    same(mine, theirs)
    return compiled


def compiled_something():
    return fuselab.harness_stats()["kernels"]


def test_registered():
    assert "fuselab" in torch._dynamo.list_backends(None)


def test_pointwise_chain_is_one_kernel():
    before = fuselab.harness_stats()
    check(lambda x, y: (x + y).abs() * 0.5, torch.randn(4, 5), torch.randn(5))
    after = fuselab.harness_stats()
    assert after["kernels"] - before["kernels"] == 1
    assert after["fallbacks"] == before["fallbacks"]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (7,), (16, 17), (2, 3, 4)])
def test_shapes(shape):
    check(lambda x: torch.exp(x) + x, torch.randn(shape))


@pytest.mark.parametrize("make", [
    lambda: torch.randn(6, 4).t(), lambda: torch.randn(8, 6)[::2, 1:5], lambda: torch.randn(4, 1).expand(4, 6),
    lambda: torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), lambda: torch.randn(10)[3:]])
def test_strides_of_inputs_and_results(make):
    check(lambda x: (x * 2, x.tanh().sum(-1)), make())


def test_results_that_alias_inputs():
    def f(x, y):
        return x.t(), x[1:], x, y * 2, y.view(-1)[2:]

    x, y = torch.randn(4, 3), torch.randn(4, 3)
    compiled = check(f, x, y)
    a, b, c, _, d = compiled(x, y)
    assert c is x
    for view, base in ((a, x), (b, x), (d, y)):
        assert view.untyped_storage().data_ptr() == base.untyped_storage().data_ptr()


def test_results_that_alias_each_other():
    def f(x):
        y = x * 2
        return y, y.t(), y[1:]

    compiled = check(f, torch.randn(4, 3))
    y, t, part = compiled(torch.randn(4, 3))
    y.zero_()
    assert not t.any() and not part.any()


def test_the_same_result_twice_and_none():
    def f(x):
        y = x + 1
        return y, None, y, 3

    compiled = check(f, torch.randn(3))
    a, _, b, n = compiled(torch.ones(3))
    assert a is b and n == 3


def test_input_mutation():
    def f(x, y):
        x.mul_(2)
        y[1:].add_(x[1:])
        return x + y

    check(f, torch.randn(3, 2), torch.randn(3, 2))


def test_mutation_of_a_view_of_an_input():
    def f(x):
        x.t()[0].fill_(3)
        return x.sum()

    check(f, torch.randn(3, 2))


def test_metadata_mutation():
    def f(x):
        x.t_()
        return x * 2

    check(f, torch.randn(3, 2))


def test_buffers_and_running_statistics():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(()))
            self.norm = torch.nn.BatchNorm1d(4)

        def forward(self, x):
            self.n += 1
            return self.norm(x) * self.n

    mine = Counter()
    theirs = copy.deepcopy(mine)
    compiled = torch.compile(mine, backend="fuselab")
    for _ in range(3):
        x = torch.randn(5, 4)
        same(compiled(x), theirs(x))
    same(list(mine.buffers()), list(theirs.buffers()))


def train(model, x):
    for p in model.parameters():
        p.grad = None
    loss = model(x).square().mean()
    loss.backward()
    return [loss.detach()] + [p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize("partition", ["min-cut", "no-recompute"])
def test_training(partition):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4),
                                torch.nn.Softmax(-1))
    x = torch.randn(5, 8)
    want = train(model, x)
    same(train(torch.compile(model, backend="fuselab", options={"partition": partition}), x), want)


@pytest.mark.parametrize("change, seed_format", [
    (lambda x: x.float(memory_format=torch.channels_last), torch.contiguous_format),
    (lambda x: x.float(memory_format=torch.channels_last), torch.channels_last),
    (lambda x: (x + 1, x.to(torch.bfloat16, memory_format=torch.channels_last)), torch.contiguous_format),
    (lambda x: (x * 2).half(memory_format=torch.channels_last), torch.contiguous_format),
    (lambda x: x.mul(3).contiguous(memory_format=torch.channels_last), torch.contiguous_format),
    (lambda x: torch.clone(x.exp(), memory_format=torch.channels_last), torch.contiguous_format)])
def test_layout_of_gradients_behind_a_change_of_memory_format(change, seed_format):
    """The gradient that comes in decides, as in eager, not the layout of the result."""
    layouts = []
    for fn in (change, torch.compile(change, backend="fuselab")):
        x = torch.linspace(-1, 1, 2 * 3 * 4 * 5).view(2, 3, 4, 5).requires_grad_()
        out = fn(x)
        out = out if isinstance(out, tuple) else (out,)
        seeds = [torch.linspace(0.5, 1.5, o.numel()).view(o.shape).to(o.dtype).contiguous(memory_format=seed_format) for o in out]
        grad, = torch.autograd.grad(out, [x], seeds)
        layouts.append(([o.stride() for o in out], grad.stride(), grad))
    assert layouts[0][0] == layouts[1][0]
    assert layouts[0][1] == layouts[1][1]
    torch.testing.assert_close(layouts[1][2], layouts[0][2])


def test_gradient_of_an_input():
    x = torch.randn(4, 6, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    f = lambda v: (v.sigmoid() * v).amax(-1)  # noqa: E731
    torch.compile(f, backend="fuselab")(x).sum().backward()
    f(y).sum().backward()
    same(x.grad, y.grad)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_bug_recomputed_maximum(dtype):
    """TorchInductor 1: the gradient of (a*0.3).amax(-1) was NaN because the saved maximum was rounded and a recomputed product not."""
    a = torch.randn(4, 64, dtype=dtype)
    mine, theirs = a.clone().requires_grad_(), a.clone().requires_grad_()
    f = lambda v: (v * 0.3).amax(-1)  # noqa: E731
    torch.compile(f, backend="fuselab")(mine).sum().backward()
    f(theirs).sum().backward()
    assert mine.grad.isfinite().all()
    same(mine.grad, theirs.grad)


def test_grad_modes():
    f = lambda x, w: (x * w).relu()  # noqa: E731
    compiled = torch.compile(f, backend="fuselab")
    x, w = torch.randn(3, 4), torch.randn(4, requires_grad=True)
    assert compiled(x, w).requires_grad
    with torch.no_grad():
        assert not compiled(x, w).requires_grad
    with torch.inference_mode():
        got = compiled(x, w)
        assert got.is_inference()
        torch.testing.assert_close(got, f(x, w))


def test_no_grad_inside():
    def f(x, w):
        with torch.no_grad():
            return x * w

    w = torch.randn(3, requires_grad=True)
    got = torch.compile(f, backend="fuselab")(torch.ones(3), w)
    assert not got.requires_grad


def test_autocast():
    model = torch.nn.Linear(8, 8)
    f = lambda x: model(x).relu()  # noqa: E731
    x = torch.randn(3, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        check(f, x)
        assert torch.compile(f, backend="fuselab")(x).dtype == torch.bfloat16


def test_dynamic_sizes_compile_once():
    f = lambda x, y: (x * x.shape[0] + y).softmax(-1)[1:] / x.shape[1]  # noqa: E731
    compiled = torch.compile(f, backend="fuselab", dynamic=True)
    before = None
    for n, m in ((4, 8), (5, 9), (100, 33), (3, 1000)):
        x, y = torch.randn(n, m), torch.randn(m)
        same(compiled(x, y), f(x, y))
        graphs = fuselab.harness_stats()["graphs"]
        assert before in (None, graphs)
        before = graphs


def test_dynamic_training():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))
    compiled = torch.compile(model, backend="fuselab", dynamic=True)
    for n in (3, 5, 17):
        x = torch.randn(n, 8)
        same(train(compiled, x), train(model, x))


def test_dynamic_views():
    f = lambda x: x.view(x.shape[0] * x.shape[1], -1).t().reshape(2, -1) + 1  # noqa: E731
    compiled = torch.compile(f, backend="fuselab", dynamic=True)
    for n in (2, 3, 6):
        x = torch.randn(n, 4, 6)
        same(compiled(x), f(x))


def test_extern_operators():
    def f(x, w, i):
        y = x @ w
        return torch.cat([y * 2, y.sort(-1).values], -1), torch.nn.functional.embedding(i, w)

    check(f, torch.randn(3, 4), torch.randn(4, 5), torch.tensor([0, 3, 1]))


def test_random_numbers_are_eagers():
    f = lambda x: torch.nn.functional.dropout(x * 2, 0.5) + torch.rand_like(x)  # noqa: E731
    x = torch.randn(10, 10)
    torch.manual_seed(3)
    want = f(x)
    torch.manual_seed(3)
    same(torch.compile(f, backend="fuselab")(x), want)


def test_complex_falls_back_with_a_reason():
    before = fuselab.harness_stats()["fallbacks"]
    check(lambda x: torch.view_as_real(x * 2) + 1, torch.randn(3, dtype=torch.complex64))
    stats = fuselab.harness_stats()
    assert stats["fallbacks"] > before
    assert any("complex64" in r for r in stats["fallback_reasons"])


def test_data_dependent_sizes_fall_back():
    f = lambda x: x[x > 0].sum() + 1  # noqa: E731
    check(f, torch.randn(10))
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        torch._dynamo.reset()
        check(f, torch.randn(10))


def test_meta_tensors_fall_back():
    got = torch.compile(lambda x: x * 2 + 1, backend="fuselab")(torch.randn(3, device="meta"))
    assert got.device.type == "meta" and got.shape == (3,)


def test_0d_constant_cumsum():
    """TorchInductor 6: cumsum of a 0-d constant was a compile error."""
    check(lambda: torch.tensor(0.3).cumsum(0))


def test_bug_strides_of_transposed_inputs():
    """TorchInductor 10."""
    x = torch.rand(4, 6)
    check(lambda v: torch.pow(0.5, v.t()), x)
    check(lambda v, w: torch.copysign(v.t(), w), x.half(), torch.randn(6, 4))
    check(lambda v, w: torch.logical_and(v.t(), w.t()), x > 0.5, x > 0.3)


def test_threads_follow_torch():
    f = lambda x: (x * 2 + 1).sum(-1)  # noqa: E731
    x = torch.randn(512, 1000)
    compiled = torch.compile(f, backend="fuselab")
    old = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = compiled(x)
        torch.set_num_threads(2)
        assert torch.equal(one, compiled(x))
    finally:
        torch.set_num_threads(old)


def test_unknown_option():
    with pytest.raises(Exception, match="unknown option 'fusion'.*precision"):
        torch.compile(lambda x: x + 1, backend="fuselab", options={"fusion": 1})(torch.ones(2))
    with pytest.raises(Exception, match="partition is 'x'.*min-cut"):
        torch.compile(lambda x: x + 1, backend="fuselab", options={"partition": "x"})(torch.ones(2))


def test_skip_ops_and_nodes():
    f = lambda x: x.tanh() + x.exp()  # noqa: E731
    check(f, torch.randn(4), options={"skip_ops": ["tanh"]})
    reasons = fuselab.harness_stats()["fallback_reasons"]
    assert any("aten.tanh.default" in r and "skip_ops" in r for r in reasons)


def test_decompose_keeps_composites():
    x = torch.randn(4, 8)
    check(lambda v: v.softmax(-1), x)
    check(lambda v: v.softmax(-1), x, options={"decompose": True})
    check(lambda v: v.softmax(-1), x, options={"decompose": ["softmax"]})


def test_report_lists_lowered_and_fallbacks():
    from fuselab.torch import stats

    check(lambda x: (x + 1).sort().values, torch.randn(4))
    assert "aten.add.Tensor(f32[4], 1) -> f32[4]" in stats.report()
    assert "Lowered" in stats.report()


def test_dynamic_integers_may_be_negative():
    f = lambda x, dim, n: (x * n).sum(dim)  # noqa: E731
    compiled = torch.compile(f, backend="fuselab", dynamic=True)
    x = torch.randn(3, 5)
    for dim, n in ((-1, 2), (-2, -3), (1, 0)):
        same(compiled(x, dim, n), f(x, dim, n))
