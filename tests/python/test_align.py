"""The switches that bring results closer to eager's, each by what it does to kernels or bits (docs/getting-started.md)."""
import warnings

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


def refusal(**options):
    """Code and text of the error for wrong options."""
    torch._dynamo.reset()
    with pytest.raises(Exception) as e:
        torch.compile(lambda v: v.exp(), backend="fuselab", options=options)(torch.ones(3))
    inner = e.value
    while not isinstance(inner, fuselab.Error):
        inner = inner.__cause__ or getattr(inner, "inner_exception", None)
    return inner.code, str(inner)


@pytest.mark.parametrize("option", ["skip_ops", "decompose"])
def test_operator_names_must_exist(option):
    code, text = refusal(**{option: ["softmaks"]})
    assert code == "options.unknown_operator"
    assert f"option {option}" in text and "'softmaks'" in text and "softmax" in text.split("close to it")[1]
    for name in ("aten.exp.nosuch", "exp exp", "", "nolib::op"):
        assert refusal(**{option: [name]})[0] == "options.unknown_operator", name
    for value in (3, [3], {"exp": 1}, None):
        assert refusal(**{option: value})[0] == "options.bad_value", value


@pytest.mark.parametrize(
    "options, text",
    [
        ({"skip_nodes": 5}, "a name or a list of names"),
        ({"keep_dtype": [1]}, "a name or a list of names"),
        ({"opt_level": 2}, "is 0 or 1"),
        ({"opt_level": "0"}, "opt_level"),
        ({"skip_passes": ["improve_precision"]}, "there is no pass 'improve_precision' to skip; there are"),
        ({"debug_dir": 5}, "must be a path"),
        ({"partition": "x"}, "min-cut, no-recompute"),
    ],
)
def test_option_values_are_checked(options, text):
    code, message = refusal(**options)
    assert code == "options.bad_value" and text in message


@pytest.mark.parametrize("name", ["exp", "Exp", "aten.exp", "aten.exp.default", "torch.ops.aten.exp.default", "torch.exp"])
def test_skip_ops_takes_every_spelling(name):
    torch._dynamo.reset()
    before = sum(fuselab.harness_stats()["fallback_reasons"].values())
    x = torch.randn(5)
    torch.compile(lambda v: v.exp().abs(), backend="fuselab", options={"skip_ops": [name]})(x)
    reasons = fuselab.harness_stats()["fallback_reasons"]
    assert sum(reasons.values()) == before + 1 and any("aten.exp.default" in r and r.endswith("skip_ops") for r in reasons)


def test_skip_nodes_leaves_one_node_and_says_what_is_absent():
    torch._dynamo.reset()
    x = torch.randn(5)
    f = lambda v: (v.exp().abs() + 1).exp()  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(torch.compile(f, backend="fuselab", options={"skip_nodes": ["exp_1"]})(x), f(x))
    torch._dynamo.reset()
    with pytest.warns(UserWarning, match="skip_nodes: this graph has no node exp_7; there are abs_1, add, exp, exp_1"):
        torch.compile(f, backend="fuselab", options={"skip_nodes": "exp_7"})(x)
    # A node of the backward graph alone is not absent.
    torch._dynamo.reset()
    y = torch.randn(5, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.compile(lambda v: v.tanh().sum(), backend="fuselab", options={"skip_nodes": ["tanh", "tanh_backward"]})(y).backward()
    assert torch.allclose(y.grad, 1 - y.tanh() ** 2)


def test_decompose_list_keeps_what_it_names():
    def texts(**options):
        torch._dynamo.reset()
        known = fuselab.graphs()
        torch.compile(lambda v: v.softmax(-1) + 1, backend="fuselab", options=options)(torch.randn(4, 8))
        return "".join(k["graph"] for g in fuselab.graphs() if not any(g is other for other in known) for k in g.kernels)

    assert "softmax(" in texts()
    assert "softmax(" not in texts(decompose=True) and "amax(" in texts(decompose=True)
    for name in ("softmax", "aten._softmax", "aten._softmax.default"):
        assert "softmax(" in texts(decompose=[name]) and "amax(" not in texts(decompose=[name])
    assert "softmax(" not in texts(decompose=["var"])


@pytest.mark.parametrize(
    "module",
    [
        torch.nn.Softmax(-1), torch.nn.LogSoftmax(-1), torch.nn.LayerNorm(16), torch.nn.RMSNorm(16), torch.nn.GroupNorm(2, 4),
        torch.nn.BatchNorm1d(4), torch.nn.GELU(), torch.nn.GELU("tanh"), torch.nn.SiLU(), torch.nn.Mish(), torch.nn.Softplus(),
    ],
    ids=str,
)  # fmt: skip
def test_composites_taken_apart_compute_the_same(module):
    torch._dynamo.reset()
    x, y = (torch.linspace(-3, 3, 128).reshape(2, 4, 16).requires_grad_() for _ in range(2))
    known = fuselab.graphs()
    taken_apart = torch.compile(module, backend="fuselab", options={"decompose": True})(x)
    texts = "".join(k["graph"] for g in fuselab.graphs() if not any(g is other for other in known) for k in g.kernels)
    assert not any(f"{name}(" in texts for name in ("softmax", "layer_norm", "rms_norm", "group_norm", "gelu", "silu", "mish", "softplus"))
    whole = module(y)
    assert torch.allclose(taken_apart, whole, atol=1e-5)
    (taken_apart**2).sum().backward()
    (whole**2).sum().backward()
    assert torch.allclose(x.grad, y.grad, atol=1e-4)


def test_matmul_is_left_to_the_host():
    x = torch.randn(8, 8)
    before = fuselab.harness_stats()["externs"]
    names = run(lambda x: (x @ x).abs(), x)[1]
    assert fuselab.harness_stats()["externs"] == before + 1
    assert len(names) == 1 and "mm" not in names[0]
