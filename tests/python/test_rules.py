"""The rules R1-R8, R10 and R11 of docs/precision.md: one test and more per rule, as kernel texts and as values."""
import json
import re

import numpy as np
import pytest
import torch

from bug_support import FLOATS, SIZES, bits, graph, kernels_of, run, same, same_bits, sized, through_torch, word
from fuselab import _core

LOW = [torch.float16, torch.bfloat16]


def statements(ir):
    """{number: (operation, argument numbers, type, whole text)} of a kernel's text form."""
    found = {}
    for line in ir.splitlines():
        m = re.match(r"\s*%(\d+) = (\w+)(.*?): (\w+)\s*(?:#.*)?$", line)
        if m:
            found[int(m[1])] = (m[2], [int(a) for a in re.findall(r"%(\d+)", m[3])], m[4], line.strip())
    return found


def only_kernel(text, **options):
    texts = kernels_of(text, **options)
    assert len(texts) == 1
    return statements(texts[0])


def named(ops, name):
    return [s for s in ops.values() if s[0] == name]


# ------------------------------------------------------------------------------------------------------- R1


@pytest.mark.parametrize("dtype", LOW, ids=word)
@pytest.mark.parametrize("dynamic", [False, True])
def test_R1_load_abs_add_mul_sub_store(dtype, dynamic):
    """Four computations in f32, one cast after each load, one before the store."""
    w, n = word(dtype), "n" if dynamic else "1000"
    head = "n: size, " if dynamic else ""
    ops = only_kernel(f"graph g({head}x: {w}[{n}], y: {w}[{n}]) {{\na = abs(x)\nb = add(a, y)\nc = mul(b, y)\nr = sub(c, x)\nreturn r\n}}")
    assert [s[0] for s in ops.values() if s[0] not in ("load", "cast", "store")] == ["abs", "add", "mul", "sub"]
    assert all(s[2] == "f32" for s in ops.values() if s[0] in ("abs", "add", "mul", "sub"))
    loads = [k for k, s in ops.items() if s[0] == "load"]
    casts = [s for s in ops.values() if s[0] == "cast"]
    assert len(loads) == 2 and len(casts) == 3
    for load in loads:
        readers = [s for s in ops.values() if load in s[1]]
        assert [s[0] for s in readers] == ["cast"] and readers[0][2] == "f32"
    (store,) = named(ops, "store")
    assert ops[store[1][0]][0] == "cast" and ops[store[1][0]][2] == w == store[2]


@pytest.mark.parametrize("dtype", LOW, ids=word)
def test_R1_values_are_f32_rounded_once(dtype):
    text = sized("a = abs(x)\nb = add(a, y)\nc = mul(b, y)\nr = sub(c, x)", f"x: {word(dtype)}", f"y: {word(dtype)}")
    torch.manual_seed(0)
    for n in SIZES:
        x, y = torch.randn(n).to(dtype), torch.randn(n).to(dtype)
        f, g = x.float(), y.float()
        assert same_bits(run(text, n, x, y), ((f.abs() + g) * g - f).to(dtype))


def test_R1_block_borders_keep_their_types_and_integers_their_own():
    text = ("graph g(n: size, a: f16[n], b: f32[n], c: f64[n], d: i32[n], e: bool[n]) {\np = add(a, b)\nq = mul(c, c)\nr = add(d, d)\n"
            "s = logical_not(e)\nt = lt(d, 16777217)\nreturn p, q, r, s, t\n}")
    ops = [s for ir in kernels_of(text) for s in statements(ir).values()]
    for s in ops:
        if s[0] == "cast":
            assert s[2] == "f32"  # the f16 operand of the f32 sum; nothing else changes its type
    x = torch.full((5,), 16777217, dtype=torch.int32)
    p, q, r, s, t = run(text, 5, torch.ones(5).half(), torch.ones(5), torch.ones(5).double(), x, torch.ones(5, dtype=torch.bool))
    assert (p.dtype, q.dtype, r.dtype, s.dtype) == (torch.float32, torch.float64, torch.int32, torch.bool)
    assert not t.any() and run(text, 5, torch.ones(5).half(), torch.ones(5), torch.ones(5).double(), x - 1, s)[4].all()


# -------------------------------------------------------------------------------------------------- R2, R3, R4


@pytest.mark.parametrize("low", LOW, ids=word)
@pytest.mark.parametrize("wide", ["f32", "f64"])
def test_R2_a_cast_the_user_wrote_rounds(low, wide):
    text = sized(f"a = cast(x, dtype={word(low)})\nr = cast(a, dtype={wide})", f"x: {wide}")
    torch.manual_seed(0)
    for n in SIZES:
        x = torch.randn(n, dtype={"f32": torch.float32, "f64": torch.float64}[wide])
        assert same_bits(run(text, n, x), x.to(low).to(x.dtype))
    f = lambda x: (x * 1.1).to(low).to(torch.float32) * 3  # noqa: E731
    x = torch.randn(17)
    assert same_bits(through_torch(f, x), f(x))


DECISIONS = {
    "gt": ("c = gt(b, 0.5)", lambda b: b > 0.5), "eq": ("c = eq(b, x)", None), "floor": ("c = floor(b)", torch.floor),
    "cast": ("c = cast(b, dtype=i32)", lambda b: b.to(torch.int32)), "sign": ("c = sign(b)", torch.sign),
    "argmax": ("c = argmax(b)", torch.argmax), "round": ("c = round(b)", torch.round)}


@pytest.mark.parametrize("dtype", LOW, ids=word)
@pytest.mark.parametrize("name", DECISIONS)
def test_R3_decisions_see_rounded_values(name, dtype):
    """x·0.1·10 differs from x before rounding to the low type and often equals it after."""
    body, exact = DECISIONS[name]
    text = sized(f"a = mul(x, 0.1)\nb = mul(a, 10)\n{body}", f"x: {word(dtype)}", result="c")
    torch.manual_seed(0)
    for n in SIZES:
        x = (torch.randint(1, 60, (n,)).float() / 2).to(dtype)
        b = (x.float() * np.float32(0.1) * 10).to(dtype)  # what the tensor b would be, rounded once
        assert torch.equal(run(text, n, x), exact(b) if exact else b == x)
    ties = run(sized("a = div(x, 3)\nb = mul(a, 3)\nr = eq(b, x)", f"x: {word(dtype)}"), 60, torch.arange(60).to(dtype))
    assert ties.all()  # a third times three is the number again, once rounded


@pytest.mark.parametrize("dtype", LOW, ids=word)
def test_R4_stored_and_used_value_are_one(dtype):
    text = sized("a = mul(x, 1.1)\nb = sub(a, x)\nc = mul(b, 100)", f"x: {word(dtype)}", result="a, c")
    torch.manual_seed(0)
    for n in SIZES:
        x = torch.randn(n).to(dtype)
        a, c = run(text, n, x)
        assert same_bits(a, (x.float() * np.float32(1.1)).to(dtype))
        assert same_bits(c, ((a.float() - x.float()) * 100).to(dtype))  # from the rounded a


@pytest.mark.parametrize("dtype", LOW, ids=word)
def test_R4_rows_see_the_stored_value(dtype):
    text = (f"graph g(n: size, m: size, x: {word(dtype)}[n, m]) {{\na = mul(x, 0.3)\nb = amax(a, dims=[1], keepdim=true)\n"
            "c = eq(a, b)\nreturn a, b, c\n}")
    torch.manual_seed(0)
    for n in SIZES:
        a, b, c = run(text, 4, n, torch.randn(4, n).to(dtype))
        assert same(a.amax(1, keepdim=True), b) and torch.equal(c, a == b) and c.any(1).all()


# ------------------------------------------------------------------------------------------------------- R5

NAN_BITS = {torch.float16: 0x7C01, torch.bfloat16: 0x7F81, torch.float32: 0x7FAB2AC8, torch.float64: 0x7FF0000000000001}
MOVES = {
    "permute": "c = permute(x, dims=[1, 0])\nr = copy(c)", "reshape": "c = reshape(x, shape=[m, n])\nr = copy(c)", "expand":
    "c = unsqueeze(x, dim=0)\nd = expand(c, shape=[3, n, m])\nr = copy(d)", "slice": "c = slice(x, dim=1, start=0, end=m, step=2)\nr = copy(c)",
    "select": "c = select(x, dim=0, index=0)\nr = copy(c)", "flatten": "c = reshape(x, shape=[n*m])\nr = copy(c)"}
MOVED = {"permute": lambda x: x.t(), "reshape": lambda x: x.reshape(x.shape[1], x.shape[0]), "expand": lambda x: x.expand(3, *x.shape),
         "slice": lambda x: x[:, ::2], "select": lambda x: x[0], "flatten": lambda x: x.flatten()}


def payloads(dtype, shape):
    """NaNs quiet and signalling, of both signs, with payloads, beside zeros of both signs."""
    width = torch.finfo(dtype).bits
    kind = {16: torch.int16, 32: torch.int32, 64: torch.int64}[width]
    inf = NAN_BITS[dtype]
    values = [inf, inf | 1 << (width // 4), 0, 1 << (width - 1), inf | 1 << (width - 1), 3, inf + 1]
    values = [v - (1 << width) if v >= 1 << (width - 1) else v for v in values]
    n = int(np.prod(shape))
    return torch.tensor([values[i % len(values)] for i in range(n)], dtype=kind).view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
@pytest.mark.parametrize("move", MOVES)
def test_R5_moves_copy_every_bit(move, dtype):
    text = f"graph g(n: size, m: size, x: {word(dtype)}[n, m]) {{\n{MOVES[move]}\nreturn r\n}}"
    for n in (1, 3, 16):
        for m in SIZES:
            x = payloads(dtype, (n, m))
            assert same_bits(run(text, n, m, x), MOVED[move](x).contiguous()), (n, m)


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_R5_moves_beside_arithmetic(dtype):
    text = f"graph g(n: size, x: {word(dtype)}[n]) {{\nc = copy(x)\ny = add(x, 1)\nreturn c, y\n}}"
    for n in SIZES:
        x = payloads(dtype, (n,))
        assert same_bits(run(text, n, x)[0], x)


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_R5_through_torch(dtype):
    x = payloads(dtype, (6, 10))

    def f(x):
        a, b = x.split(5, 1)
        return torch.cat([b, a], 1), x.t().contiguous(), x.flip(0), torch.nn.functional.pad(x, (1, 2)), x[torch.tensor([5, 0])], x + 1

    for got, want in list(zip(through_torch(f, x), f(x)))[:-1]:
        assert same_bits(got, want)


# ------------------------------------------------------------------------------------------------------- R6


def test_R6_two_to_the_25_ones():
    text = sized("r = sum(x, dims=[0])", "x: f32")
    assert run(text, 2**25, torch.ones(2**25)).item() == 33554432


@pytest.mark.parametrize("op", ["sum", "mean", "prod"])
@pytest.mark.parametrize("dtype", LOW, ids=word)
def test_R6_sums_are_promoted_whatever_is_exempt(op, dtype):
    text = f"graph g(n: size, m: size, x: {word(dtype)}[n, m]) {{\nr = {op}(x, dims=[1])\nreturn r\n}}"
    with pytest.warns(Warning):
        exempt = _core.compile_graph(text, {"keep_dtype": [op]})
    x = torch.ones(2, 5000, dtype=dtype)
    want = {"sum": 5000.0, "mean": 1.0, "prod": 1.0}[op]
    for f in (exempt, graph(text)):
        assert torch.equal(f(2, 5000, x)[0], torch.full((2,), want).to(dtype))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("op", ["sum", "prod", "var", "logsumexp"])
def test_R6_one_order_for_any_number_of_threads(op, dim):
    text = f"graph g(n: size, m: size, x: f32[n, m]) {{\nr = {op}(x, dims=[{dim}])\nreturn r\n}}"
    torch.manual_seed(0)
    before = torch.get_num_threads()
    try:
        for shape in ((3, 100_003), (100_003, 3), (400, 1000)):
            x = torch.rand(shape) * 0.2 + 0.9
            results = []
            for threads in (1, 2, 3):
                torch.set_num_threads(threads)
                results.append(_core.compile_graph(text, {"threads": threads})(*shape, x)[0])
            assert all(same_bits(results[0], r) for r in results[1:])
    finally:
        torch.set_num_threads(before)


# ------------------------------------------------------------------------------------------------------- R9


def r9(a, b, c, exempt):
    """(a*b + c)*b - a in f32, rounded after the operators in `exempt` and at the end."""
    after = lambda name, t: t.to(a.dtype).float() if name in exempt else t  # noqa: E731
    x, y, z = a.float(), b.float(), c.float()
    return (after("mul", after("add", after("mul", x * y) + z) * y) - x).to(a.dtype)


@pytest.mark.parametrize("exempt", [["mul"], ["add"], ["Mul", "ADD"], ["mul", "add", "sub"]])
@pytest.mark.parametrize("dtype", LOW, ids=word)
def test_R9_exempt_operators_round_after_themselves(dtype, exempt):
    text = f"graph g(n: size, a: {word(dtype)}[n], b: {word(dtype)}[n], c: {word(dtype)}[n]) {{\n" + (
        "m = mul(a, b)\ns = add(m, c)\nt = mul(s, b)\nr = sub(t, a)\nreturn r\n}"
    )
    torch.manual_seed(0)
    for n in SIZES:
        a, b, c = (torch.randn(n).to(dtype) for _ in range(3))
        got = _core.compile_graph(text, {"keep_dtype": exempt})(n, a, b, c)[0]
        assert same_bits(got, r9(a, b, c, {e.lower() for e in exempt}))
        assert same_bits(_core.compile_graph(text, {"keep_dtype": ["all"]})(n, a, b, c)[0], (a * b + c) * b - a)


@pytest.mark.parametrize("dtype", LOW, ids=word)
def test_R9_a_named_composite_rounds_at_its_end_and_other_types_stay(dtype):
    low = word(dtype)
    text = f"graph g(n: size, a: {low}[n, 33], b: {low}[n, 33], x: f32[n, 33]) {{\n" + (
        "s = softmax(a, dim=1)\nm = mul(s, b)\nw = mul(m, x)\nreturn m, w\n}"
    )
    torch.manual_seed(0)
    a, b, x = torch.randn(17, 33).to(dtype), torch.randn(17, 33).to(dtype), torch.randn(17, 33)
    soft = torch.softmax(a.float(), 1).to(dtype)
    m, w = _core.compile_graph(text, {"keep_dtype": ["softmax"]})(17, a, b, x)
    assert same_bits(m, (soft.float() * b.float()).to(dtype))
    m, w = _core.compile_graph(text, {"keep_dtype": ["mul", "softmax"]})(17, a, b, x)
    assert same_bits(m, soft * b) and same_bits(w, m.float() * x)  # R4; a product with f32 is f32 whatever is exempt


# --------------------------------------------------------------------------------------------------- R7, R8


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_R7_vector_body_and_tail_give_the_same_bits(dtype):
    values = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 0.5, -3.25, 100.0]
    x = torch.tensor([v for v in values for _ in values], dtype=torch.float64).to(dtype)
    y = torch.tensor([v for _ in values for v in values], dtype=torch.float64).to(dtype)
    for row in json.loads(_core.op_table()):
        needed = [a for a in row["attrs"] if "fallback" not in a]
        if row["kind"] != "pointwise" or len(row["args"]) != 2 or needed or row["lower"] == "-" or row["name"] == "prelu":
            continue
        text = sized(f"r = {row['name']}(x, y)", f"x: {word(dtype)}", f"y: {word(dtype)}")
        whole = run(text, 96, x[:96].contiguous(), y[:96].contiguous())
        for i in range(0, 96, 7):
            assert same(run(text, 1, x[i:i + 1].contiguous(), y[i:i + 1].contiguous()), whole[i:i + 1]), (row["name"], x[i], y[i])


@pytest.mark.parametrize("dtype", FLOATS, ids=word)
def test_R8_numbers_enter_in_the_compute_type(dtype):
    """0.1 as f32 beside f16 and bf16, as f64 beside f64: never rounded to the low type first."""
    compute = torch.float64 if dtype == torch.float64 else torch.float32
    text = sized("r = mul(x, 0.1)", f"x: {word(dtype)}")
    (constant,) = named(only_kernel(text), "const") or named(only_kernel(text), "constant")
    assert constant[2] == word(compute)
    for n in SIZES:
        x = torch.arange(1, n + 1).to(dtype)
        assert same_bits(run(text, n, x), (x.to(compute) * torch.tensor(0.1, dtype=compute)).to(dtype))
        assert bits(run(text, n, x)).shape == (n,)
