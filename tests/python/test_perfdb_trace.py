"""`fuselab db trace-to-csv` (D-18)."""
import csv
import io
import json

import pytest

from perfdb_support import fuselab, shared

COLUMNS = ["op_name", "kernel_type", "simulation_shapes", "dur_us", "source", "confidence", "composite", "sub_kernel_durations", "kernel_shapes",
           "shape_match_rule", "sub_kernel_shapes"]


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("wrap", [lambda e: {"traceEvents": e}, lambda e: e])
def test_d18_complete_events_become_rows(tmp_path, wrap):
    events = [{"ph": "M", "name": "process_name"},
              {"ph": "X", "name": "aten.mm.default", "ts": 1, "dur": 3.25,
               "args": {"kernel_type": "MatMulV2", "confidence": 1.0, "simulation_shapes": "a,b", "sub_kernel_durations": {"x": 1}}},
              {"ph": "X", "name": "", "ts": 2}]
    (tmp_path / "t.json").write_text(json.dumps(wrap(events)))
    out = fuselab("db", "trace-to-csv", str(tmp_path / "t.json")).stdout
    first, second = rows(out)
    assert list(first) == COLUMNS
    assert (first["op_name"], first["kernel_type"], first["simulation_shapes"], first["dur_us"]) == ("aten.mm.default", "MatMulV2", "a,b", "3.25")
    assert json.loads(first["sub_kernel_durations"]) == {"x": 1} and first["source"] == ""
    assert second["op_name"] == "" and second["dur_us"] == "0"
    fuselab("db", "trace-to-csv", str(tmp_path / "t.json"), "--output", str(tmp_path / "t.csv"))
    assert (tmp_path / "t.csv").read_text() == out


@pytest.mark.parametrize("name", ["dsv3_decode", "qwen3_32b_prefill"])
def test_d18_recorded_summaries(name):
    path = shared(f"data/ascend/tensorcast_trace_{name}.json")
    ops = json.loads(path.read_text())["ops"]
    table = rows(fuselab("db", "trace-to-csv", str(path)).stdout)
    assert [r["op_name"] for r in table] == [o["op_name"] for o in ops]
    assert [float(r["dur_us"]) for r in table] == [o["total_duration_us"] for o in ops]
    assert [r["kernel_type"] for r in table] == [o.get("kernel_type") or "" for o in ops]


@pytest.mark.parametrize("text", ["", "{", "7", "[]", "{}", '{"traceEvents": 1}', '{"ops": [1]}', '["a"]'])
def test_d18_what_is_no_trace(tmp_path, text):
    (tmp_path / "t.json").write_text(text)
    out = fuselab("db", "trace-to-csv", str(tmp_path / "t.json"), check=False)
    assert out.returncode == 1 and "trace" in out.stderr and not out.stdout
