"""`fuselab db enrich`: runtime values joined to the rows of fused attention (D-14, D-76 to D-83, D-145)."""
import csv
import json

import pytest

from perfdb_support import fuselab, shared

SAMPLE = ('{"query_shape":[8192,16,128],"key_shape":[8192,16,128],"value_shape":[8192,16,128],"actual_seq_lengths_kv":[40,998],'
          '"atten_mask_shape":null,"block_table_shape":null,"num_heads":16,"num_key_value_heads":2,"sparse_mode":0,"input_layout":"TND",'
          '"block_size":128}')
ROW = ['"8192,16,128;8192,16,128;8192,16,128;;;2;2;"', "DT_BF16;DT_BF16;DT_BF16;;;INT64;INT64;", "ND;ND;ND;;;ND;ND;", '"8192,16,128;"',
       "DT_BF16;FLOAT", "ND;ND", "58.2"]
HEAD = ["Input Shapes", "Input Data Types", "Input Formats", "Output Shapes", "Output Data Types", "Output Formats", "Profiling Average Duration(us)"]


@pytest.fixture
def files(tmp_path):
    def make(rows, lines):
        path = tmp_path / "FusedInferAttentionScore.csv"
        with open(path, "w", newline="") as f:
            csv.writer(f).writerows([HEAD, *rows])
        (tmp_path / "fia.jsonl").write_text("\n".join(lines) + "\n")
        return path, tmp_path / "fia.jsonl"

    return make


def enrich(path, jsonl, *args, **kwargs):
    return fuselab("db", "enrich", "--csv-path", str(path), "--jsonl-path", str(jsonl), *args, **kwargs)


def read(path):
    with open(path, newline="", encoding="utf-8-sig") as f:
        return list(csv.DictReader(f))


def test_d83_the_sample_line(files):
    path, jsonl = files([ROW], [SAMPLE])
    enrich(path, jsonl)
    (row,) = read(path)
    want = {"actual_seq_lengths_kv_values": "40,998", "avg_seq_len": "519.000000", "num_heads": "16", "num_key_value_heads": "2", "sparse_mode": "0",
            "input_layout": "TND", "block_size": "128", "metadata_completeness": "runtime_values_dumped"}
    assert {k: row["Runtime " + k] for k in want} == want
    assert [row[c] for c in HEAD] == ROW


def test_d77_rows_without_a_record_stay(files):
    other = ['"4096,16,128;8192,16,128;8192,16,128;;;2;2;"', *ROW[1:]]
    path, jsonl = files([other, ROW], [SAMPLE])
    report = json.loads(enrich(path, jsonl, "--json").stdout)
    rows = read(path)
    assert (report["matched"], report["unmatched"]) == (1, 1)
    assert [rows[0][c] for c in HEAD] == other and rows[0]["Runtime metadata_completeness"] == ""
    before = path.read_bytes()
    jsonl.write_text(SAMPLE.replace("[40,998]", "[40,998,7]"))
    enrich(path, jsonl)
    assert path.read_bytes() == before


@pytest.mark.parametrize("field, value", [("query_shape", [1, 16, 128]), ("key_shape", [1]), ("value_shape", [2]), ("actual_seq_lengths_kv", [5]),
                                          ("atten_mask_shape", [2048, 2048]), ("block_table_shape", [2, 4])])
def test_d78_every_part_of_the_key_counts(files, field, value):
    path, jsonl = files([ROW], [json.dumps({**json.loads(SAMPLE), field: value})])
    assert json.loads(enrich(path, jsonl, "--json").stdout)["unused_records"] == 1


def test_d79_several_records_make_several_rows_and_twice_is_once(files):
    path, jsonl = files([ROW], [SAMPLE, SAMPLE.replace("[40,998]", "[7,9]"), SAMPLE])
    enrich(path, jsonl)
    rows = read(path)
    assert [r["Runtime actual_seq_lengths_kv_values"] for r in rows] == ["40,998", "7,9"]
    assert [r["Runtime avg_seq_len"] for r in rows] == ["519.000000", "8.000000"]
    assert all([r[c] for c in HEAD] == ROW for r in rows)
    before = path.read_bytes()
    enrich(path, jsonl)
    assert path.read_bytes() == before


def test_d80_d145_tag_and_output_path(files, tmp_path):
    path, jsonl = files([ROW], [SAMPLE])
    before = path.read_bytes()
    enrich(path, jsonl, "--tag", "runtime_values", "--output-path", str(tmp_path / "new.csv"))
    assert path.read_bytes() == before
    assert read(tmp_path / "new.csv")[0]["Runtime metadata_completeness"] == "runtime_values"


@pytest.mark.parametrize("field", ["query_shape", "key_shape", "value_shape", "actual_seq_lengths_kv", "atten_mask_shape", "block_table_shape"])
def test_d81_missing_field_names_line_and_field(files, field):
    record = json.loads(SAMPLE)
    del record[field]
    path, jsonl = files([ROW], [SAMPLE, json.dumps(record)])
    before = path.read_bytes()
    out = enrich(path, jsonl, check=False)
    assert out.returncode == 1 and "fia.jsonl:2" in out.stderr and field in out.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize("line", ["{", "[1]", "7", SAMPLE.replace("[40,998]", '["a"]'), SAMPLE.replace("[40,998]", "[-1]"),
                                  SAMPLE.replace('"num_heads":16', '"num_heads":[1]')])
def test_d145_a_bad_line_is_named(files, line):
    path, jsonl = files([ROW], [SAMPLE, "", line])
    out = enrich(path, jsonl, check=False)
    assert out.returncode == 1 and "fia.jsonl:3" in out.stderr


def test_d145_missing_and_empty_files(files, tmp_path):
    path, jsonl = files([ROW], [SAMPLE])
    assert enrich(tmp_path / "none.csv", jsonl, check=False).returncode == 1
    assert enrich(path, tmp_path / "none.jsonl", check=False).returncode == 1
    path.write_text("")
    out = enrich(path, jsonl, check=False)
    assert out.returncode == 1 and "header" in out.stderr
    assert fuselab("db", "enrich", check=False).returncode == 2


def test_d41_rows_of_the_reference_file(tmp_path):
    source = shared("data/ascend/FusedInferAttentionScore.csv")
    record = {"query_shape": [128, 4, 128], "key_shape": [12307, 128, 128], "value_shape": [12307, 128, 128], "actual_seq_lengths_kv": [4096] * 128,
              "atten_mask_shape": [2048, 2048], "block_table_shape": [128, 512], "actual_seq_lengths": list(range(1, 129))}
    (tmp_path / "fia.jsonl").write_text(json.dumps(record))
    enrich(source, tmp_path / "fia.jsonl", "--output-path", str(tmp_path / "new.csv"))
    before, after = read(source), read(tmp_path / "new.csv")
    assert len(before) == len(after)
    shown = [r["Runtime metadata_completeness"] for r in after]
    assert shown[0] == "runtime_values_dumped" and after[0]["Runtime actual_seq_lengths_shape"] == "128"
    assert all(new[c] == old[c] for new, old in zip(after, before, strict=True) for c in old)
