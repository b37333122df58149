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
def test_every_header_gives_one_table(tmp_path, kind, ending, mark):
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


def test_what_does_not_parse_is_an_error_with_its_line(tmp_path):
    """lucebox#431: a section that did not parse was reported as zeros."""
    with pytest.raises(fuselab.Error, match=r"kernel_details.csv:3: Duration\(us\) is 'x'"):
        read(tmp_path, "Name,Duration(us)\na,1\nb,x\n")
    assert read(tmp_path, "Name,Duration(us)\na,N/A\n")["rows"][0]["duration_us"] is None


def test_quoting_survives(tmp_path):
    buffer = io.StringIO()
    csv.writer(buffer).writerows([["Name", "Duration(us)", "note"], ['a "quoted", name', "1", "two\nlines"], ["b", "2", ""]])
    rows = read(tmp_path, buffer.getvalue())["rows"]
    assert rows[0]["name"] == 'a "quoted", name' and rows[0]["counters"]["note"] == "two\nlines"
    assert rows[1]["counters"] == {}


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
