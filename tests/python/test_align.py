"""The switches that bring results closer to eager's, each by what it does to kernels or bits (docs/getting-started.md)."""
import pytest

torch = pytest.importorskip("torch")

import fuselab


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def run(fn, *inputs, **options):
    """(results, names of the kernels, texts of their IR)."""
    torch._dynamo.reset()
    known = fuselab.graphs()
    results = torch.compile(fn, backend="fuselab", options=options)(*inputs)
    kernels = [k for g in fuselab.graphs() if not any(g is other for other in known) for k in g.kernels]
    return results, [k["name"] for k in kernels], "\n".join(k["ir"] for k in kernels)


def chain(x, y):
    return ((x * y + x) * y - x).sum(-1)


def bf16(*shape):
    return torch.randn(*shape).bfloat16()


def test_eager_mode_has_the_bits_of_the_unfused_graph():
    x, y = bf16(33, 65), bf16(33, 65)
    eager_mode, names, _ = run(chain, x, y, precision="eager")
    assert len(names) == 1
    unfused, names, _ = run(chain, x, y, enable_autofuse=False)
    assert len(names) > 1
    assert torch.equal(eager_mode, unfused)


def test_eager_mode_has_the_bits_of_torch_for_exactly_rounded_operators():
    x, y = bf16(33, 65), bf16(33, 65)

    def pointwise(x, y):
        return (x * y + x) * y - x

    assert torch.equal(run(pointwise, x, y, precision="eager")[0], pointwise(x, y))
    assert not torch.equal(run(pointwise, x, y)[0], pointwise(x, y))  # rounded once: other bits, closer to fp64
    exact = pointwise(x.double(), y.double())
    error = lambda r: (r.double() - exact).abs().sum()  # noqa: E731
    assert error(run(pointwise, x, y)[0]) < error(pointwise(x, y))


def test_emulate_precision_casts_selects_eager_mode(monkeypatch):
    x, y = bf16(33, 65), bf16(33, 65)
    expected = run(chain, x, y, precision="eager")[0]
    monkeypatch.setenv("TORCHINDUCTOR_EMULATE_PRECISION_CASTS", "1")
    assert torch.equal(run(chain, x, y)[0], expected)
    _, _, ir = run(chain, x, y, precision="block")  # the call is stronger than the environment
    assert ir.count("cast") == 3  # after two loads and before the store, none between


def test_no_reduce_and_no_elemwise():
    x, y = torch.randn(8, 16), torch.randn(8, 16)
    assert len(run(chain, x, y)[1]) == 1
    names = run(chain, x, y, no_fuse=["reduce"])[1]
    assert len(names) == 2 and sum("sum" in n for n in names) == 1
    assert len(run(chain, x, y, no_fuse=["elemwise", "reduce"])[1]) == 4  # both products are the same kernel


def test_move_classes_off_keep_bits():
    x, y = torch.randn(8, 16), torch.randn(8, 16)
    expected = run(chain, x, y)[0]
    for name in ("concat", "slice", "gather", "transpose"):
        assert torch.equal(run(chain, x, y, no_fuse=[name])[0], expected)


def test_opt_level_0_and_skipped_passes_keep_bits():
    def fn(x):
        return (x * 1.0 + 0.0).abs().abs() / 2.0

    x = torch.randn(7, 19)
    expected = run(fn, x)[0]
    assert torch.equal(run(fn, x, opt_level=0)[0], expected)
    assert torch.equal(run(fn, x, skip_passes=["simplify"])[0], expected)
    assert torch.equal(expected, fn(x))


def test_partition_without_recomputation():
    def fn(x, w):
        return (torch.nn.functional.gelu(x @ w) * x).tanh().sum()

    def gradients(**options):
        torch._dynamo.reset()
        x, w = (torch.linspace(-1, 1, 64).reshape(8, 8).requires_grad_() for _ in range(2))
        torch.compile(fn, backend="fuselab", options=options)(x, w).backward()
        return x.grad, w.grad

    plain, kept = gradients(), gradients(partition="no-recompute")
    for a, b in zip(plain, kept):
        torch.testing.assert_close(a, b)


def test_matmul_is_left_to_the_host():
    x = torch.randn(8, 8)
    before = fuselab.harness_stats()["externs"]
    names = run(lambda x: (x @ x).abs(), x)[1]
    assert fuselab.harness_stats()["externs"] == before + 1
    assert len(names) == 1 and "mm" not in names[0]
