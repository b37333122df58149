"""The callable `_core.CompiledGraph` on PyTorch tensors: externs, views, errors, memory. Expected values come from PyTorch."""

import gc
import os
import pickle
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

import fuselab
from fuselab import _core

torch = pytest.importorskip("torch")

ADD_ABS = "graph g(x: f32[8, 16], y: f32[8, 16]) {\n  a = add(x, y)\n  b = abs(a)\n  return b\n}"


@pytest.fixture(scope="module")
def add_abs():
    return _core.compile_graph(ADD_ABS)


@pytest.fixture
def xy():
    torch.manual_seed(0)
    return torch.randn(8, 16), torch.randn(8, 16)


def test_tensors_in_and_out(add_abs, xy):
    x, y = xy
    (out,) = add_abs(x, y)
    assert type(out) is torch.Tensor and out.is_contiguous() and not out.requires_grad
    assert torch.equal(out, (x + y).abs())


def test_results_are_ordinary_tensors(add_abs, xy):
    (out,) = add_abs(*xy)
    out.mul_(2)
    out.resize_(3)
    assert out.clone().shape == (3,)


def test_parameters_and_tensors_that_require_grad(add_abs, xy):
    x, y = xy
    p = torch.nn.Parameter(x)
    assert torch.equal(add_abs(p, y.clone().requires_grad_())[0], (x + y).abs())


def test_strided_inputs(add_abs, xy):
    x, y = xy
    t = x.t().contiguous().t()
    assert t.stride() == (1, 8)
    wide = torch.randn(8, 32)[:, ::2]
    one = torch.tensor(3.0).expand(8, 16)
    for a in (t, wide, one):
        assert torch.equal(add_abs(a, y)[0], (a + y).abs())


def test_a_pending_negation_is_resolved(add_abs, xy):
    x, y = xy
    n = torch._neg_view(y)
    assert n.is_neg()
    assert torch.equal(add_abs(x, n)[0], (x - y).abs())
    z = torch.randn(8, 16, dtype=torch.complex64)
    assert torch.equal(add_abs(x, z.conj().imag)[0], (x - z.imag).abs())


def test_misaligned_memory(add_abs, xy):
    x, y = xy
    raw = np.zeros(8 * 16 * 4 + 1, np.uint8)
    shifted = torch.from_numpy(raw[1:]).view(torch.uint8)
    odd = np.frombuffer(raw.data, np.float32, 128, 1).reshape(8, 16)
    odd.flags.writeable and np.copyto(odd, x.numpy())
    assert odd.ctypes.data % 4 == (raw.ctypes.data + 1) % 4 and shifted is not None
    expected = np.abs(odd + y.numpy())
    assert np.array_equal(np.asarray(add_abs(odd, y.numpy())[0]), expected)


@pytest.mark.parametrize(
    "make, code, words",
    [
        (lambda x, y: (x,), "call.count", "2 arguments"),
        (lambda x, y: (x, y.double()), "call.dtype", "'y'"),
        (lambda x, y: (x, torch.ones(8, 15)), "call.shape", "[8, 15]"),
        (lambda x, y: (x[0], y), "call.shape", "'x'"),
        (lambda x, y: (x, 3), "call.type", "int"),
        (lambda x, y: (x, None), "call.type", "'y'"),
        (lambda x, y: (x, y.to(torch.complex64)), "call.dtype", "'y'"),
        (lambda x, y: (x, y.to("meta")), "call.type", "'y'"),
        (lambda x, y: (x, y.to_sparse()), "call.type", "'y'"),
    ],
)
def test_broken_calls_say_what_is_wrong(add_abs, xy, make, code, words):
    with pytest.raises(fuselab.Error) as e:
        add_abs(*make(*xy))
    assert e.value.code == code and words in str(e.value)
    assert torch.equal(add_abs(*xy)[0], sum(xy).abs())  # and nothing is broken


def test_keywords_are_refused(add_abs, xy):
    with pytest.raises(fuselab.Error, match="position"):
        add_abs(xy[0], y=xy[1])


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.int8,
        torch.uint8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.bool,
    ],
)
def test_every_dtype_goes_through(dtype):
    name = {
        torch.float16: "f16",
        torch.bfloat16: "bf16",
        torch.float32: "f32",
        torch.float64: "f64",
        torch.int8: "i8",
        torch.uint8: "u8",
        torch.int16: "i16",
        torch.int32: "i32",
        torch.int64: "i64",
        torch.bool: "bool",
    }[dtype]
    g = _core.compile_graph(f"graph g(x: {name}[33], m: bool[33]) {{\n  a = where(m, x, x)\n  return a\n}}")
    x = torch.randint(0, 2, (33,)).to(dtype)
    (out,) = g(x, torch.ones(33, dtype=torch.bool))
    assert out.dtype == dtype and torch.equal(out, x)


def test_zero_dimensions_and_no_elements():
    g = _core.compile_graph("graph g(x: f32[], y: f32[]) {\n  a = add(x, y)\n  return a\n}")
    assert torch.equal(g(torch.tensor(1.5), torch.tensor(2.0))[0], torch.tensor(3.5))
    g = _core.compile_graph("graph g(x: f32[0, 3], y: f32[3]) {\n  a = add(x, y)\n  s = sum(x, dims=[0])\n  return a, s\n}")
    a, s = g(torch.empty(0, 3), torch.ones(3))
    assert a.shape == (0, 3) and torch.equal(s, torch.zeros(3))


def test_symbolic_sizes(xy):
    g = _core.compile_graph("graph g(B: size, x: f32[B, 4], y: f32[B, 4]) {\n  a = add(x, y)\n  return a\n}")
    for n in (0, 1, 2, 7, 16, 17, 1000, 2):
        x, y = torch.randn(n, 4), torch.randn(n, 4)
        assert torch.equal(g(n, x, y)[0], x + y)
    assert g.explain()["counts"]["size_sets"] == 7 and g.explain()["counts"]["distinct_kernels"] == 1
    with pytest.raises(fuselab.Error) as e:
        g(9, x, y)
    assert e.value.code == "call.shape"
    with pytest.raises(fuselab.Error):
        g(-1, x, y)
    with pytest.raises(TypeError):
        g("2", x, y)
    with pytest.raises(fuselab.Error):
        g(2, x, torch.randn(3, 4))


def test_sizes_need_not_be_parameters():
    g = _core.compile_graph("graph g(x: f32[A, B], y: f32[B]) {\n  a = mul(x, y)\n  return a\n}")
    x, y = torch.randn(3, 5), torch.randn(5)
    assert torch.equal(g(x, y)[0], x * y)


def test_boxed_calls_let_go_of_their_inputs():
    # The input of the first step must be free when the extern call after it runs.
    alive = []
    x = torch.randn(64)
    ref = weakref.ref(x)

    def probe(a):
        alive.append(ref() is not None)
        return a + 1

    g = _core.compile_graph(
        'graph g(x: f32[64]) {\n  a = exp(x)\n  b: f32[64] = extern(a, target="probe", call=0)\n  return b\n}', {}, [probe]
    )
    expected = x.exp() + 1
    args = [x]
    del x
    (out,) = g.boxed(args)
    assert args == [] and alive == [False] and torch.allclose(out, expected)
    assert g.boxed._boxed_call and not g._boxed_call
    args = [torch.ones(64)]
    g.call_boxed(args)
    assert args == []


def test_inputs_as_results_are_the_same_objects():
    g = _core.compile_graph("graph g(x: f32[4]) {\n  a = neg(x)\n  return x, a, a, x\n}")
    x = torch.randn(4)
    r = g(x)
    assert r[0] is x and r[3] is x and r[1] is r[2] and torch.equal(r[1], -x)
    args = [x]
    assert g.boxed(args)[0] is x


def test_externs_views_and_aliases():
    g = _core.compile_graph(
        """graph g(x: f32[4, 3], w: f32[3, 5]) {
  h: f32[4, 5] = extern(x, w, target="aten.mm.default", call=0)
  a = abs(h)
  s = select(a, dim=0, index=1)
  sx = select(x, dim=0, index=2)
  sh = select(h, dim=0, index=3)
  t: f32[4, 5] = extern(a, h, target="aten.add.Tensor", call=1)
  z: f32[5] = extern(s, s, target="aten.add.Tensor", call=1)
  return t, s, sx, z, sh, h
}""",
        {},
        [torch.mm, torch.add],
    )
    x, w = torch.randn(4, 3), torch.randn(3, 5)
    t, s, sx, z, sh, h = g(x, w)
    e = x @ w
    assert torch.equal(h, e) and torch.equal(t, e.abs() + e) and torch.equal(s, e.abs()[1]) and torch.equal(z, 2 * e.abs()[1])
    assert torch.equal(sx, x[2]) and torch.equal(sh, e[3])
    before = sys.getrefcount(x)
    if sx.data_ptr() == x[2].data_ptr():  # a view keeps what it looks at
        del sx
        assert sys.getrefcount(x) == before - 1


def test_an_extern_result_in_another_layout_is_brought_into_the_expected_one():
    g = _core.compile_graph(
        'graph g(x: f32[3, 4]) {\n  t: f32[3, 4] = extern(x, target="t", call=0)\n  a = add(t, x)\n  return a, t\n}',
        {},
        [lambda x: x.t().contiguous().t() * 2],
    )
    x = torch.randn(3, 4)
    a, t = g(x)
    assert torch.equal(a, 3 * x) and torch.equal(t, 2 * x) and t.is_contiguous()


@pytest.mark.parametrize(
    "result, code",
    [
        (lambda x: x.double(), "call.extern_result"),
        (lambda x: x[:2], "call.extern_result"),
        (lambda x: None, "call.type"),
        (lambda x: 3, "call.type"),
    ],
)
def test_a_wrong_extern_result_is_an_error(result, code):
    g = _core.compile_graph(
        'graph g(x: f32[3]) {\n  t: f32[3] = extern(x, target="t", call=0)\n  a = neg(t)\n  return a\n}', {}, [result]
    )
    with pytest.raises(fuselab.Error) as e:
        g(torch.ones(3))
    assert e.value.code == code


def test_an_exception_of_an_extern_passes_through():
    class Boom(Exception):
        pass

    def fail(x):
        raise Boom("here")

    g = _core.compile_graph(
        'graph g(x: f32[3]) {\n  b = neg(x)\n  t: f32[3] = extern(b, target="t", call=0)\n  return t\n}', {}, [fail]
    )
    for _ in range(3):
        with pytest.raises(Boom, match="here"):
            g(torch.ones(3))


def test_extern_sizes_numbers_and_several_results():
    seen = []

    def split(x, scale, missing, n, m):
        seen.append((scale, missing, n, m))
        return x * scale, x.sum(), None

    g = _core.compile_graph(
        """graph g(B: size, x: f32[B, 2]) {
  a: f32[B, 2], s: f32[], u: f32[] = extern(x, 2.5, none, target="split", call=0, sizes=[2*B, 7])
  r = add(a, s)
  return r
}""",
        {},
        [split],
    )
    x = torch.randn(5, 2)
    assert torch.allclose(g(5, x)[0], x * 2.5 + x.sum())
    assert seen == [(2.5, None, 10, 7)]


def test_integer_division_by_zero():
    g = _core.compile_graph("graph g(x: i32[N], y: i32[N]) {\n  a = div_floor(x, y)\n  return a\n}")
    for n in (2, 1_000_000):  # the large one in a parallel region
        x, y = torch.full((n,), 5, dtype=torch.int32), torch.full((n,), 2, dtype=torch.int32)
        assert torch.equal(g(x, y)[0], x // y)
        y[n // 2] = 0
        with pytest.raises(ZeroDivisionError) as e:
            g(x, y)
        assert (
            isinstance(e.value, fuselab.Error) and isinstance(e.value, RuntimeError) and e.value.code == "call.division_by_zero"
        )


def test_errors_keep_their_code_through_a_pickle():
    e = pickle.loads(pickle.dumps(fuselab.Error("some.code", "what happened")))
    assert e.code == "some.code" and str(e) == "what happened"


@pytest.mark.parametrize(
    "options, code",
    [
        ({"colour": 1}, "options.unknown"),
        ({"precision": "double"}, "options.bad_value"),
        ({"fuse": ["magic"]}, "flags.unknown_class"),
        ({"fuse": "reduce", "no_fuse": "reduce"}, "flags.class_conflict"),
        ({"max_fusion_size": -1}, "options.bad_value"),
        ({"max_fusion_size": "many"}, "flags.bad_value"),
        ({"skip_passes": ["nothing"]}, "options.bad_value"),
        ({"keep_dtype": "Nonsense"}, "flags.unknown_operator"),
    ],
)
def test_unknown_options(options, code):
    with pytest.raises(fuselab.Error) as e:
        _core.compile_graph(ADD_ABS, options)
    assert e.value.code == code


def test_flags_of_the_environment_and_the_api(monkeypatch, xy):
    assert _core.compile_graph(ADD_ABS).kernel_count == 1
    assert _core.compile_graph(ADD_ABS, {"no_fuse": True}).kernel_count == 2
    assert _core.compile_graph(ADD_ABS, {"max_fusion_size": 0}).kernel_count == 2
    monkeypatch.setenv("AUTOFUSE_FLAGS", "--enable_autofuse=false")
    g = _core.compile_graph(ADD_ABS)
    assert g.kernel_count == 2 and torch.equal(g(*xy)[0], sum(xy).abs())
    with pytest.warns(fuselab.FuselabWarning, match="enable_autofuse"):
        assert _core.compile_graph(ADD_ABS, {"enable_autofuse": True}).kernel_count == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(fuselab.Error):
            _core.compile_graph(ADD_ABS, {"enable_autofuse": True})


def test_explain_and_kernel_texts(add_abs, xy):
    add_abs(*xy)
    e = add_abs.explain()
    assert e["counts"]["kernels"] == 1 and e["counts"]["externs"] == 0 and e["counts"]["calls"] > 0
    assert [n["op"] for n in e["steps"][0]["nodes"]] == ["add", "abs"] and e["steps"][0]["name"].startswith("autofused_elemwise_")
    assert {"fuse", "codegen", "compile", "load", "first_run", "total"} <= set(e["timing_ms"])
    (k,) = add_abs.kernels
    assert (
        k["name"] == e["steps"][0]["name"] and len(k["hash"]) == 16 and k["name"] in k["cpp"] and k["ir"] and "add" in k["graph"]
    )
    assert _core.parse_graph(add_abs.text) == add_abs.text


def test_equal_blocks_compile_once():
    g = _core.compile_graph(
        """graph g(x: f32[8, 16], w: f32[16, 16]) {
  a = gelu(x)
  b: f32[8, 16] = extern(a, w, target="mm", call=0)
  c = gelu(b)
  d: f32[8, 16] = extern(c, w, target="mm", call=0)
  return d
}""",
        {},
        [torch.mm],
    )
    assert g.kernel_count == 2 and len(g.kernels) == 1 and g.kernels[0]["uses"] == 2


def test_memory_is_reused_and_given_back():
    g = _core.compile_graph("graph g(x: f32[1048576]) {\n  a = neg(x)\n  return a\n}")
    x = torch.randn(1 << 20)
    g(x)
    fresh = _core.pool_stats()["fresh"]
    for _ in range(10):
        g(x)
    assert _core.pool_stats()["fresh"] == fresh
    (out,) = g(x)
    storage = weakref.ref(out)
    del out
    assert storage() is None
    fuselab.empty_cache()
    assert fuselab.pool_stats()["idle"] == 0


def test_a_result_outlives_its_graph():
    g = _core.compile_graph(ADD_ABS)
    x, y = torch.randn(8, 16), torch.randn(8, 16)
    (out,) = g(x, y)
    view = out[1:, ::3]
    ref = weakref.ref(g)
    del g, out
    gc.collect()
    assert ref() is None and torch.equal(view, (x + y).abs()[1:, ::3])


def test_externs_that_hold_their_graph_are_collected():
    holder: dict | None = {}
    g = _core.compile_graph(
        'graph g(x: f32[3]) {\n  t: f32[3] = extern(x, target="t", call=0)\n  return t\n}', {}, [lambda x: holder["g"] and x]
    )
    holder["g"] = g
    ref = weakref.ref(g)
    holder = None
    del g
    gc.collect()
    assert ref() is None


def test_an_impossible_size_is_an_error():
    g = _core.compile_graph("graph g(B: size, x: f32[1]) {\n  y = expand(x, shape=[B])\n  z = add(y, y)\n  return z\n}")
    with pytest.raises(fuselab.Error) as e:
        g(1 << 43, torch.ones(1))
    assert e.value.code == "runtime.out_of_memory" and isinstance(e.value, MemoryError)
    assert torch.equal(g(3, torch.ones(1))[0], torch.full((3,), 2.0))


def test_calls_from_threads(add_abs):
    wrong = []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(100):
            x, y = torch.randn(8, 16, generator=generator), torch.randn(8, 16, generator=generator)
            if not torch.equal(add_abs(x, y)[0], (x + y).abs()):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_threads_give_the_same_bits():
    g = _core.compile_graph(
        "graph g(x: f32[1000, 1000]) {\n  a = exp(x)\n  s = sum(a, dims=[0])\n  m = mean(a, dims=[])\n  return a, s, m\n}"
    )
    x = torch.randn(1000, 1000)
    before = torch.get_num_threads()
    try:
        results = []
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            results.append(g(x))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert torch.equal(a, b)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_can_call(add_abs, xy):
    big = _core.compile_graph("graph g(x: f32[1000000]) {\n  a = exp(x)\n  return a\n}")
    x = torch.randn(1_000_000)
    big(x)
    expected = sum(xy).abs()
    child = os.fork()
    if child == 0:
        ok = torch.equal(add_abs(*xy)[0], expected) and bool(big(x)[0].isfinite().all())
        os._exit(0 if ok else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0


def test_an_artifact_runs_as_it_stands(xy):
    (k,) = _core.compile_graph(ADD_ABS).kernels
    same = _core.compile_artifact(k["graph"], k)
    assert torch.equal(same(*xy)[0], sum(xy).abs())
    again = _core.compile_artifact(k["graph"], _core.generate_from_ir(k["ir"]))
    assert torch.equal(again(*xy)[0], sum(xy).abs())
    # An edited text does what it now says, and poison shows what is not written.
    lazy = f'extern "C" long {k["name"]}_run(void* const*, const void*, long, long, long, char*, char*) {{ return 0; }}\n'
    out = _core.compile_artifact(k["graph"], dict(k, device_impl=lazy), {"poison": 255})(*xy)[0]
    assert out.isnan().all()
    with pytest.raises(fuselab.Error):
        _core.compile_artifact(k["graph"], dict(k, device_impl="this is no C++"))
    with pytest.raises(fuselab.Error):
        _core.compile_artifact(k["graph"], {"name": "k"})


def test_poison_does_not_show_in_results(xy):
    text = """graph g(x: f32[100, 33]) {
  a = softmax(x, dim=1)
  s = sum(a, dims=[0])
  m = mean(x, dims=[0, 1])
  return a, s, m
}"""
    x = torch.randn(100, 33)
    plain = _core.compile_graph(text)(x)
    for byte in (0, 255):
        for a, b in zip(plain, _core.compile_graph(text, {"poison": byte})(x), strict=True):
            assert torch.equal(a, b)
