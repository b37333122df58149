"""Arguments that lie the other way round in memory: read as 16 x 16 tiles that are transposed in registers, never lane by lane."""
import pytest

torch = pytest.importorskip("torch")

from fuselab import _core  # noqa: E402

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "i8": torch.int8,
          "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}
SIZES = [(16, 16), (256, 384), (17, 33), (33, 17), (100, 50), (31, 8), (8, 31), (9, 700), (1000, 10)]


def values(shape, dtype):
    x = torch.randint(-100, 100, shape)
    return x > 0 if dtype == torch.bool else x.to(dtype)


def tiles(graph):
    """Loads as tiles, and loads and stores lane by lane, in the kernels' texts."""
    text = "".join(k["device_impl"].split('extern "C" long')[1] for k in graph.kernels)
    return text.count("fl_load_tile<"), text.count("_strided<") + text.count("[l] =")


@pytest.mark.parametrize("name", DTYPES)
def test_every_type_and_size(name):
    dtype = DTYPES[name]
    for rows, columns in SIZES:
        text = (f"graph g(x: {name}[{rows}, {columns}], y: {name}[{columns}, {rows}]) {{\n"
                "t = permute(x, dims=[1, 0])\ne = eq(y, t)\nz = where(e, y, t)\nreturn z\n}")
        x, y = values((rows, columns), dtype), values((columns, rows), dtype)
        graph = _core.compile_graph(text, {})
        (got,) = graph(x, y)
        assert torch.equal(torch.from_dlpack(got), torch.where(y == x.t(), y, x.t())), (name, rows, columns)
        if min(rows, columns) >= 16:
            assert tiles(graph)[0] > 0 and tiles(graph)[1] == 0


def test_other_dimensions_and_parts_that_only_some_loads_need():
    torch.manual_seed(0)

    def f(x, y, row, column):
        return (x.permute(0, 2, 3, 1) * row + y * column).relu(), x.permute(0, 2, 3, 1) + 1

    for n, c, h, w in ((2, 20, 5, 7), (1, 64, 16, 16), (3, 17, 1, 33)):
        x, y = torch.randn(n, c, h, w), torch.randn(n, h, w, c)
        row, column = torch.randn(c), torch.randn(h, w, 1)
        for a, b in ((x, y), (x.to(memory_format=torch.channels_last), y), (x.transpose(2, 3).contiguous().transpose(2, 3), y)):
            torch._dynamo.reset()
            with torch.no_grad():
                got, want = torch.compile(f, backend="fuselab")(a, b, row, column), f(a, b, row, column)
            for g, e in zip(got, want):
                torch.testing.assert_close(g, e)
                assert g.stride() == e.stride()


def test_symbolic_sizes():
    graph = _core.compile_graph("graph g(x: f32[A, B], y: f32[B, A]) {\nt = permute(x, dims=[1, 0])\nz = add(y, t)\nreturn z\n}", {})
    assert tiles(graph) == (2, 0)  # whole vectors, and the rest
    for rows, columns in [(1, 1), (16, 1), (1, 16), (15, 47), (0, 5), (5, 0), (700, 600)]:
        x, y = torch.randn(rows, columns), torch.randn(columns, rows)
        (got,) = graph(x, y)
        assert torch.equal(torch.from_dlpack(got), y + x.t())


def test_a_large_one_and_two_threads_give_the_same_bits():
    text = "graph g(x: f32[3000, 1700], y: f32[1700, 3000]) {\nt = permute(x, dims=[1, 0])\nz = mul(y, t)\nreturn z\n}"
    x, y = torch.randn(3000, 1700), torch.randn(1700, 3000)
    results = [torch.from_dlpack(_core.compile_graph(text, {"threads": n})(x, y)[0]) for n in (1, 2)]
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], y * x.t())


def test_rows_of_dear_values_are_not_computed_again():
    graph = _core.compile_graph(
        "graph g(x: f32[64, 64], y: f32[64, 64], r: f32[64, 1]) {\nt = permute(x, dims=[1, 0])\ne = exp(r)\na = add(t, y)\n"
        "z = mul(a, e)\nreturn z\n}", {})
    x, y, r = torch.randn(64, 64), torch.randn(64, 64), torch.randn(64, 1)
    (got,) = graph(x, y, r)
    torch.testing.assert_close(torch.from_dlpack(got), (x.t() + y) * r.exp())


ROWS = {
    "sum": "b = sum(a, dims=[1])", "sum_both": "b = sum(a, dims=[0, 1])", "softmax": "b = softmax(a, dim=1)",
    "argmax": "b = argmax(a, dims=[1])", "kept": "c = exp(a)\ns = sum(c, dims=[1], keepdim=true)\nb = div(c, s)",
    "moved back": "c = softmax(a, dim=1)\nb = permute(c, dims=[1, 0])"}


@pytest.mark.parametrize("what", ROWS)
@pytest.mark.parametrize("name", ["f32", "bf16", "f64", "i32", "bool"])
def test_reductions_of_transposed_rows_have_the_bits_of_straight_ones(what, name):
    if name in ("i32", "bool") and what not in ("sum", "sum_both", "argmax") or name == "bool" and what == "argmax":
        return
    for rows, columns in SIZES[:6] + [(300, 40)]:
        x = values((rows, columns), DTYPES[name])
        if x.is_floating_point():
            x = x / 64
        results = []
        for head, turn, argument in ((f"x: {name}[{rows}, {columns}]", "permute(x, dims=[1, 0])", x),
                                     (f"x: {name}[{columns}, {rows}]", "mul(x, 1)" if name != "bool" else "copy(x)", x.t().contiguous())):
            graph = _core.compile_graph(f"graph g({head}) {{\na = {turn}\n{ROWS[what]}\nreturn b\n}}", {})
            results.append(torch.from_dlpack(graph(argument)[0]).contiguous())
            if turn[0] == "p" and min(rows, columns) >= (256 if what == "sum_both" else 16) and name != "f64":
                assert tiles(graph)[0] > 0 and tiles(graph)[1] == 0, (what, tiles(graph))
        assert torch.equal(*results), (what, name, rows, columns)


@pytest.mark.parametrize("shape", [(2, 128, 32, 32), (1, 64, 9, 30), (2, 512, 16, 16), (2, 96, 20, 20), (1, 320, 17, 19)])
def test_group_norm_of_channels_last(shape):
    x = torch.randn(shape)
    norm = torch.nn.GroupNorm(32, shape[1])
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    torch._dynamo.reset()
    with torch.no_grad():
        last = x.to(memory_format=torch.channels_last)
        got, want = torch.compile(norm, backend="fuselab")(last), norm(last)
        torch.testing.assert_close(got, want)
        assert got.stride() == want.stride()
        torch._dynamo.reset()
        assert torch.equal(got.contiguous(), torch.compile(norm, backend="fuselab")(x).contiguous())
