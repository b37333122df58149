"""Cross-entropy: the row's logarithm is picked inside the kernel, and only there where nothing else reads the log_softmax."""
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import fuselab  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def data(shape, dtype, ignored):
    x = (torch.randn(shape) * 3).to(dtype)
    t = torch.randint(0, shape[1], (shape[0], *shape[2:]))
    if t.numel() > 1:
        t.view(-1)[0] = ignored
    return x, t


def error(got, want):
    return (got.double() - want).abs().nan_to_num(0).max().item() if want.numel() else 0.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("shape", "reduction", "ignored"), [
    ((33, 1000), "mean", -100), ((7, 5), "sum", 2), ((2, 17, 3, 5), "mean", 2), ((4, 6, 3), "none", -100), ((0, 4), "mean", -100)])
def test_value_and_gradient_are_no_worse_than_eager(dtype, shape, reduction, ignored):
    def f(x, t):
        return F.cross_entropy(x * 0.5, t, reduction=reduction, ignore_index=ignored)

    x, t = data(shape, dtype, ignored)
    c = torch.compile(f, backend="fuselab")
    with torch.no_grad():
        got, eager, exact = c(x, t), f(x, t), f(x.double(), t)
    assert got.dtype == eager.dtype and got.shape == eager.shape and torch.equal(got.isnan(), eager.isnan())
    step = exact.abs().nan_to_num(0).max().item() * 2.0**-23 if exact.numel() else 0.0
    assert error(got, exact) <= error(eager, exact) + 2 * step
    xs = [x.clone().requires_grad_(), x.clone().requires_grad_(), x.double().requires_grad_()]
    for v, fn in zip(xs, (c, f, f)):
        fn(v, t).sum().backward()
    assert error(xs[0].grad, xs[2].grad) <= 1.1 * error(xs[1].grad, xs[2].grad) + 2.0**-23


def last_graph():
    return fuselab.graphs()[-1]


def test_the_logarithms_are_not_written():
    c = torch.compile(lambda x, t: F.cross_entropy(x * 0.5, t), backend="fuselab")
    with torch.no_grad():
        c(torch.randn(16, 100), torch.randint(0, 100, (16,)))
    graph = last_graph()
    assert graph.explain()["counts"]["externs"] == 0
    written = [name for step in graph.explain()["steps"] for name in step.get("outputs", [])]
    sizes = fuselab._core.value_types(graph.text)
    assert all(100 not in map(int, sizes[name][1]) for name in written if name in sizes)


def test_pytorch_reads_a_log_softmax_that_is_kept():
    def f(x, t):
        y = F.log_softmax(x, 1)
        return F.nll_loss(y, t), y

    x, t = data((16, 100), torch.float32, -100)
    c = torch.compile(f, backend="fuselab")
    with torch.no_grad():
        torch.testing.assert_close(c(x, t), f(x, t))
    assert last_graph().explain()["counts"]["externs"] == 1


def test_the_gradient_is_one_kernel():
    x = torch.randn(16, 100, requires_grad=True)
    c = torch.compile(F.cross_entropy, backend="fuselab")
    c(x, torch.randint(0, 100, (16,))).backward()
    counts = [g.explain()["counts"] for g in fuselab.graphs()[-2:]]
    assert any(n["kernels"] == 1 and n["externs"] == 0 for n in counts)


def test_weights_and_class_probabilities_are_pytorchs():
    x, w = torch.randn(16, 10), torch.rand(10)
    t, p = torch.randint(0, 10, (16,)), torch.softmax(torch.randn(16, 10), 1)
    for f, target in ((lambda x, t: F.cross_entropy(x, t, weight=w), t), (F.cross_entropy, p),
                      (lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), t)):
        torch._dynamo.reset()
        with torch.no_grad():
            torch.testing.assert_close(torch.compile(f, backend="fuselab")(x, target), f(x, target))


@pytest.mark.parametrize("wrong", [-1, 4, 2**40])
def test_a_target_out_of_range_is_an_error(wrong):
    c = torch.compile(F.cross_entropy, backend="fuselab")
    x, t = torch.randn(5, 4), torch.tensor([0, 1, 2, 3, 0])
    with torch.no_grad():
        c(x, t)
        t[3] = wrong
        with pytest.raises(IndexError):
            c(x, t)


def test_symbolic_batch():
    c = torch.compile(F.cross_entropy, backend="fuselab", dynamic=True)
    for n in (3, 16, 17, 1):
        x, t = torch.randn(n, 40), torch.randint(0, 40, (n,))
        with torch.no_grad():
            torch.testing.assert_close(c(x, t), F.cross_entropy(x, t))
