"""Distances, metrics, verdicts and the fp64 reference as Python sees them; expected values are PyTorch's or by hand."""

import pytest

torch = pytest.importorskip("torch")
from fuselab import _core  # noqa: E402


def graph(dtype, body, inputs="x: {d}[B, M]"):
    return f"graph g({inputs.format(d=dtype)}) {{\n  z = {body}\n  return z\n}}"


DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}


def test_ulp_diff_counts_values_between():
    a = torch.tensor([1.0, 0.0, float("nan"), 1.0])
    b = torch.tensor([1.0 + 2**-22, -0.0, float("nan"), float("nan")])
    assert _core.ulp_diff(a, b).tolist() == [2, 0, 0, 2**63 - 1]
    assert _core.ulp_diff(a, b, signed_zero=True).tolist()[1] == 1
    half = torch.tensor([1.0, 65504.0], dtype=torch.float16)
    assert _core.ulp_diff(half, torch.tensor([2.0, float("inf")], dtype=torch.float16)).tolist() == [1024, 1]


def test_bit_equal_ignores_strides_only():
    x = torch.randn(4, 6)
    assert _core.bit_equal(x, x.t().contiguous().t())
    assert not _core.bit_equal(torch.tensor([0.0]), torch.tensor([-0.0]))


def test_complex_goes_in_as_pairs():
    x = torch.randn(64, dtype=torch.complex64)
    assert _core.cann_metrics(torch.view_as_real(x), torch.view_as_real(x))["passed"]
    assert not _core.cann_metrics(torch.view_as_real(x), torch.view_as_real(x.conj().resolve_conj()))["passed"]


def test_quantised_is_dequantised_first():
    x = torch.quantize_per_tensor(torch.randn(64), 0.1, 0, torch.qint8)
    assert _core.cann_metrics(x.dequantize(), x.dequantize())["passed"]


def test_errors_carry_codes():
    with pytest.raises(RuntimeError) as e:
        _core.ulp_diff(torch.zeros(2), torch.zeros(3))
    assert e.value.code == "numerics.mismatch"
    with pytest.raises(RuntimeError) as e:
        _core.fp64_reference(graph("f32", "exp(x)"), [torch.zeros(2, 2, dtype=torch.float16)])
    assert e.value.code == "call.dtype"
    with pytest.raises(RuntimeError) as e:
        _core.fp64_reference(graph("f32", "exp(x)"), [torch.zeros(2)])
    assert e.value.code == "call.shape"


ELEMENTWISE = {
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "exp": torch.exp, "expm1": torch.expm1, "sin": torch.sin, "erf": torch.erf,
    "silu": torch.nn.functional.silu, "mish": torch.nn.functional.mish, "softplus": torch.nn.functional.softplus,
    "elu": torch.nn.functional.elu, "hardswish": torch.nn.functional.hardswish, "relu": torch.relu, "abs": torch.abs,
}  # fmt: skip
ROWS = {
    "sum(x, dims=[1])": lambda x: x.sum(1),
    "mean(x, dims=[0])": lambda x: x.mean(0),
    "var(x, dims=[1])": lambda x: x.var(1),
    "std(x, dims=[0], correction=0)": lambda x: x.std(0, correction=0),
    "amax(x, dims=[1])": lambda x: x.amax(1),
    "logsumexp(x, dims=[1])": lambda x: x.logsumexp(1),
    "softmax(x, dim=0)": lambda x: x.softmax(0),
    "log_softmax(x, dim=1)": lambda x: x.log_softmax(1),
    "layer_norm(x, none, none, normalized_shape=[M])": lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("body", [f"{name}(x)" for name in ELEMENTWISE] + list(ROWS))
def test_reference_is_torch_in_float64(body, dtype):
    torch.manual_seed(0)
    x = (torch.randn(33, 70, dtype=torch.float64) * 2).to(DTYPES[dtype])
    fn = ROWS.get(body) or ELEMENTWISE[body.split("(")[0]]
    ref = _core.fp64_reference(graph(dtype, body), [x])[0]
    torch.testing.assert_close(ref.value, fn(x.double()), rtol=1e-12, atol=1e-13)
    assert not ref.undecided.any()
    # Not only an upper bound: f16 and bf16 results have at most one rounding of their own and f32's noise.
    if dtype in ("f16", "bf16"):
        eps = torch.finfo(DTYPES[dtype]).eps
        assert (ref.bound <= 0.51 * eps * ref.value.abs() + 1e-5).all()


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_rounded_is_torch_eager_for_exactly_rounded_operators(dtype):
    torch.manual_seed(1)
    x, y = (torch.randn(64, 65).to(DTYPES[dtype]) for _ in range(2))
    text = f"""graph g(x: {dtype}[B, M], y: {dtype}[B, M]) {{
      a = mul(x, 0.7)
      b = add(a, y)
      c = div(b, x)
      d = sub(c, y)
      e = maximum(d, a)
      f = square(e)
      return f, b
    }}"""
    a = x * 0.7
    b = a + y
    e = torch.maximum(b / x - y, a)
    got = _core.rounded(text, [x, y])
    assert _core.bit_equal(got[0], e.square())
    assert _core.bit_equal(got[1], b)
    # ... and torch lies within the eager bound of fp64.
    for ref, result in zip(_core.fp64_reference(text, [x, y], precision="eager"), (e.square(), b)):
        inside = (result.double() - ref.value).abs() <= ref.bound * (1 + 1e-12)
        assert (inside | ref.undecided | (result.double() == ref.value)).all()


def test_a_wrong_scale_fails_only_the_verdict():
    x = torch.randn(64, 64)
    text = graph("f32", "mul(x, 0.5)")
    ref = _core.fp64_reference(text, [x])[0]
    good, wrong = x * 0.5, x * 0.52
    assert _core.judge(good, good, ref)["passed"]
    assert _core.cann_metrics(good, wrong)["passed"]
    verdict = _core.judge(good, wrong, ref, output="z")
    assert not verdict["passed"] and verdict["line"].startswith("output:z precision FAILED: ")
    assert verdict["line"].count("CosineSim=") == 1


def test_unwritten_elements_follow_the_poison():
    first, second = torch.zeros(8, 8), torch.zeros(8, 8)
    for i, t in enumerate((first, second)):
        _core.fill_poison(t, i)
        t[:7] = 1.5
    verdict = _core.judge(torch.full((8, 8), 1.5), first, None, second)
    assert verdict["unwritten"] == 8 and not verdict["passed"]


def test_bfloat16_decisions_match_torch():
    torch.manual_seed(2)
    x = torch.randn(32, 32).bfloat16()
    text = "graph g(x: bf16[B, M]) {\n  a = mul(x, 0.3)\n  c = gt(a, 0.1)\n  return c\n}"
    ref = _core.fp64_reference(text, [x])[0]
    assert torch.equal(ref.value.bool(), (x * 0.3) > 0.1) and not ref.undecided.any()


def test_random_inputs_do_not_depend_on_layout():
    a, b = torch.empty(5, 7), torch.empty(7, 5).t()
    _core.fill_random(a, 3)
    _core.fill_random(b, 3)
    assert torch.equal(a, b)
    i = torch.empty(1000, dtype=torch.int64)
    _core.fill_random(i, 0, low=2, high=4)
    assert i.unique().tolist() == [2, 3, 4]
