"""Profiler files: every header variant, exact times, missing values; and the recorder. Expected figures are the csv module's."""

import csv
import io
import json
import math
import os
import pathlib
from decimal import Decimal

import pytest

torch = pytest.importorskip("torch")

import fuselab
import fuselab.torch_backend
from fuselab import _core

DATA = pathlib.Path(__file__).resolve().parents[3] / "shared/data/ascend"


def read(tmp_path, text, name="kernel_details.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return _core.read_kernel_details(str(path))


COUNTERS = "aicore_time(us),aic_total_cycles,aic_mac_ratio"
SHAPES = "Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats"
IDS = "Model ID,Task ID,Stream ID"
MIX = "Block Dim,Mix Block Dim,HF32 Eligible"
TIMES = "Start Time(us),Duration(us),Wait Time(us)"
OPERANDS = '"""16,128;;3""","FLOAT16;INT64;INT32","ND;ND;ND","""16,128""",FLOAT16,ND'
# header, row; the row always says the same: AddN, 12.5 us, begun at 1736413971558972.912 us
VARIANTS = {
    "V0": (f"{IDS},Op Name,OP Type,Task Type,Task Start Time,Task Duration(us),Task Wait Time(us),Block Dim,{SHAPES},{COUNTERS}",
           f'1,7,3,Add1,AddN,AI_CORE,1736413971558972.912,12.5,0.25,20,{OPERANDS},11.0,1000,0.5'),
    "V1": (f"Name,Type,Accelerator Core,{TIMES},Block Dim", "Add1,AddN,AI_CORE,1736413971558972.912,12.5,0.25,20"),
    "V2": (f"Device_id,Name,Type,Accelerator Core,{TIMES},Block Num",
           '0,Add1,AddN,AI_CORE,"1736413971558972.912\t",12.5,0.25,20'),
    "V3": (f"Step Id,{IDS},Name,Type,Accelerator Core,{TIMES},Block Dim,Mix Block Dim,{SHAPES},Context ID,{COUNTERS}",
           f'1,4294967295,7,3,Add1,AddN,AI_CORE,1736413971558972.912,12.5,0.25,20,0,{OPERANDS},N/A,11.0,1000,0.5'),
    "V4": (f"Step Id,{IDS},Name,Type,OP State,Accelerator Core,{TIMES},{MIX},{SHAPES},Context ID,{COUNTERS}",
           f'1,4294967295,7,3,Add1,AddN,dynamic,AI_CORE,"1736413971558972.912\t",12.5,0.25,20,0,NO,{OPERANDS},N/A,11.0,1000,0.5'),
    "V5": (f"Device_id,{IDS},Op Name,OP Type,OP State,Task Type,Task Start Time(us),"
           f"Task Duration(us),Task Wait Time(us),{MIX},{SHAPES},Context ID,{COUNTERS}",
           f'0,4294967295,7,3,Add1,AddN,dynamic,AI_CORE,"1736413971558972.912\t",12.5,0.25,20,0,NO,{OPERANDS},N/A,11.0,1000,0.5'),
    "V6": (f"Step Id,Device_id,{IDS},Name,Type,OP State,Accelerator Core,{TIMES},Block Num,Mix Block Num,HF32 Eligible,{SHAPES},Context ID",
           f'1,0,4294967295,7,3,Add1,AddN,dynamic,AI_CORE,"1736413971558972.912\t",12.5,0.25,20,0,NO,{OPERANDS},N/A'),
    "V7": (f"OP State,Accelerator Core,{SHAPES},Average Duration(us),Median Duration(us),Std Duration(us),Average aicore_time(us),avg_seq_len",
           f'dynamic,AI_CORE,{OPERANDS},12.5,12.0,0.1,11.0,64'),
    "V8": (f"{SHAPES},Average Duration(us)", f"{OPERANDS},12.5"),
    "database": (f"{SHAPES},Profiling Average Duration(us),Profiling Median Duration(us)", f"{OPERANDS},12.5,12.0"),
}  # fmt: skip


@pytest.mark.parametrize("kind", VARIANTS)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_case_75_torch_npu_every_header_gives_one_table(tmp_path, kind, ending, mark):
    """Also Ascend/pytorch's renamings of Block Dim, Device_id that is missing, level 0 without shapes."""
    header, line = VARIANTS[kind]
    table = read(tmp_path, mark + header + ending + line + ending)
    (row,) = table["rows"]
    assert table["columns"] == header.split(",")
    assert row["duration_us"] == 12.5
    if "Start Time" in header:
        assert row["start_ns"] == 1736413971558972912  # exact: a double is 128 ns off there
        assert row["wait_us"] == 0.25 and row["blocks"] == 20
        assert (row["name"], row["type"], row["core"]) == ("Add1", "AddN", "AI_CORE")
    else:
        assert row["start_ns"] is None and row["wait_us"] is None and row["blocks"] is None and row["name"] is None
    assert row["step"] == (1 if "Step Id" in header else None)
    assert row["device"] == (0 if "Device_id" in header else None)
    if "Input Shapes" in header:
        inputs = [(o["sizes"], o["dtype"], o["format"]) for o in row["inputs"]]
        assert inputs == [([16, 128], "FLOAT16", "ND"), ([], "INT64", "ND"), ([3], "INT32", "ND")]
        assert [o["sizes"] for o in row["outputs"]] == [[16, 128]]
    else:
        assert row["inputs"] == row["outputs"] == []
    assert row["counters"].get("aicore_time(us)") == ("11.0" if "," + COUNTERS in header else None)
    assert "Context ID" not in row["counters"]  # N/A is nothing, not 0


REAL = ["kernel_details_level0.csv", "kernel_details_training_2023.csv", "FusedInferAttentionScore.csv", "TransposeBatchMatMul.csv"]


@pytest.mark.skipif(not DATA.is_dir(), reason="the files of ../shared are not here")
@pytest.mark.parametrize("name", REAL)
def test_real_files(name):
    table = _core.read_kernel_details(str(DATA / name))
    with open(DATA / name, newline="", encoding="utf-8-sig") as file:
        expected = list(csv.DictReader(file))
    assert len(table["rows"]) == len(expected)
    for got, want in zip(table["rows"], expected):
        duration = want.get("Duration(us)") or want.get("Average Duration(us)")
        assert got["duration_us"] == float(duration)
        if "Start Time(us)" in want:
            assert Decimal(got["start_ns"]) == Decimal(want["Start Time(us)"].strip()) * 1000
            assert got["name"] == want["Name"].strip()
        shapes = want.get("Input Shapes", "N/A").strip('"')
        if shapes != "N/A" and shapes:
            assert [o["sizes"] for o in got["inputs"]] == [[int(n) for n in s.split(",")] if s else [] for s in shapes.split(";")]
    if "Step Id" in table["columns"]:
        sums = {}
        for want in expected:
            sums[int(want["Step Id"])] = sums.get(int(want["Step Id"]), 0.0) + float(want["Duration(us)"])
        got = dict(_core.step_sums(str(DATA / name)))
        assert got.keys() == sums.keys()
        assert all(math.isclose(got[k], sums[k], rel_tol=1e-12) for k in sums)


@pytest.mark.parametrize(
    "text, code",
    [
        ("", "profile.empty"),
        ("Name,Duration(us)\n", "profile.empty"),  # rocprofiler-compute#294: no kernels is said, not a KeyError
        ("Name,Start Time(us)\na,1\n", "profile.no_column"),
        ("Name,Duration(us)\na\n", "profile.malformed"),
        ("Name,Duration(us)\na,1,2\n", "profile.malformed"),
        ("Name,Duration(us)\na,fast\n", "profile.malformed"),
        ("Name,Duration(us)\na,-1\n", "profile.malformed"),
        ("Name,Duration(us)\na,inf\n", "profile.malformed"),
        ("Name,Duration(us),Duration(us)\na,1,2\n", "profile.malformed"),
        ('Name,Duration(us)\n"a,1\n', "csv.malformed"),
        ('Name,Duration(us)\n"a"b,1\n', "csv.malformed"),
        ("Name,Duration(us),Input Shapes\na,1,2x3\n", "profile.malformed"),
        ("Name,Duration(us),Start Time(us)\na,1,12:30\n", "profile.malformed"),
        ("Step Id,Duration(us)\n1.5,1\n", "profile.malformed"),
    ],
)
def test_broken_files(tmp_path, text, code):
    with pytest.raises(fuselab.Error) as e:
        read(tmp_path, text)
    assert e.value.code == code and "kernel_details.csv" in str(e.value)


def test_case_78_lucebox_431_what_does_not_parse_is_an_error_with_its_line(tmp_path):
    """A section that did not parse was reported as zeros."""
    with pytest.raises(fuselab.Error, match=r"kernel_details.csv:3: Duration\(us\) is 'x'"):
        read(tmp_path, "Name,Duration(us)\na,1\nb,x\n")
    assert read(tmp_path, "Name,Duration(us)\na,N/A\n")["rows"][0]["duration_us"] is None


def test_case_77_rocprofiler_compute_294_625_689_no_kernels_is_said(tmp_path):
    for text in ("", "Name,Duration(us)\n", "Step Id,Device_id,Name,Type,Duration(us)\n"):
        with pytest.raises(fuselab.Error, match="no kernels in profile") as e:
            read(tmp_path, text)
        assert e.value.code == "profile.empty"
    with pytest.raises(fuselab.Error, match="no kernels in profile"):
        (tmp_path / "steps.csv").write_text("Step Id,Name,Duration(us)\nN/A,a,1\n")
        _core.step_sums(str(tmp_path / "steps.csv"))


def test_quoting_survives(tmp_path):
    buffer = io.StringIO()
    csv.writer(buffer).writerows([["Name", "Duration(us)", "note"], ['a "quoted", name', "1", "two\nlines"], ["b", "2", ""]])
    rows = read(tmp_path, buffer.getvalue())["rows"]
    assert rows[0]["name"] == 'a "quoted", name' and rows[0]["counters"]["note"] == "two\nlines"
    assert rows[1]["counters"] == {}


# ---- traces --------------------------------------------------------------------------------------------------------------


def event(name, ts, dur, **more):
    return {"name": name, "ph": "X", "pid": 0, "tid": 3, "ts": ts, "dur": dur, **more}


def read_trace(tmp_path, text, **more):
    path = tmp_path / "trace_view.json"
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return _core.read_trace(str(path), **more)


@pytest.mark.parametrize("wrapped", [False, True])
def test_case_72_ascend_pytorch_133_times_are_exact_and_from_the_first_event(tmp_path, wrapped):
    """Texts of absolute microseconds: as doubles they lose nanoseconds, and kernels nest wrongly."""
    meta = {"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "x"}}
    events = [meta, event("outer", "1736413971558972.912", "10.003"), event("inner", "1736413971558972.913", "10.002", args={"n": 3})]
    trace = read_trace(tmp_path, {"displayTimeUnit": "ns", "traceEvents": events} if wrapped else events)
    assert trace["base_ns"] == 1736413971558972912
    head, outer, inner = trace["events"]
    assert head["phase"] == "M" and head["start_ns"] is None and head["args"] == {"name": "x"}
    assert (outer["start_ns"], outer["duration_ns"]) == (0, 10003)
    assert (inner["start_ns"], inner["duration_ns"], inner["args"]) == (1, 10002, {"n": "3"})
    assert inner["start_ns"] + inner["duration_ns"] == outer["start_ns"] + outer["duration_ns"]
    floats = [float(e["ts"]) for e in events[1:]]
    assert floats[0] == floats[1]  # what a double makes of it


def test_case_72_numbers_keep_their_digits(tmp_path):
    """The same as JSON numbers: their text is read, not the double that a parser makes of it."""
    line = '{"ph": "X", "name": "a", "ts": 1736413971558972.913, "dur": 1.5}'
    trace = read_trace(tmp_path, f'[{line}, {line.replace("972.913", "973.000")}]')
    assert [e["start_ns"] for e in trace["events"]] == [0, 87]
    assert read_trace(tmp_path, "[]")["events"] == []


def test_case_73_kineto_1459_unescaped_quotes(tmp_path):
    lines = [json.dumps(event(f"k{i}", f"{100 + i}.5", "2", args={"shapes": [{"a": 1}, {"b": 2}], "n": i})) for i in range(5)]
    lines[2] = lines[2].replace('"k2"', '"k"2""')
    text = "[\n" + ",\n".join(lines) + "\n]\n"
    with pytest.raises(fuselab.Error, match=r"trace_view.json:4: byte \d+: .*--salvage") as e:
        read_trace(tmp_path, text)
    assert e.value.code == "trace.malformed"
    byte = int(str(e.value).split("byte ")[1].split(":")[0])
    assert abs(byte - text.index('2""')) <= 2
    trace = read_trace(tmp_path, text, salvage=True)
    assert [x["name"] for x in trace["events"]] == ["k0", "k1", "k3", "k4"] and trace["lost"] >= 1
    assert [x["start_ns"] for x in trace["events"]] == [0, 1000, 3000, 4000]
    cut = "".join(text[: text.index("k4")])  # a file that ends in the middle
    assert [x["name"] for x in read_trace(tmp_path, cut, salvage=True)["events"]] == ["k0", "k1", "k3"]
    wrapped = '{"traceEvents": ' + text.rstrip() + "}"
    assert [x["name"] for x in read_trace(tmp_path, wrapped, salvage=True)["events"]] == ["k0", "k1", "k3", "k4"]


@pytest.mark.parametrize("text", ["", "x", "{}", '{"traceEvents": 3}', "[{]", '[{"ph": "X", "ts": "soon"}]', "[" * 5000])
def test_what_is_no_trace(tmp_path, text):
    with pytest.raises(fuselab.Error) as e:
        read_trace(tmp_path, text)
    assert e.value.code == "trace.malformed"


def test_our_trace_is_read_back(model, tmp_path):
    _core.profile_start()
    model()
    rows = _core.profile_stop(str(tmp_path))
    trace = _core.read_trace(str(tmp_path / "trace_view.json"))
    launches = [e for e in trace["events"] if e["phase"] == "X"]
    assert [e["name"] for e in launches] == [r["name"] for r in rows]
    assert [e["start_ns"] + trace["base_ns"] for e in launches] == [r["start_ns"] for r in rows]


# ---- the recorder -------------------------------------------------------------------------------------------------------


@pytest.fixture
def model():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32), torch.nn.LayerNorm(32))
    fast = torch.compile(module, backend="fuselab")
    with torch.no_grad():
        x = torch.randn(8, 32)
        fast(x)
        yield lambda: fast(x)


def test_a_row_per_launch(model, tmp_path):
    _core.profile_start()
    for step in (1, 2, 3):
        _core.profile_step(step)
        model()
    rows = _core.profile_stop(str(tmp_path / "prof"))
    kernels = [r for r in rows if r["name"].startswith("autofused_")]
    assert len(rows) == 12 and len(kernels) == 6  # two kernels and two matrix products a step
    assert [r["step"] for r in rows] == [1] * 4 + [2] * 4 + [3] * 4
    gelu = kernels[0]
    assert gelu["type"] == "autofused_elemwise" and gelu["inputs"][0] == {"sizes": [8, 64], "dtype": "FLOAT", "format": "ND"}
    starts = [r["start_ns"] for r in rows]
    assert starts == sorted(starts) and all(r["duration_us"] > 0 for r in rows)
    back = _core.read_kernel_details(str(tmp_path / "prof/kernel_details.csv"))
    for wrote, got in zip(rows, back["rows"], strict=True):
        assert {k: got[k] for k in ("step", "name", "type", "start_ns", "inputs", "outputs", "core")} == {
            k: wrote[k] for k in ("step", "name", "type", "start_ns", "inputs", "outputs", "core")
        }
        assert got["duration_us"] == pytest.approx(wrote["duration_us"], abs=5e-4)
    with open(tmp_path / "prof/kernel_details.csv", newline="") as file:
        first = next(csv.DictReader(file))
    assert first["Start Time(us)"].endswith("\t") and first["Input Shapes"].startswith('"')


def test_abs_and_sum_are_one_kernel_in_the_profile(tmp_path):
    """P-59: the sample of the guide; its row begins with autofused_reduce_, and none is an abs or a sum of its own."""
    torch._dynamo.reset()
    fast = torch.compile(lambda t: t.abs().sum(-1), backend="fuselab")
    x = torch.randn(32, 64)
    fast(x)
    _core.profile_start()
    result = fast(x)
    _core.profile_stop(str(tmp_path))
    with open(tmp_path / "kernel_details.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1 and rows[0]["Name"].startswith("autofused_reduce_abs_sum_") and rows[0]["Type"] == "autofused_reduce"
    assert torch.allclose(result, x.abs().sum(-1), rtol=1e-6)


def test_the_trace_is_json_with_exact_times(model, tmp_path):
    _core.profile_start()
    model()
    rows = _core.profile_stop(str(tmp_path))
    events = [e for e in json.loads((tmp_path / "trace_view.json").read_text()) if e["ph"] == "X"]
    assert len(events) == len(rows)
    for event, row in zip(events, rows):
        assert Decimal(event["ts"]) * 1000 == row["start_ns"]  # decimal strings, exact to the nanosecond
        assert event["name"] == row["name"] and event["dur"] == pytest.approx(row["duration_us"], abs=5e-4)


def test_start_and_stop(model, tmp_path):
    with pytest.raises(fuselab.Error) as e:
        _core.profile_stop()
    assert e.value.code == "profile.stopped"
    _core.profile_start()
    with pytest.raises(fuselab.Error) as e:
        _core.profile_start()
    assert e.value.code == "profile.running"
    assert _core.profiling() and _core.profile_stop() == [] and not _core.profiling()
    model()
    _core.profile_start()
    model()
    with pytest.raises(fuselab.Error) as e:
        _core.profile_stop(os.path.join(str(tmp_path / "file"), "x") if (tmp_path / "file").write_text("") == 0 else "")
    assert e.value.code == "file.write"


def test_recording_over_many_sizes_and_dead_graphs():
    fn = torch.compile(lambda x: (x * 2).tanh(), backend="fuselab", dynamic=True)
    _core.profile_start()
    for n in (3, 5, 1000, 3):
        fn(torch.randn(n))
    del fn
    torch._dynamo.reset()
    rows = _core.profile_stop()
    assert [r["inputs"][0]["sizes"] for r in rows] == [[3], [5], [1000], [3]]
