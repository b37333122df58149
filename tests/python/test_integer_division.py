"""Integer division: all lanes at once in f64 where that is exact, one after the other where it is not; PyTorch's values in both."""
import pytest

torch = pytest.importorskip("torch")

import fuselab  # noqa: E402
from fuselab import _core  # noqa: E402

DTYPES = {"i8": torch.int8, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}
BODY = "q = div_trunc(x, y)\nf = div_floor(x, y)\nr = remainder(x, y)\nm = fmod(x, y)\nreturn q, f, r, m\n}"


def check(name, x, y):
    (n,) = x.shape
    graph = _core.compile_graph(f"graph g(x: {name}[{n}], y: {name}[{n}]) {{\n{BODY}", {})
    got = [torch.from_dlpack(t) for t in graph(x, y)]
    want = [torch.div(x, y, rounding_mode="trunc"), torch.div(x, y, rounding_mode="floor"), torch.remainder(x, y), torch.fmod(x, y)]
    for g, w, what in zip(got, want, ("trunc", "floor", "remainder", "fmod")):
        assert torch.equal(g, w), (name, what, x[g != w][:3], y[g != w][:3])


@pytest.mark.parametrize("name", DTYPES)
def test_whole_range(name):
    torch.manual_seed(0)
    info = torch.iinfo(DTYPES[name])
    for scale in (20, 300, 70000, 2**31, 2**40, 2**62):
        low, high = max(info.min, -scale), min(info.max, scale)
        x = torch.randint(low, high, (1003,), dtype=torch.int64)
        y = torch.randint(low, high, (1003,), dtype=torch.int64)
        y[y == 0] = 3
        check(name, x.to(DTYPES[name]), y.to(DTYPES[name]))


@pytest.mark.parametrize("edge", [2**51, 2**52, 2**53])
def test_around_the_powers_where_f64_ends(edge):
    near = torch.tensor([edge + d for d in range(-8, 9)] + [-edge + d for d in range(-8, 9)])
    small = torch.tensor([1, -1, 2, -2, 3, -3, 7, 10, -11, 1000003, edge - 1, 1 - edge, edge, -edge])
    x, y = (t.flatten().contiguous() for t in torch.meshgrid(torch.cat([near, small]), torch.cat([near, small]), indexing="ij"))
    check("i64", x, y)


def test_quotients_next_to_integers():
    torch.manual_seed(1)
    y = torch.randint(1, 2**25, (4000,))
    k = torch.randint(1, 2**25, (4000,))
    for off in (-1, 0, 1):
        check("i64", y * k + off, y)
        check("i64", -(y * k) + off, y)


def test_a_zero_is_an_error_wherever_it_stands_and_padding_is_not():
    for n in (1, 5, 16, 17, 40):
        graph = _core.compile_graph(f"graph g(x: i64[{n}], y: i64[{n}]) {{\nq = div_floor(x, y)\nreturn q\n}}", {})
        x, y = torch.arange(n) - 3, torch.ones(n, dtype=torch.int64)
        assert torch.equal(torch.from_dlpack(graph(x, y)[0]), x)
        for at in {0, n - 1}:
            y[at] = 0
            with pytest.raises(fuselab.Error, match="division by zero"):
                graph(x, y)
            y[at] = 1
