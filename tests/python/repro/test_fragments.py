"""Fragments: what is restored of the PyTorch graph, for all kinds of outputs, inputs and arguments, and when nothing can be."""

import ast
import json
import re
import warnings

import pytest

torch = pytest.importorskip("torch")

import fuselab
from fuselab.repro import BenchmarkSpec, PrecisionContext, fragment, generate_benchmark_script


def checked(lab, fn, *inputs, **options):
    """Compiles, then every kernel's script must pass; returns the scripts' texts."""
    lab.compile(fn, *inputs, **options)
    scripts = [k / "benchmark.py" for k in lab.kernels()]
    assert scripts
    for script in scripts:
        done = lab.run(script, "--check")
        assert done.code == 0, (script, done.out, done.err)
    return [s.read_text() for s in scripts]


def names(text):
    return ast.literal_eval(re.search(r"^OUTPUT_NAMES = (.*)$", text, re.MULTILINE).group(1))


# ---- several outputs


def test_r113_intermediate_is_also_an_output(lab):
    def fn(x):
        a = x + 1
        return a, (a * 2).abs()

    (text,) = checked(lab, fn, torch.randn(8, 16))
    assert names(text) == ["add", "abs"]
    assert "return (add, abs_1)" in text


def test_r113_independent_outputs(lab):
    (text,) = checked(lab, lambda x, y: ((x + y).abs(), (x - y).neg()), torch.randn(8, 16), torch.randn(8, 16))
    assert sorted(names(text)) == ["abs", "neg"]


def test_r113_order_against_topology(lab):
    def fn(x):
        first = x.sin()
        second = (first * 2).cos()
        return second, first

    (text,) = checked(lab, fn, torch.randn(8, 16))
    assert sorted(names(text)) == ["cos", "sin"]


def test_r113_fan_out_of_four(lab):
    def fn(x):
        a = x * 3
        return a + 1, a - 1, a.abs(), a.neg()

    (text,) = checked(lab, fn, torch.randn(8, 16))
    assert len(names(text)) == 4


def test_r71_outputs_in_order(lab):
    (text,) = checked(lab, lambda x: (x + 1, x * 2, x.abs()), torch.randn(4, 4))
    done = lab.run(lab.kernels()[0] / "benchmark.py", "--check", "--json")
    assert [o["name"] for o in json.loads(done.out)["outputs"]] == names(text)


# ---- kinds of inputs


def test_r114_transposed(lab):
    (text,) = checked(lab, lambda x: x.abs() + 1, torch.randn(16, 8).t())
    assert '"shape": (8, 16), "stride": (1, 8)' in text


def test_r114_stride_0(lab):
    (text,) = checked(lab, lambda x, y: x.abs() + y, torch.randn(1, 16).expand(8, 16), torch.randn(8, 16))
    assert '"stride": (0, 1)' in text


def test_r114_r66_zero_size(lab):
    lab.compile(lambda x: x.abs() + 1, torch.randn(0, 4))
    done = lab.run(lab.kernels()[0] / "benchmark.py", "--check")
    assert done.code == 0, done.out
    assert done.out.splitlines()[1:] == [
        "output:add precision check passed: empty tensor",
        "output:add artifact check passed: empty tensor",
        "Precision check passed.",
    ]


def test_r114_f16(lab):
    (text,) = checked(lab, lambda x: torch.nn.functional.gelu(x) * x, torch.randn(8, 17).half())
    assert '"dtype": "f16"' in text


def test_r114_i32(lab):
    """Integers are equal or not; where the kernel divides, no input is 0."""
    (text,) = checked(lab, lambda x, y: (x // y) + x * 2, torch.arange(24, dtype=torch.int32), torch.arange(24, dtype=torch.int32) + 1)
    assert '"low": 1' in text
    assert "equal" in lab.run(lab.kernels()[0] / "benchmark.py", "--check").out


def test_r114_convert_element_type(lab):
    checked(lab, lambda x: torch.ops.prims.convert_element_type(x + 1, torch.bfloat16).float() * 2, torch.randn(8, 16))


def test_r48_no_inputs(lab):
    (text,) = checked(lab, lambda: torch.full((4, 8), 2.5) * 3)
    assert "def eager_fn():" in text
    assert "device=torch.device('cpu')" in text


def test_reductions_and_norms(lab):
    checked(
        lab,
        lambda x, w, b: (torch.nn.functional.layer_norm(x + 1, (32,), w, b).softmax(-1), torch.var_mean(x, 1)),
        torch.randn(8, 32),
        torch.randn(32),
        torch.randn(32),
    )


def test_arguments_that_the_kernel_does_not_read(lab):
    """native_layer_norm_backward names the bias, whose values no gradient depends on."""
    norm = torch.nn.LayerNorm(16)
    lab.compile(lambda x: norm(x).tanh().sum(), torch.randn(8, 16, requires_grad=True)).backward()
    for kernel in lab.kernels():
        assert lab.run(kernel / "benchmark.py", "--check").code == 0


def test_equal_extern_inputs_stay_apart(lab):
    """Two inputs of a kernel made by equal calls are two parameters."""

    def fn(x):
        n = x.shape[1]
        return x.masked_fill(torch.arange(n)[:, None] < torch.arange(n)[None, :], float("-inf")).softmax(-1)

    checked(lab, fn, torch.randn(4, 16, 16))


# ---- arguments as text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (3, "3"),
        (1.5, "1.5"),
        (float("nan"), 'float("nan")'),
        (float("-inf"), 'float("-inf")'),
        (torch.device("cpu"), "torch.device('cpu')"),
        (torch.device("cuda", 3), "torch.device('cuda')"),
        ("npu:3", "'npu'"),
        ("npu:0", "'npu'"),
        ("tanh", "'tanh'"),
        (torch.bfloat16, "torch.bfloat16"),
        (torch.strided, "torch.strided"),
        (torch.preserve_format, "torch.preserve_format"),
    ],
)
def test_r41_r42_r43_arguments(value, text):
    assert fragment.argument_text(value) == text


def test_r41_tensor_constants():
    made = eval(fragment.argument_text(torch.tensor([1.0, float("inf"), float("nan")])), {"torch": torch})
    assert made[0] == 1
    assert made[1] == float("inf")
    assert made[2].isnan()
    with pytest.raises(fragment.Unwritable, match="constant tensor of 1000 elements"):
        fragment.argument_text(torch.zeros(1000))


def test_r44_rank_in_repr():
    assert fragment.without_rank("tensor([1, 2], device='npu:3')") == "tensor([1, 2], device='npu')"


def test_r46_target_that_is_no_torch_callable():
    def mine(x):
        return x

    with pytest.raises(fragment.Unwritable, match="no torch"):
        fragment.target_text(mine)
    assert fragment.target_text(torch.ops.aten.add.Tensor) == "torch.ops.aten.add.Tensor"


# ---- nothing by halves


def spec_by_hand(**changes):
    """R-04: a script from a spec that no compiler made."""
    buffers = [{"name": "x", "dtype": "f32", "shape": (4,), "stride": (1,)}]
    precision = PrecisionContext("def eager_fn(x):\n    return (torch.neg(x),)\n", buffers, ["y"])
    made = BenchmarkSpec(
        kernel_name="autofused_by_hand",
        artifacts={"name": "autofused_by_hand", "tiling_def": "t", "host_impl": "h'''\\", "device_impl": "d\n"},
        fragment="graph g(x: f32[4]) {\n  y: f32[4] = neg(x)\n  return y\n}\n",
        kernel_ir="",
        call_arguments=[("tensor", "x")],
        profile_buffers=buffers,
        precision=precision,
        environment={"AUTOFUSE_FLAGS": 'a"b\\c'},
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_r04_r14_r16_r17_writer_from_plain_spec(tmp_path):
    assert generate_benchmark_script(spec_by_hand(), tmp_path / "full.py") is True
    assert generate_benchmark_script(spec_by_hand(precision=None), tmp_path / "less.py") is False
    full, less = (ast.parse((tmp_path / name).read_text()) for name in ("full.py", "less.py"))
    assert any(isinstance(n, ast.FunctionDef) and n.name == "eager_fn" for n in full.body)
    assert not any(isinstance(n, ast.FunctionDef) for n in less.body)
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["full.py", "less.py"]


@pytest.mark.parametrize("code", ["def eager_fn(x:\n", "x = 1\n", "", "def other(x):\n    return x\n"])
def test_r47_r51_no_half_script(tmp_path, lab, code):
    spec = spec_by_hand()
    spec.precision.eager_fn_code = code
    assert generate_benchmark_script(spec, tmp_path / "benchmark.py") is False
    text = (tmp_path / "benchmark.py").read_text()
    ast.parse(text)
    assert "def eager_fn" not in text
    done = lab.run(tmp_path / "benchmark.py", "--check")
    assert done.code == 2
    assert "only --profile" in done.err


def test_r10_r11_r49_r50_profile_only(lab, monkeypatch):
    """A call that cannot be written: a warning with the reason, a script that profiles, and exit 2 for the other modes."""

    def refuse(value, where=""):
        raise fragment.Unwritable(f"{where} has type Strange")

    monkeypatch.setattr(fragment, "argument_text", refuse)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lab.compile(lambda x: (x * 2.5).abs(), torch.randn(8, 16))
    monkeypatch.undo()
    (message,) = {str(w.message) for w in caught if issubclass(w.category, fuselab.FuselabWarning)}
    assert "can only profile, not check" in message
    assert "has type Strange" in message
    assert "says nothing against the kernel" in message
    script = lab.kernels()[0] / "benchmark.py"
    assert "def eager_fn" not in script.read_text()
    assert lab.run(script).code == 0
    for mode in ("--check", "--bench"):
        done = lab.run(script, mode)
        assert done.code == 2
        assert "has type Strange" in done.err
