"""`fuselab db query`: an exact lookup gives its row, and nothing that is not exactly the row is called measured."""
import csv
import json
import random
import re

import pytest

from perfdb_support import fuselab, shared

H200 = "data/measured/NVIDIA_H200/sglang0.5.14"
SLOTS = {"inputs": "Input Shapes", "dtypes": "Input Data Types", "formats": "Input Formats", "outputs": "Output Shapes",
         "output_dtypes": "Output Data Types", "output_formats": "Output Formats"}
KERNELS = ["MatMul", "ScaledMatMul", "BlockScaledMatMul", "FlashAttentionPrefill", "FlashAttentionDecode", "FusedMoe", "StaticQuant", "ComputeScale"]


def rows_of(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def lookup(kernel, row):
    context = {c: v for c, v in row.items() if v and (c == "EP Size" or (c.startswith("Runtime ") and c != "Runtime metadata_completeness"))}
    return {"op": kernel, **{k: row[c] for k, c in SLOTS.items()}, "context": context}


def ask(tmp_path, directory, queries, *args):
    (tmp_path / "lookups.jsonl").write_text("".join(json.dumps(q) + "\n" for q in queries))
    return json.loads(fuselab("db", "query", str(directory), "--file", str(tmp_path / "lookups.jsonl"), "--json", *args).stdout)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_measured_row_is_found(tmp_path, kernel):
    directory = shared(H200)
    rows = rows_of(directory / f"{kernel}.csv")
    answers = ask(tmp_path, directory, [lookup(kernel, r) for r in rows])
    wrong = [(r, a) for r, a in zip(rows, answers, strict=True)
             if a["source"] != "MEASURED" or a["latency_us"] != float(r["Average Duration(us)"])]
    assert not wrong, (len(wrong), wrong[:2])


@pytest.mark.parametrize("name", ["hcom_allReduce_", "hcom_allGather_", "hcom_reduceScatter_", "hcom_alltoall_"])
def test_every_collective_is_found(tmp_path, name):
    directory = shared(H200)
    rows = rows_of(directory.parent / f"nccl/v2.29.2/{name}.csv")
    op = {"hcom_allReduce_": "all_reduce", "hcom_allGather_": "all_gather", "hcom_reduceScatter_": "reduce_scatter",
          "hcom_alltoall_": "all_to_all"}[name]
    names = {"message_bytes": "message_bytes", "ranks": "num_devices", "dtype": "dtype", "tier": "topology_tier"}
    queries = [{"op": f"tensor_cast.{op}.default", "context": {k: r[c] for k, c in names.items()}} for r in rows]
    answers = ask(tmp_path, directory, queries)
    assert all(a["source"] == "MEASURED" and a["latency_us"] == float(r["Duration(us)"]) for r, a in zip(rows, answers, strict=True))


def spoiled(query, rng):
    """The query off by one dtype, format, rank or slot."""
    q = json.loads(json.dumps(query))
    slots = q["inputs"].strip('"').split(";")
    at = rng.randrange(len(slots))
    kind = rng.choice(["dtype", "format", "rank", "slot", "missing"])
    if kind == "dtype":
        words = q["dtypes"].split(";")
        words[at] = "DT_FLOAT16" if words[at] != "DT_FLOAT16" else "FLOAT"
        q["dtypes"] = ";".join(words)
    elif kind == "format":
        words = q["formats"].split(";")
        words[at] = "NCHW"
        q["formats"] = ";".join(words)
    elif kind == "rank":
        slots[at] = "1," + slots[at]
        q["inputs"] = ";".join(slots)
    elif kind == "slot":
        for key, word in (("inputs", "3,5"), ("dtypes", "DT_BF16"), ("formats", "ND")):
            q[key] = q[key].strip('"') + ";" + word
    else:
        for key in ("inputs", "dtypes", "formats"):
            words = q[key].strip('"').split(";")
            words[at] = "" if key == "inputs" else words[at]
            q[key] = ";".join(words)
    return q


@pytest.mark.parametrize("kernel", KERNELS)
def test_off_by_one_is_never_measured(tmp_path, kernel):
    directory = shared(H200)
    rng = random.Random(7)
    queries = [spoiled(lookup(kernel, r), rng) for r in rng.sample(rows_of(directory / f"{kernel}.csv"), 400)]
    measured = [q for q, a in zip(queries, ask(tmp_path, directory, queries), strict=True) if a["source"] == "MEASURED"]
    assert not measured, measured[:2]


MAPPING = """operator_mappings:
  "a.mm":
    kernel_type: MatMulV2
    alternate_kernel_types: [MatMulV3]
    tc_input_count: 2
  "a.view":
    zero_cost: true
  "a.expected":
    accepted_miss: "not in any profile"
  "a.norm_quant":
    composite: true
    sub_kernels: [RmsNorm, DynamicQuant]
  "a.mul":
    kernel_type: Mul
    query_mode: elementwise
"""
HEADER = [*SLOTS.values(), "Average Duration(us)", "Profiling Average Duration(us)", "Duration(us)"]


@pytest.fixture
def database(tmp_path):
    def write(name, *rows):
        with open(tmp_path / "db" / f"{name}.csv", "w", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(HEADER)
            writer.writerows(rows)

    (tmp_path / "db").mkdir()
    (tmp_path / "db/op_mapping.yaml").write_text(MAPPING)
    mm = lambda m, *us: [f'"{m},64;32,64"', "DT_BF16;DT_BF16", "ND;ND", f'"{m},32"', "DT_BF16", "ND", *us]  # noqa: E731
    write("MatMulV2", mm(1, "10", "", ""), mm(16, "14", "", ""), mm(40, "", "", "7"), mm(50, "0", "8", "9"), mm(60, "", "", ""))
    write("MatMulV3", mm(100, "21", "", ""), mm(16, "99", "", ""))
    write("RmsNorm", ['"8,64;64"', "DT_BF16;DT_BF16", "ND;ND", '"8,64"', "DT_BF16", "ND", "5", "", ""])
    write("DynamicQuant", ['"8,64;64"', "DT_BF16;DT_BF16", "ND;ND", '"8,64"', "INT8", "ND", "7", "", ""])
    write("Mul", ['"4,64"', "FLOAT", "ND", '"4,64"', "FLOAT", "ND", "3", "", ""],
          ['"64,4096"', "DT_BF16", "ND", '"64,4096"', "DT_BF16", "ND", "9", "", ""])
    return tmp_path / "db"


def one(database, op, inputs, dtypes, *args):
    return json.loads(fuselab("db", "query", str(database), op, "--inputs", inputs, "--dtypes", dtypes, "--json", *args).stdout)


def mm(database, m, *args):
    return one(database, "a.mm", f"{m},64;32,64", "DT_BF16;DT_BF16", *args)


def test_an_exact_row_beats_a_padded_one(database):
    """Padding once answered M=16 with the row of M=1."""
    assert (mm(database, 16)["source"], mm(database, 16)["latency_us"]) == ("MEASURED", 14)


def test_one_row_of_a_matrix_is_no_tile(database):
    assert mm(database, 64)["source"] != "MEASURED"
    assert mm(database, 32)["source"] in ("MISS", "APPROXIMATED", "INTERPOLATED") and mm(database, 32).get("latency_us") != 10


def test_d36_latency_columns_in_order(database):
    assert mm(database, 40)["latency_us"] == 7 and mm(database, 50)["latency_us"] == 8


def test_d35_a_row_without_time_is_invisible(database):
    assert mm(database, 60)["source"] != "MEASURED"


def test_d58_alternates_after_the_kernel(database):
    assert mm(database, 100)["latency_us"] == 21 and mm(database, 16)["latency_us"] == 14


def test_transposed_weight_is_the_same_kernel(database):
    answer = one(database, "a.mm", "16,64;64,32", "DT_BF16;DT_BF16")
    assert answer["source"] == "MEASURED" and answer["method"] == "transpose"


def test_fp16_is_not_bf16(database):
    assert one(database, "a.mm", "16,64;32,64", "DT_FLOAT16;DT_FLOAT16")["source"] == "MISS"


def test_composites_add_up(database):
    answer = one(database, "a.norm_quant", "8,64;64", "DT_BF16;DT_BF16")
    assert (answer["source"], answer["latency_us"]) == ("MEASURED", 12)


def test_zero_cost_and_accepted_miss(database):
    assert one(database, "a.view", "8,64", "DT_BF16")["source"] == "ZERO_COST"
    assert one(database, "a.expected", "8,64", "DT_BF16") == {"source": "MISS", "reason": "accepted_miss: not in any profile", "accepted": True}
    assert one(database, "b.unknown", "8", "INT8")["reason"] == "unmapped"


def test_elementwise_exact_beats_the_earlier_row(database):
    answer = one(database, "a.mul", "64,4096", "DT_BF16", "--outputs", "64,4096", "--output-dtypes", "DT_BF16")
    assert (answer["source"], answer["latency_us"]) == ("MEASURED", 9)


def test_strict_exits_1(database):
    assert fuselab("db", "query", str(database), "b.unknown", "--strict", check=False).returncode == 1
    assert fuselab("db", "query", str(database), "a.expected", "--strict", check=False).returncode == 0


@pytest.mark.parametrize("name", ["vllm0.18.0_torch2.9.0_cann8.5", "vllm0.13.0_torch2.8.0_cann8.3"])
def test_d55_real_mappings_load_and_dispatch(tmp_path, name):
    yaml = shared(f"data/op_mapping/{name}.yaml").read_text()
    (tmp_path / "op_mapping.yaml").write_text(yaml)
    body = yaml[yaml.index("\noperator_mappings:"):yaml.index("\ntorch_npu_reference:")]
    operators = re.findall(r'^  "?([\w.]+)"?:', body, re.M)
    assert len(operators) == {"vllm0.18.0_torch2.9.0_cann8.5": 147, "vllm0.13.0_torch2.8.0_cann8.3": 113}[name]
    answers = ask(tmp_path, tmp_path, [{"op": op, "inputs": "8,64", "dtypes": "DT_BF16"} for op in operators])
    assert {a.get("reason") for a in answers} <= {None, "csv_not_found", "unsupported_decomposer: give the kernels one by one"} | {
        a["reason"] for a in answers if a.get("reason", "").startswith("sub_kernel_miss: ")}


def test_broken_mappings_end_in_one_error(tmp_path):
    laughs = ["a0: &a0 [x, x]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60)), "operator_mappings: {x: {kernel_type: *a59}}"]
    for text in ("a: [", "operator_mappings: 3", "operator_mappings: {x: {kernel_type: [1, 2]}}", "- 1",
                 "operator_mappings: {x: {tc_input_count: many}}", "\n".join(laughs)):
        (tmp_path / "op_mapping.yaml").write_text(text)
        out = fuselab("db", "query", str(tmp_path), "x", check=False)
        assert out.returncode == 1 and "[db.bad_mapping]" in out.stderr, text


def test_between_rows_is_interpolated_with_an_interval(tmp_path):
    """Two of three rows of a curve, each hidden one asked for: most truths lie in the stated 90 % intervals."""
    directory = shared(H200)
    (tmp_path / "db").mkdir()
    rows = [r for r in rows_of(directory / "MatMul.csv") if r["Input Shapes"].endswith((';4096,4096"', ';2048,4096"', ';4096,2048"', ';8192,4096"'))]
    assert len(rows) > 200
    hidden = rows[1:-1:3]
    kept = [r for r in rows if r not in hidden]
    with open(tmp_path / "db/MatMul.csv", "w", newline="") as f:
        writer = csv.DictWriter(f, rows[0].keys())
        writer.writeheader()
        writer.writerows(kept)
    for name in ("op_mapping.yaml", "provenance.yaml"):
        text = (directory / name).read_text().replace("communication_data_ref", "# communication_data_ref")
        (tmp_path / "db" / name).write_text(text)
    queries = [{"op": "aten.mm.default", "inputs": r["Input Shapes"], "dtypes": r["Input Data Types"]} for r in hidden]
    answers = ask(tmp_path, tmp_path / "db", queries)
    assert {a["source"] for a in answers} <= {"INTERPOLATED", "EXTRAPOLATED"}
    truths = [float(r["Average Duration(us)"]) for r in hidden]
    inside = sum(a["interval"][0] <= t <= a["interval"][1] for a, t in zip(answers, truths, strict=True))
    errors = sorted(abs(a["latency_us"] - t) / t for a, t in zip(answers, truths, strict=True))
    assert inside / len(truths) > 0.75 and errors[len(errors) // 2] < 0.15
    assert all(a["anchors"] and a["method"] for a in answers)


def test_far_outside_is_refused(tmp_path):
    answers = ask(tmp_path, shared(H200), [{"op": "aten.mm.default", "inputs": f"{m},4096;4096,4096", "dtypes": "DT_BF16;DT_BF16"}
                                           for m in (100_000_000, 3)])
    assert answers[0]["source"] == "MISS" and answers[0]["reason"].startswith("out_of_range: ")
    assert answers[1]["source"] in ("INTERPOLATED", "MEASURED")


def test_what_the_rows_need_must_be_said(tmp_path):
    query = {"op": "measured.attention_decode", "inputs": "3,8,128;3000,8,128;3000,8,128", "dtypes": "DT_BF16;DT_BF16;DT_BF16"}
    answer = ask(tmp_path, shared(H200), [query])[0]
    assert answer["source"] == "MISS" and answer["reason"].startswith(("semantic_context_missing", "ambiguous"))


def test_a_runtime_value_may_hold_semicolons(tmp_path):
    with open(tmp_path / "Attention.csv", "w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow([*SLOTS.values(), "Average Duration(us)", "Runtime actual_seq_lengths_values", "Runtime num_heads"])
        for lengths, heads, us in (("1;2", 4, "5"), ("1;3", 4, "6"), ("1;2", 8, "7")):
            writer.writerow(['"8,64"', "DT_BF16", "ND", '"8,64"', "DT_BF16", "ND", us, lengths, heads])
    (tmp_path / "op_mapping.yaml").write_text("operator_mappings: {}\n")
    queries = [{"op": "Attention", "inputs": "8,64", "dtypes": "DT_BF16", "context": {"actual_seq_lengths_values": lengths, "num_heads": heads}}
               for lengths, heads in (("1;2", 4), ("1;3", 4), ("1;2", 8))]
    assert [a.get("latency_us") for a in ask(tmp_path, tmp_path, queries)] == [5, 6, 7]
