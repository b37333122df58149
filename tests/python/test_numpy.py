"""fuselab.compile without torch: graph texts and traced functions on NumPy arrays. Expected values come from NumPy."""

import subprocess
import sys

import numpy as np
import pytest

import fuselab
from fuselab import _core, ops


@pytest.fixture
def xy():
    r = np.random.default_rng(0)
    return r.standard_normal((4, 5), np.float32), r.standard_normal(5, np.float32)


def close(a, b):
    return np.allclose(a, b, rtol=1e-6, atol=1e-6)


def test_nothing_imports_torch():
    code = (
        "import sys, numpy as np, fuselab\n"
        "f = fuselab.compile(lambda x: fuselab.ops.exp(x) + 1)\n"
        "assert np.allclose(f(np.zeros(3, np.float32)), 2)\n"
        "assert 'torch' not in sys.modules\n"
        "print(fuselab.harness_stats())\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "'graphs': 1" in out and "'kernels': 1" in out


def test_a_graph_text(xy):
    f = fuselab.compile("graph f(x: f32[A, B], y: f32[B]) {\n  e = exp(x)\n  r = add(e, y)\n  return r\n}")
    x, y = xy
    out = f(x, y)
    assert type(out) is np.ndarray and out.dtype == np.float32 and close(out, np.exp(x) + y)
    assert f(x[:0], y).shape == (0, 5)
    assert len(f.kernels) == 1 and f.explain()["counts"]["kernels"] == 1


def test_several_results_and_writable(xy):
    a, b = fuselab.compile("graph f(x: f32[4, 5]) {\n  a = neg(x)\n  b = abs(x)\n  return a, b\n}")(xy[0])
    assert np.array_equal(a, -xy[0]) and np.array_equal(b, np.abs(xy[0]))
    a += 1
    assert np.array_equal(a, 1 - xy[0])


def test_a_function_with_operators(xy):
    x, y = xy

    def f(x, y):
        return (x + 1) * y - x / 2, -x, 2 - y, 1 / (x * x + 1), x**2, abs(x), x > y

    for a, b in zip(fuselab.compile(f)(x, y), f(x, y), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and close(a, b)


def test_integers_as_numpy_has_them():
    x, y = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)

    def f(x, y):
        return x // y, x % y, x & y, x | y, x ^ y, ~x, x << 2, x >> 1

    for a, b in zip(fuselab.compile(f)(x, y), f(x, y), strict=True):
        assert np.array_equal(a, b)
    with pytest.raises(ZeroDivisionError):
        fuselab.compile(lambda x, y: x // y)(x, y * 0)


def test_table_functions_and_numpy_spellings(xy):
    x, _ = xy
    f = fuselab.compile(
        lambda x: (
            ops.softmax(x, axis=-1),
            x.sum(axis=0, keepdims=True),
            ops.mean(x, dims=[0, 1]),
            x.amax(dims=1),
            ops.where(x > 0, x, 0.0),
        )
    )
    s, t, m, a, w = f(x)
    e = np.exp(x - x.max(-1, keepdims=True))
    assert close(s, e / e.sum(-1, keepdims=True)) and close(t, x.sum(0, keepdims=True)) and close(m, x.mean())
    assert np.array_equal(a, x.max(1)) and np.array_equal(w, np.where(x > 0, x, 0))


def test_numpy_ufuncs_on_traced_arrays(xy):
    x, y = xy
    f = lambda x, y: np.maximum(np.exp(x), np.multiply(x, y)) + np.float32(2)
    assert close(fuselab.compile(f)(x, y), f(x, y))


def test_indexing_and_views(xy):
    x, _ = xy

    def f(x):
        return x[1] + x[2], x[:, ::2] * 2, x[..., -1] + 0, x[:, None, 1:3] * x[0, 0], x.T + 1, x.reshape(2, 10) + 1

    for a, b in zip(fuselab.compile(f)(x), f(x), strict=True):
        assert a.shape == b.shape and close(a, b)


def test_matmul_runs_in_numpy(xy):
    x, _ = xy
    w = np.random.default_rng(1).standard_normal((5, 3)).astype(np.float32)
    f = fuselab.compile(lambda x, w: ops.exp(x @ w) + 1)
    assert close(f(x, w), np.exp(x @ w) + 1)
    assert f.explain()[0]["counts"]["externs"] == 1
    g = fuselab.compile(lambda x: x @ w)  # from outside: a constant
    assert close(g(x), x @ w)
    w *= 2
    assert close(g(x), x @ w)  # read at each call


def test_one_compilation_per_signature(xy):
    x, y = xy
    f = fuselab.compile(lambda x, s: x * s)
    f(x, 2), f(x + 1, 2)
    assert len(f.graphs) == 1
    assert np.array_equal(f(x, 3), x * 3)
    assert np.signbit(f(np.ones(2, np.float32), -0.0)).all() and not np.signbit(f(np.ones(2, np.float32), 0.0)).any()
    f(x.astype(np.float64), 2)
    f(y, 2)
    assert len(f.graphs) == 6


def test_dynamic_sizes_compile_once():
    f = fuselab.compile(lambda x, y: ops.exp(x) + y, dynamic=True)
    for n in (2, 3, 100, 17):
        x, y = np.random.rand(n, 8).astype(np.float32), np.random.rand(8).astype(np.float32)
        assert close(f(x, y), np.exp(x) + y)
    assert len(f.graphs) == 1
    x = np.random.rand(8, 8).astype(np.float32)  # equal sizes are a signature of their own, and so is 1
    assert close(f(x, x[0]), np.exp(x) + x[0]) and close(f(x[:1], x[0]), np.exp(x[:1]) + x[0])
    assert len(f.graphs) == 3
    flat = fuselab.compile(lambda x: x.reshape(x.shape[0] * x.shape[1]) + 1, dynamic=True)
    for n in (3, 4):
        x = np.random.rand(n, 7).astype(np.float32)
        assert close(flat(x), x.reshape(-1) + 1)


def test_strides_backwards_and_broadcast(xy):
    x, y = xy
    f = fuselab.compile(lambda x: x * 2)
    for a in (x.T, x[::2], x[::-1], x[:, ::-2], np.broadcast_to(y, (4, 5)), x[:, :0], np.float32(3).reshape(())):
        assert np.array_equal(f(a), a * 2)


def test_nested_arguments_and_results(xy):
    x, y = xy
    f = fuselab.compile(lambda pair, scale=2, *, bias: {"sum": [pair["x"] + pair["y"], pair["x"] * scale], "bias": (bias + 1,)})
    out = f({"x": x, "y": y}, bias=y)
    assert (
        close(out["sum"][0], x + y)
        and close(out["sum"][1], x * 2)
        and isinstance(out["sum"], list)
        and close(out["bias"][0], y + 1)
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"])
def test_dtypes(dtype):
    x = np.arange(10).astype(dtype)
    out = fuselab.compile(lambda x: ops.where(x == x, x, x))(x)
    assert out.dtype == x.dtype and np.array_equal(out, x)


def test_bfloat16_stays_in_a_tensor_of_ours():
    out = fuselab.compile(lambda x: x.astype("bf16"))(np.array([1.5, 3.0], np.float32))
    assert type(out) is _core.Tensor and out.dtype == "bf16" and out.shape == (2,)
    back = fuselab.compile(lambda x: x.astype("f32"))(out)
    assert np.array_equal(np.asarray(back), np.array([1.5, 3.0], np.float32))


def test_other_dlpack_objects():
    class Wrapped:  # an array that only speaks DLPack
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **kwargs):
            return self.array.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    x = np.random.rand(3, 4).astype(np.float32)
    (out,) = _core.compile_graph("graph g(x: f32[3, 4]) {\n  y = neg(x)\n  return y\n}")(Wrapped(x))
    assert np.array_equal(np.from_dlpack(out), -x) and np.array_equal(np.asarray(out), -x)


def test_a_decorator_and_options(xy):
    @fuselab.compile(max_fusion_size=0)
    def f(x):
        """Doc."""
        return ops.exp(x) + 1

    assert close(f(xy[0]), np.exp(xy[0]) + 1) and f.__name__ == "f" and f.__doc__ == "Doc."
    assert f.explain()[0]["counts"]["kernels"] == 2


def branch(x):
    return x if x > 0 else -x


@pytest.mark.parametrize(
    "function, code",
    [
        (branch, "trace.branch"),
        (float, "trace.branch"),
        (lambda x: 3, "compile.result"),
        (lambda x: x + "a", None),
        (np.asarray, "trace.value"),
        (ops.softmax, "graph.bad_attr"),
        (lambda x: ops.softmax(x, wrong=1), "trace.arguments"),
        (ops.add, "trace.arguments"),
        (lambda x: x.astype("complex64"), "trace.dtype"),
        (lambda x: x[x > 0], "trace.index"),
        (lambda x: x + np.ones((3, 3), np.float32), "graph.shape"),
    ],
)
def test_functions_that_cannot_be_traced(xy, function, code):
    with pytest.raises((fuselab.Error, TypeError)) as e:
        fuselab.compile(function)(xy[0])
    if code:
        assert e.value.code == code


def test_broken_targets_and_texts(xy):
    for target, code in (
        (3, "compile.target"),
        ("graph f(x: f32[2]) {\n  y = nonsense(x)\n  return y\n}", "graph.unknown_op"),
        ("what", "graph.syntax"),
    ):
        with pytest.raises(fuselab.Error) as e:
            fuselab.compile(target)
        assert e.value.code == code
    with pytest.raises(fuselab.Error, match="traced"):
        ops.exp(xy[0])
    with pytest.raises(AttributeError):
        _ = ops.nonsense
    assert "softmax" in dir(ops) and ops.exp.__doc__


def test_foreign_byte_order_and_types():
    f = fuselab.compile("graph f(x: f32[2]) {\n  y = neg(x)\n  return y\n}")
    for bad in (np.zeros(2, ">f4"), np.zeros(2, np.complex64), np.zeros(2, "U1"), np.zeros(2, object), np.zeros(2, np.uint32)):
        with pytest.raises(fuselab.Error):
            f(bad)


def test_a_read_only_array(xy):
    x = xy[0].copy()
    x.flags.writeable = False
    assert np.array_equal(fuselab.compile(lambda x: -x)(x), -x)
