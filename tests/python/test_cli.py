"""The program `fuselab`: every subcommand, its exit codes, and what broken input does to it."""

import json
import os
import re
import signal
import subprocess
import time

import numpy as np
import pytest

from program import ROOT, find_program

PROGRAM = find_program()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="the program is not built (set FUSELAB_PROGRAM)")

SOFTMAX = """graph s(x: f32[64, 100]) {
  a = mul(x, 0.5)
  p = softmax(a, dim=-1)
  t = sum(p, dims=[0])
  return p, t
}
"""
FFN = """graph ffn(x: f16[B, 768], h: f16[B, 768], w: f16[768], b: f16[768]) {
  x1 = add(x, h)
  n = layer_norm(x1, w, b, normalized_shape=[768], eps=1e-05)
  y = gelu(n)
  return y, x1
}
"""


@pytest.fixture
def work(tmp_path):
    (tmp_path / "softmax.graph").write_text(SOFTMAX)
    (tmp_path / "ffn.graph").write_text(FFN)
    return tmp_path


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("kernel_cache")


@pytest.fixture
def call(work, cache):
    def run(*args, env=None, code=0):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("AUTOFUSE_")}
        environment |= {"FUSELAB_CACHE_DIR": str(cache)} | (env or {})
        done = subprocess.run([PROGRAM, *map(str, args)], cwd=work, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, f"{args}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "terminate called" not in done.stderr
        assert not code or done.stderr.strip(), "an error says nothing"
        return done

    return run


def the_error(done):
    """The one error line; its code in brackets at the end."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("fuselab: error: ")]
    assert len(lines) == 1, done.stderr
    return done.stderr


def softmax_rows(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


# ---- what works ---------------------------------------------------------------------------------------------------------


def test_version(call):
    assert call("--version").stdout.split()[0].count(".") == 2


@pytest.mark.parametrize("command", ["run", "explain", "compile", "check", "ops", "cache", "flags", "repro", "profile"])
def test_help_has_an_example(call, command):
    text = call(command, "--help").stdout
    assert "Example" in text and f"fuselab {command}" in text


def test_run_reads_and_writes_npy(call, work):
    x = np.random.default_rng(0).standard_normal((64, 100)).astype(np.float32)
    np.save(work / "x.npy", x)
    call("run", "softmax.graph", "--input", "x=x.npy", "--out", "results")
    expected = softmax_rows(x.astype(np.float64) * 0.5)
    np.testing.assert_allclose(np.load(work / "results/p.npy"), expected, rtol=1e-6)
    np.testing.assert_allclose(np.load(work / "results/t.npy"), expected.sum(axis=0), rtol=1e-6)


def test_run_takes_fortran_order_and_other_versions(call, work):
    x = np.random.default_rng(1).standard_normal((64, 100)).astype(np.float32)
    with open(work / "x.npy", "wb") as f:
        np.lib.format.write_array(f, np.asfortranarray(x), version=(2, 0))
    call("run", "softmax.graph", "--input", "x=x.npy", "--out", "results")
    np.testing.assert_allclose(np.load(work / "results/p.npy"), softmax_rows(x.astype(np.float64) * 0.5), rtol=1e-6)


@pytest.mark.parametrize("dtype, text", [(np.float16, "f16"), (np.float32, "f32"), (np.float64, "f64"), (np.int8, "i8"), (np.uint8, "u8"),
                                         (np.int16, "i16"), (np.int32, "i32"), (np.int64, "i64"), (np.bool_, "bool")])
def test_every_dtype_passes_through_npy(call, work, dtype, text):
    x = np.array([0, 1, 1, 0, 1], dtype=dtype)
    (work / "g.graph").write_text(f"graph g(x: {text}[5]) {{\n  y = maximum(x, x)\n  return y\n}}\n")
    np.save(work / "x.npy", x)
    call("run", "g.graph", "--input", "x=x.npy", "--out", ".")
    y = np.load(work / "y.npy")
    assert y.dtype == x.dtype and (y == x).all()


def test_random_inputs_are_the_same_twice(call):
    runs = [json.loads(call("run", "softmax.graph", "--input", "x=random", "--seed", seed, "--json").stdout) for seed in (3, 3, 4)]
    assert runs[0]["outputs"] == runs[1]["outputs"] != runs[2]["outputs"]


def test_explain_gives_blocks_and_reasons(call, work):
    plan = json.loads(call("explain", "ffn.graph", "--json", "--svg", "ffn.svg", "--dot", "ffn.dot").stdout)
    kernels = [s for s in plan["steps"] if s["kind"] == "kernel"]
    assert [k["outputs"] for k in kernels] == [["x1", "y"]]
    assert kernels[0]["name"].startswith("autofused_reduce_add_layer_norm_gelu_")
    assert all(n["reason"] == "block " + kernels[0]["name"] for n in plan["nodes"])
    assert "<svg" in (work / "ffn.svg").read_text() and "digraph" in (work / "ffn.dot").read_text()


def test_explain_timing_and_passes(call):
    timing = json.loads(call("explain", "softmax.graph", "--timing", "--json").stdout)
    assert {"fuse", "codegen", "compile", "load", "total"} <= set(timing["timing_ms"]) and timing["median_per_kernel_ms"] > 0
    passes = json.loads(call("explain", "softmax.graph", "--passes", "--json").stdout)
    assert passes["kernels"][0]["passes"][0]["pass"] == "lower"


def test_explain_shows_the_plan_of_a_run_and_the_passes_that_took_effect(call, work):
    """P-43, P-53. Without compiling, explain once fused the graph as given, not the one that the graph passes leave."""
    (work / "twice.graph").write_text("graph g(x: f16[8, 64], y: f16[8, 64]) {\n  a = mul(x, y)\n  b = mul(x, y)\n  c = add(a, b)\n  return c\n}\n")
    plan = json.loads(call("explain", "twice.graph", "--json").stdout)
    compiled = json.loads(call("explain", "twice.graph", "--passes", "--json").stdout)
    names = [s["name"] for s in plan["steps"] if s["kind"] == "kernel"]
    assert names == [k["name"] for k in compiled["kernels"]]
    assert plan["graph_passes"] == ["cse"] == [p["pass"] for p in compiled["graph_passes"]]
    assert "b: f16" not in compiled["graph_passes"][0]["graph"]
    assert "graph passes: cse" in call("explain", "twice.graph").stdout
    for less in (("--skip-pass", "cse"), ("--opt-level", "0")):
        shown = call("explain", "twice.graph", "--passes", *less).stdout
        assert "graph passes: none changed the graph" in shown and shown.count("= mul") >= 2
    wrong = subprocess.run([PROGRAM, "explain", "twice.graph", "--skip-pass", "cze"], cwd=work, capture_output=True, text=True, check=False)
    assert wrong.returncode in (1, 2) and "no pass 'cze' to skip; there are" in wrong.stderr and "cse" in wrong.stderr


def test_switches_change_the_plan(call):
    def kernels(*args, env=None):
        plan = json.loads(call("explain", "ffn.graph", "--json", *args, env=env).stdout)
        return sum(s["kind"] == "kernel" for s in plan["steps"])

    assert kernels() == 1
    assert kernels("--no-fuse") == 3
    assert kernels("--no-fuse=reduce") == 3
    assert kernels("--max_fusion_size", "2") == 2
    assert kernels(env={"AUTOFUSE_FLAGS": "--enable_autofuse=false"}) == 3
    assert kernels(env={"AUTOFUSE_FLAGS": "--autofuse_disable_pass=reduce"}) == 3


def test_command_line_beats_environment_and_says_so(call):
    done = call("explain", "ffn.graph", "--json", "--max_fusion_size", "64", env={"AUTOFUSE_FLAGS": "--max_fusion_size=0"})
    assert "overrides" in done.stderr and "max_fusion_size" in done.stderr
    assert sum(s["kind"] == "kernel" for s in json.loads(done.stdout)["steps"]) == 1


@pytest.mark.parametrize("precision", ["block", "eager"])
def test_check_passes(call, precision):
    result = json.loads(call("check", "softmax.graph", "--precision", precision, "--json").stdout)
    assert result["passed"] and result["failed"] == []
    assert any(line.startswith("output:p precision PASSED") for line in result["lines"])
    call("check", "ffn.graph", "--size", "B=7", "--precision", precision)


@pytest.mark.parametrize("precision", ["block", "eager"])
def test_case_29_inner_values_show_where_a_nan_arises(call, work, precision):
    """pytorch#181692: a nan_to_num at the end hides the NaN from every comparison of results."""
    text = ("graph g(x: f16[4], y: f16[4]) {\n  p = div(x, y)\n  l = log(p)\n  m = mul(l, 2)\n"
            "  n = isnan(m)\n  r = where(n, 0.0, m)\n  return r\n}\n")
    np.save(work / "x.npy", np.array([1, 0, -1, 4], dtype=np.float16))
    np.save(work / "y.npy", np.array([1, 0, 2, 0], dtype=np.float16))
    options = ("check", graph(work, text), "--input", "x=x.npy", "--input", "y=y.npy", "--precision", precision)
    plain = json.loads(call(*options, "--json").stdout)
    assert plain["passed"] and "values" not in plain
    result = json.loads(call(*options, "--values", "--json", "--out", "values").stdout)
    rows = {row["name"]: row for row in result["values"]}
    assert list(rows) == ["p", "l", "m", "n", "r"] and result["passed"]
    assert [rows[k]["nan"] for k in rows] == [1, 2, 2, 0, 0] and [rows[k]["inf"] for k in rows] == [1, 1, 1, 0, 1]
    assert [rows[k]["arises"] for k in rows] == [["nan", "inf"], ["nan"], [], [], []]
    assert (rows["l"]["op"], rows["l"]["min"], rows["l"]["max"]) == ("log(p)", 0, 0)
    np.testing.assert_array_equal(np.load(work / "values" / "p.npy"), np.array([1, np.nan, -0.5, np.inf], dtype=np.float16))
    assert np.isnan(np.load(work / "values" / "m.npy")).tolist() == [False, True, True, False]
    lines = call(*options, "--values").stdout.splitlines()
    assert "value p = div(x, y)  f16[4]  from -0.5 to 1  nan 1 (arises here)  inf 1 (arises here)" in lines


def test_compile_writes_the_texts_and_repro_checks_them(call, work):
    call("compile", "softmax.graph", "--out", "kernels")
    folders = sorted((work / "kernels").iterdir())
    assert len(folders) == 2
    for folder in folders:
        assert {"kernel.ir", "kernel.cpp", "artifacts.json", "fragment.graph"} <= {p.name for p in folder.iterdir()}
        done = call("repro", folder, "--check")
        assert "artifact PASSED" in done.stdout and done.stdout.rstrip().endswith("Precision check passed.")
        call("repro", folder, "--check", "--e2e")
        call("compile", folder / "kernel.ir")


def test_ops_flags_cache(call, work):
    operators = {op["name"]: op for op in json.loads(call("ops", "--json").stdout)["operators"]}
    assert {"add", "softmax", "layer_norm"} <= set(operators)
    assert "softmax" in call("ops", "SoftmaxV2").stdout
    assert {o["option"] for o in json.loads(call("flags", "--json").stdout)["options"]} >= {"enable_autofuse", "max_fusion_size"}
    own = {"FUSELAB_CACHE_DIR": str(work / "own_cache")}
    call("compile", "softmax.graph", env=own)
    assert len(json.loads(call("cache", "show", "--json", env=own).stdout)["entries"]) == 2
    assert json.loads(call("cache", "verify", "--json", env=own).stdout)["damaged"] == 0
    assert json.loads(call("cache", "clear", "--json", env=own).stdout)["removed"] == 2
    assert json.loads(call("cache", "show", "--json", env=own).stdout)["entries"] == []


def test_the_flags_page_is_the_parsers_table(call):
    assert (ROOT / "docs/flags.md").read_text() == call("flags", "--markdown").stdout


# ---- a kernel changed by hand fails ---------------------------------------------------------------------------------------


WRONG = {
    "add is sub": lambda text: text.replace("(x0_0 + x1_1)", "(x0_0 - x1_1)"),
    "scaled by 1.04": lambda text: text.replace("(x0_0 + x1_1)", "(x0_0 + x1_1) * 1.04f"),
    "last row not written": lambda text: text.replace("last = 1320", "last = 1280"),
    "off by one": lambda text: text.replace("first = 0", "first = 1"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_kernel_changed_by_hand_fails_its_check(call, work, what):
    (work / "g.graph").write_text("graph g(x: f32[33, 40], y: f32[33, 40]) {\n  a = add(x, y)\n  return a\n}\n")
    call("compile", "g.graph", "--out", "kernels")
    (folder,) = (work / "kernels").iterdir()
    call("repro", folder, "--check")
    artifacts = json.loads((folder / "artifacts.json").read_text())
    before = artifacts["device_impl"]
    artifacts["device_impl"] = WRONG[what](before)
    assert artifacts["device_impl"] != before, "the change found nothing to change"
    (folder / "artifacts.json").write_text(json.dumps(artifacts))
    done = subprocess.run([PROGRAM, "repro", str(folder), "--check"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "artifact FAILED" in done.stdout and done.stdout.rstrip().endswith("Precision check failed: a")


def test_e2e_takes_the_edited_ir(call, work):
    (work / "g.graph").write_text("graph g(x: f32[33, 40], y: f32[33, 40]) {\n  a = add(x, y)\n  return a\n}\n")
    call("compile", "g.graph", "--out", "kernels")
    (folder,) = (work / "kernels").iterdir()
    ir = (folder / "kernel.ir").read_text()
    (folder / "kernel.ir").write_text(ir.replace("= add %0", "= sub %0"))
    call("repro", folder, "--check")
    failed = subprocess.run([PROGRAM, "repro", str(folder), "--check", "--e2e"], capture_output=True, text=True, timeout=120, check=False)
    assert failed.returncode == 1 and "artifact FAILED" in failed.stdout


def test_repro_draws_integers_from_the_kernels_range(call, work):
    """A kernel that divides integers gets no zeros, another one no negative numbers that only some operators take; artifacts.json says so,
    and the data is the script's for the same seed."""
    (work / "g.graph").write_text("graph g(x: i32[600], y: i32[600], s: i64[600]) {\n  a = div_floor(x, y)\n  b = add(a, s)\n  return b\n}\n")
    call("compile", "g.graph", "--out", "ranges")
    (folder,) = (work / "ranges").iterdir()
    ranges = json.loads((folder / "artifacts.json").read_text())["int_ranges"]
    assert list(ranges.values()) == [[1, 9]] * 3
    call("repro", folder, "--check")
    document = json.loads((folder / "artifacts.json").read_text())
    document["int_ranges"] = {name: [0, 0] for name in ranges}
    (folder / "artifacts.json").write_text(json.dumps(document))
    zeros = subprocess.run([PROGRAM, "repro", str(folder), "--check"], capture_output=True, text=True, timeout=120, check=False)
    assert zeros.returncode != 0 and "division by zero" in zeros.stderr
    document["int_ranges"] = {name: [5] for name in ranges}
    (folder / "artifacts.json").write_text(json.dumps(document))
    short = subprocess.run([PROGRAM, "repro", str(folder), "--check"], capture_output=True, text=True, timeout=120, check=False)
    assert short.returncode != 0 and "repro.artifacts" in short.stderr


def test_results_are_written_whole(call, work):
    """A file is there or not, a link stays one, and a device is written as it is."""
    (work / "real.svg").write_text("before")
    (work / "link.svg").symlink_to("real.svg")
    call("explain", "softmax.graph", "--svg", "link.svg")
    assert (work / "link.svg").is_symlink() and "<svg" in (work / "real.svg").read_text()
    assert "<svg" in call("explain", "softmax.graph", "--svg", "/dev/stdout").stdout
    assert not list(work.glob("*.part"))
    (work / "folder.svg").mkdir()
    wrong = subprocess.run([PROGRAM, "explain", "softmax.graph", "--svg", "folder.svg"], cwd=work, capture_output=True, text=True, check=False)
    assert wrong.returncode == 1 and "file.write" in wrong.stderr and not list(work.glob("folder.svg.*"))


def test_repro_has_the_modes_of_the_script(call, work):
    """--check also judges the fragment compiled anew; --bench has the script's table and lines; --profile a row per launch."""
    (work / "g.graph").write_text("graph g(x: f16[33, 40], y: f16[33, 40]) {\n  a = add(x, y)\n  b = gelu(a)\n  return b\n}\n")
    call("compile", "g.graph", "--out", "kernels")
    (folder,) = (work / "kernels").iterdir()
    lines = call("repro", folder, "--check").stdout.splitlines()
    assert lines[1].startswith("output:b precision PASSED: CosineSim=") and lines[2].startswith("output:b artifact PASSED: ")
    assert "; compiled max=" in lines[3] and "; artifact max=" in lines[3]
    lines = call("repro", folder, "--bench", "--precision", "eager").stdout.splitlines()
    assert lines[1] == f"Benchmark: {folder.name}" and lines[2] == " Step  | Graph Mode (us)    | Eager (us)         |  Ratio"
    assert [line.split("|")[0].strip() for line in lines[4:14] + lines[15:16]] == [*map(str, range(1, 11)), "Avg"]
    assert lines[16].startswith("spread: ") and lines[17].startswith("control: ")
    assert "outputs: right before and after the timing" in lines
    bench = json.loads(call("repro", folder, "--bench", "--cold", "--json").stdout)["bench"]
    assert bench["cold"] and len(bench["graph_us"]) == len(bench["eager_us"]) == 10
    table = call("repro", folder, "--bench", "--recorded").stdout.splitlines()
    assert len(table) == 18 and "bench_eager_prof" in table[17]
    document = json.loads(call("repro", folder, "--profile", "--e2e", "--json").stdout)
    rows = (work / document["profile"]["folder"] / "kernel_details.csv").read_text().splitlines()
    assert len(rows) == 11 and all(folder.name in row for row in rows[1:])
    call("repro", folder, "--check", "--cold", code=2)
    call("repro", folder, "--check", "--precision", "half", code=2)


def test_profile_sums_by_kernel(call, work):
    header = "Step Id,Name,Type,Duration(us)\n"
    (work / "kernel_details.csv").write_text(header + "1,a,Add,1.5\n1,b,Mul,4\n2,a,Add,2.5\n2,c,HcclX,N/A\n")
    document = json.loads(call("profile", "kernel_details.csv", "--json").stdout)
    assert document["kernels"] == [{"name": "a", "launches": 2, "us": 4.0}, {"name": "b", "launches": 1, "us": 4.0},
                                   {"name": "c", "launches": 1, "us": 0.0}]  # fmt: skip
    assert document["steps"] == [{"step": 1, "us": 5.5}, {"step": 2, "us": 2.5}] and document["without_time"] == 1
    place = work / "profiling" / "host_1_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    place.mkdir(parents=True)
    (place / "kernel_details.csv").write_text(header + "1,a,Add,1.5\n")
    assert str(place.relative_to(work)) in call("profile", "profiling").stdout
    assert "1.500" in call("profile", place.parent).stdout
    (work / "trace_view.json").write_text('[{"ph": "X", "name": "k", "ts": "1.5", "dur": 2}, {"ph": "X", "name": "q"q", "ts": 2, "dur": 3}]')
    assert "byte" in call("profile", "trace_view.json", code=2).stderr
    lines = call("profile", "trace_view.json", "--salvage").stdout.splitlines()
    assert lines[2].split() == ["1", "2.000", "k"] and "left out" in lines[3]


def test_case_77_a_profile_without_kernels(call, work):
    for name, text in {"kernel_details.csv": "Step Id,Name,Duration(us)\n", "trace_view.json": "[]"}.items():
        (work / name).write_text(text)
        done = call("profile", name, code=2)
        assert "no kernels in profile" in done.stderr and "Traceback" not in done.stderr
    call("profile", "absent.csv", code=2)
    (work / "kernel_details.csv").unlink()
    call("profile", ".", code=2)


def test_repro_takes_captured_inputs(call, work):
    """Inputs of a file by name: x = -y gives 0; another name, dtype or size is a wrong call."""
    (work / "g.graph").write_text("graph g(x: f32[3, 4], y: f32[3, 4]) {\n  a = add(x, y)\n  return a\n}\n")
    call("compile", "g.graph", "--out", "kernels")
    (folder,) = (work / "kernels").iterdir()

    def write(path, arrays):
        header, blobs, at = {}, b"", 0
        for name, array in arrays.items():
            blob = array.tobytes()
            kind = {"float32": "F32", "float64": "F64"}[str(array.dtype)]
            header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, at + len(blob)]}
            blobs, at = blobs + blob, at + len(blob)
        text = json.dumps(header).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + blobs)

    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    names = re.findall(r"(\w+): f32", (folder / "fragment.graph").read_text())[:2]
    write(work / "in.safetensors", dict(zip(names, (x, -x), strict=True)))
    done = call("repro", folder, "--check", "--inputs", "in.safetensors")
    assert "artifact=0" in done.stdout
    call("repro", folder, "--bench", "--inputs", "in.safetensors")
    for wrong in ({"z": x}, {names[0]: x.astype(np.float64)}, {names[0]: x[:2]}):
        write(work / "wrong.safetensors", wrong)
        call("repro", folder, "--check", "--inputs", "wrong.safetensors", code=2)
    (work / "half.safetensors").write_bytes((work / "in.safetensors").read_bytes()[:20])
    call("repro", folder, "--check", "--inputs", "half.safetensors", code=2)
    call("repro", folder, "--check", "--inputs", "absent.safetensors", code=2)


def test_repro_of_a_broken_folder(call, work):
    call("compile", "softmax.graph", "--out", "kernels")
    folder = sorted((work / "kernels").iterdir())[0]
    call("repro", folder, code=2)
    call("repro", work / "nothing", "--check", code=2)
    for text in ("", "{", "[1]", '{"name": 3}'):
        (folder / "artifacts.json").write_text(text)
        assert "repro.artifacts" in the_error(call("repro", folder, "--check", code=1))


# ---- ten kinds of broken input ----------------------------------------------------------------------------------------------


def graph(work, text):
    (work / "broken.graph").write_text(text)
    return "broken.graph"


def test_broken_1_syntax_error(call, work):
    error = the_error(call("explain", graph(work, "graph g(x: f32[4]) {\n  a = add(x,\n  return a\n}\n"), code=1))
    assert "broken.graph:3:" in error and "^" in error and "graph.syntax" in error


def test_broken_2_unknown_operator(call, work):
    error = the_error(call("run", graph(work, "graph g(x: f32[4]) {\n  a = frob(x)\n  return a\n}\n"), "--input", "x=random", code=1))
    assert "broken.graph:2:7" in error and "frob" in error


def test_broken_3_shape_mismatch(call, work):
    error = the_error(call("check", graph(work, "graph g(x: f32[4], y: f32[5]) {\n  a = add(x, y)\n  return a\n}\n"), code=1))
    assert "graph.shape" in error and "5" in error and "4" in error


@pytest.mark.parametrize("args, env", [(["--bogus"], {}), (["--fuse=frob"], {}), (["--max_fusion_size", "many"], {}),
                                       (["--keep-dtype=Frob"], {}), ([], {"AUTOFUSE_FLAGS": "--frob=1"}),
                                       ([], {"AUTOFUSE_DFX_FLAGS": "--frob=1"}), ([], {"AUTOFUSE_FLAGS": "nonsense"})])
def test_broken_4_unknown_flag(call, args, env):
    call("explain", "softmax.graph", *args, env=env, code=2)


def test_broken_5_unreadable_cache_folder(call, work):
    (work / "file").write_text("no folder")
    done = call("run", "softmax.graph", "--input", "x=random", env={"FUSELAB_CACHE_DIR": str(work / "file")})
    assert "cache" in done.stderr and "p " in done.stdout
    assert (work / "file").read_text() == "no folder"


def test_broken_6_damaged_cache_entry(call, work):
    own = {"FUSELAB_CACHE_DIR": str(work / "own_cache")}
    good = call("run", "softmax.graph", "--input", "x=random", "--json", env=own)
    entries = [p for p in (work / "own_cache").rglob("*") if p.is_file()]
    for p in entries:
        data = bytearray(p.read_bytes())
        if len(data) > 200:
            data[len(data) // 2] ^= 0xFF
            p.write_bytes(data)
    again = call("run", "softmax.graph", "--input", "x=random", "--json", env=own)
    assert json.loads(good.stdout)["outputs"] == json.loads(again.stdout)["outputs"]
    assert "damaged" in again.stderr
    assert json.loads(call("cache", "verify", "--json", env=own).stdout)["damaged"] == 0


def test_broken_7_folder_that_cannot_be_written(call, work):
    (work / "file").write_text("no folder")
    error = the_error(call("compile", "softmax.graph", "--out", "file/kernels", code=1))
    assert "file/kernels" in error
    assert (work / "file").read_text() == "no folder"


@pytest.mark.parametrize("sizes", ["4000000000, 4000000000", "40000, 4000000000"])
def test_broken_8_size_beyond_memory(call, work, sizes):
    text = f"graph g(x: f32[{sizes}]) {{\n  a = exp(x)\n  return a\n}}\n"
    the_error(call("run", graph(work, text), "--input", "x=random", code=1))


def test_broken_9_wrong_input_at_the_call(call, work):
    np.save(work / "f64.npy", np.zeros((64, 100)))
    np.save(work / "short.npy", np.zeros((3, 100), np.float32))
    np.save(work / "flat.npy", np.zeros(100, np.float32))
    np.save(work / "big_endian.npy", np.zeros((64, 100), ">f4"))
    for name in ("f64", "short", "flat", "big_endian"):
        assert name in the_error(call("run", "softmax.graph", "--input", f"x={name}.npy", code=2)) or name == "short"
    call("run", "softmax.graph", code=2)
    call("run", "softmax.graph", "--input", "z=random", code=2)
    call("run", "softmax.graph", "--input", "x", code=2)
    call("run", "ffn.graph", *[f for n in "xhwb" for f in ("--input", f"{n}=random")], code=2)  # B has no value
    call("run", "ffn.graph", "--size", "B=minus", *[f for n in "xhwb" for f in ("--input", f"{n}=random")], code=2)
    call("run", "missing.graph", code=2)
    call("run", ".", code=2)


def test_broken_9_malformed_npy(call, work):
    np.save(work / "x.npy", np.zeros((64, 100), np.float32))
    whole = (work / "x.npy").read_bytes()
    header = whole.index(b"{")
    broken = [b"", b"\x93NUMPY", whole[:-1], whole + b"\0", whole[:8] + b"\xff\xff" + whole[10:], b"\x00" + whole[1:],
              whole[:6] + b"\x09" + whole[7:], whole.replace(b"(64, 100)", b"(99999999999999999999,)"), whole.replace(b"'descr'", b"'descx'"),
              whole.replace(b"<f4", b"|O8"), whole.replace(b"False", b"Fals "), whole[:header] + b"[" + whole[header + 1:],
              whole.replace(b"(64, 100)", b"(-64,100)")]
    for i, data in enumerate(broken):
        (work / "x.npy").write_bytes(data)
        assert "npy." in the_error(call("run", "softmax.graph", "--input", "x=x.npy", code=2)), f"case {i}"


def test_broken_10_killed_while_the_cache_is_written(work, call):
    """Whatever moment the process dies at, the cache it leaves is usable and gives the same numbers."""
    own = {"FUSELAB_CACHE_DIR": str(work / "own_cache")}
    environment = os.environ | own
    for delay in (0.0, 0.01, 0.03, 0.06, 0.1):
        process = subprocess.Popen([PROGRAM, "run", "softmax.graph", "--input", "x=random"], cwd=work, env=environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert json.loads(call("cache", "verify", "--json", env=own).stdout)["damaged"] == 0
    ours = json.loads(call("run", "softmax.graph", "--input", "x=random", "--json", env=own).stdout)
    fresh = json.loads(call("run", "softmax.graph", "--input", "x=random", "--json", "--no-cache").stdout)
    assert ours["outputs"] == fresh["outputs"]
