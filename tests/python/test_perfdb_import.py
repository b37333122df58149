"""`fuselab db import`: what it makes of recorded profiles equals what pandas computes from the same files."""
import csv
import gzip
import json
import re

import numpy as np
import pytest

from perfdb_support import fuselab, shared

pd = pytest.importorskip("pandas")

SLOTS = ["Input Shapes", "Input Data Types", "Input Formats", "Output Shapes", "Output Data Types", "Output Formats"]
V5 = ["Device_id", "Model ID", "Task ID", "Stream ID", "Op Name", "OP Type", "OP State", "Task Type", "Task Start Time(us)",
      "Task Duration(us)", "Task Wait Time(us)", "Block Dim", "Mix Block Dim", "HF32 Eligible", *SLOTS, "Context ID", "aicore_time(us)",
      "aic_total_cycles"]
V6 = ["Step Id", "Device_id", "Model ID", "Task ID", "Stream ID", "Name", "Type", "OP State", "Accelerator Core", "Start Time(us)", "Duration(us)",
      "Wait Time(us)", "Block Num", "Mix Block Num", "HF32 Eligible", *SLOTS, "Context ID", "aicore_time(us)", "aic_total_cycles"]
MATMUL = ['"136,7168;7168,3584"', "DT_BF16;DT_BF16", "ND;ND", '"136,3584"', "DT_BF16", "ND"]


def write_profile(path, columns, rows, ends="\n", bom=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="", encoding="utf-8-sig" if bom else "utf-8") as f:
        writer = csv.writer(f, lineterminator=ends)
        writer.writerow(columns)
        for row in rows:
            writer.writerow([row.get(c, "") for c in columns])
    return path


def row(duration, slots=MATMUL, type_="MatMulV2", **more):
    names = {"Type": type_, "OP Type": type_, "Name": type_ + "_1", "Op Name": type_ + "_1", "OP State": "dynamic", "Accelerator Core": "AI_CORE",
             "Task Type": "AI_CORE", "Duration(us)": duration, "Task Duration(us)": duration, "Start Time(us)": "1736413971558972.912\t",
             **dict(zip(SLOTS, slots))}
    return {**names, **more}


def imported(directory, name):
    return pd.read_csv(directory / name, dtype=str, keep_default_na=False)


def run_import(*args, **kwargs):
    return fuselab("db", "import", *map(str, args), **kwargs)


def test_d13_real_profile_equals_pandas(tmp_path):
    source = shared("data/ascend/kernel_details_training_2023.csv")
    report = json.loads(run_import(source, "--database-path", tmp_path / "db", "--json").stdout)
    frame = pd.read_csv(source, dtype=str, keep_default_na=False)
    strip = frame[SLOTS].apply(lambda c: c.str.strip().str.strip('"'))
    frame = frame[~frame["Type"].str.startswith("hcom_") & ~((strip["Input Shapes"] == "N/A") & (strip["Output Shapes"] == "N/A"))].copy()
    frame["us"] = pd.to_numeric(frame["Duration(us)"], errors="coerce")
    frame = frame[np.isfinite(frame["us"]) & (frame["us"] > 0)]
    assert report["used"] == len(frame)
    canonical = strip.loc[frame.index].apply(lambda c: c.str.replace(r";+$", "", regex=True).str.replace("FORMAT_", "").str.replace("DT_", ""))
    seen = 0
    for (kind, *_), rows in frame.groupby([frame["Type"], *[canonical[c] for c in SLOTS]], sort=False):
        table = imported(tmp_path / "db", f"{kind}.csv")
        first = rows.iloc[0]
        ours = table[np.logical_and.reduce([table[c] == first[c] for c in SLOTS])]
        assert len(ours) == 1, (kind, first[SLOTS].tolist())
        seen += 1
        us = rows["us"].to_numpy()
        for column, want in (("Average", us.mean()), ("Median", np.median(us)), ("Std", us.std())):
            assert float(ours.iloc[0][f"Profiling {column} Duration(us)"]) == pytest.approx(want, abs=6e-7, rel=1e-12)
        cycles = pd.to_numeric(rows["aiv_total_cycles"], errors="coerce").dropna()
        cell = ours.iloc[0]["Profiling Average aiv_total_cycles"]
        assert cell == "" if cycles.empty else float(cell) == pytest.approx(cycles.mean(), abs=6e-7)
    assert seen == sum(f["rows"] for f in report["files"])


def test_d70_level_0_is_refused(tmp_path):
    out = run_import(shared("data/ascend/kernel_details_level0.csv"), "--database-path", tmp_path / "db", check=False)
    assert out.returncode == 1 and "level 0" in out.stderr and not (tmp_path / "db").exists()


@pytest.mark.parametrize("name, columns", [("op_summary_20260101.csv", V5), ("kernel_details.csv", V6)])
@pytest.mark.parametrize("ends, bom", [("\n", False), ("\r\n", True)])
def test_d70_header_variants(tmp_path, name, columns, ends, bom):
    write_profile(tmp_path / "run" / name, columns, [row("10.5"), row("11.5"), row("3", type_="RmsNorm")], ends, bom)
    run_import(tmp_path / "run", "--database-path", tmp_path / "db")
    table = imported(tmp_path / "db", "MatMulV2.csv")
    assert table["Profiling Average Duration(us)"].tolist() == ["11.000000"] and table["Accelerator Core"].tolist() == ["AI_CORE"]
    assert table["Input Shapes"].tolist() == [MATMUL[0]]  # as read, quotes included (D-75)


def test_d72_dtypes_are_never_averaged_together(tmp_path):
    wide = [MATMUL[0], "FLOAT;FLOAT", "ND;ND", MATMUL[3], "FLOAT", "ND"]
    write_profile(tmp_path / "kernel_details.csv", V6, [row("10"), row("30", wide)])
    run_import(tmp_path, "--database-path", tmp_path / "db")
    assert imported(tmp_path / "db", "MatMulV2.csv")["Profiling Average Duration(us)"].tolist() == ["10.000000", "30.000000"]


def test_spellings_of_one_signature_are_one_row(tmp_path):
    other = ["136,7168;7168,3584", "BF16;BF16", "FORMAT_ND;FORMAT_ND", '"136,3584;"', "DT_BF16", "ND"]
    write_profile(tmp_path / "kernel_details.csv", V6, [row("10"), row("20", other)])
    run_import(tmp_path, "--database-path", tmp_path / "db")
    assert imported(tmp_path / "db", "MatMulV2.csv")["Profiling Average Duration(us)"].tolist() == ["15.000000"]


def test_durations_that_are_none_are_counted_not_averaged(tmp_path):
    bad = ["N/A", "", "nan", "inf", "-3", "0", "abc"]
    write_profile(tmp_path / "kernel_details.csv", V6, [row("10"), *[row(b) for b in bad]])
    report = json.loads(run_import(tmp_path, "--database-path", tmp_path / "db", "--json").stdout)
    assert report["bad_duration"] == len(bad) and report["used"] == 1
    assert imported(tmp_path / "db", "MatMulV2.csv")["Profiling Average Duration(us)"].tolist() == ["10.000000"]


def test_collectives_and_their_twins_count_once(tmp_path):
    rows = [row("5", type_="hcom_allReduce_", Name="hcom_allReduce__1"), row("5", type_="hcom_allReduce_", Name="AivKernel_1"), row("7")]
    write_profile(tmp_path / "kernel_details.csv", V6, rows)
    report = json.loads(run_import(tmp_path, "--database-path", tmp_path / "db", "--json").stdout)
    assert (report["communication"], report["communication_twins"], report["used"]) == (1, 1, 1)


def test_d71_type_names(tmp_path):
    rows = [row("1", type_="split_qkv_rmsnorm_rope_kernel_0"), row("2", type_="muls_add_kernel_1"), row("3", type_="A/B"), row("4", type_="A_B")]
    write_profile(tmp_path / "kernel_details.csv", V6, rows)
    run_import(tmp_path, "--database-path", tmp_path / "db")
    names = sorted(p.name for p in (tmp_path / "db").glob("*.csv"))
    assert "split_qkv_rmsnorm_rope_kernel.csv" in names and "muls_add_kernel.csv" in names and len(names) == 4  # A/B and A_B stay apart


def test_a_bundle_with_both_files_is_read_once(tmp_path):
    write_profile(tmp_path / "run/ASCEND_PROFILER_OUTPUT/kernel_details.csv", V6, [row("10")])
    write_profile(tmp_path / "run/PROF_1/mindstudio_profiler_output/op_summary_1.csv", V5, [row("10")])
    report = json.loads(run_import(tmp_path / "run", "--database-path", tmp_path / "db", "--json").stdout)
    assert report["used"] == 1 and "op_summary_1.csv" in report["skipped"][0]["path"]


def test_gz_is_the_same(tmp_path):
    plain = write_profile(tmp_path / "a/kernel_details.csv", V6, [row(str(i + 1)) for i in range(5)])
    (tmp_path / "b").mkdir()
    (tmp_path / "b/kernel_details.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    run_import(tmp_path / "a", "--database-path", tmp_path / "da")
    run_import(tmp_path / "b", "--database-path", tmp_path / "db")
    assert (tmp_path / "da/MatMulV2.csv").read_bytes() == (tmp_path / "db/MatMulV2.csv").read_bytes()
    (tmp_path / "b/kernel_details.csv.gz").write_bytes(gzip.compress(plain.read_bytes())[:-9])
    out = run_import(tmp_path / "b", "--database-path", tmp_path / "dc", check=False)
    assert out.returncode in (1, 2) and "cut off" in out.stderr and not (tmp_path / "dc").exists()


def test_import_again_keeps_what_it_does_not_make(tmp_path):
    write_profile(tmp_path / "kernel_details.csv", V6, [row("10")])
    run_import(tmp_path / "kernel_details.csv", "--database-path", tmp_path / "db")
    table = imported(tmp_path / "db", "MatMulV2.csv")
    table.insert(8, "Average Duration(us)", ["9.250000"])
    table["Remark"] = ["kept, with a comma"]
    generated = {c: "" for c in table.columns} | dict(zip(SLOTS, ['"1,7168;7168,3584"', *MATMUL[1:3], '"1,3584"', *MATMUL[4:]]))
    pd.concat([table, pd.DataFrame([generated])]).to_csv(tmp_path / "db/MatMulV2.csv", index=False, lineterminator="\r\n")
    write_profile(tmp_path / "kernel_details.csv", V6, [row("20"), row("1", type_="Cast")])
    run_import(tmp_path / "kernel_details.csv", "--database-path", tmp_path / "db")
    again = imported(tmp_path / "db", "MatMulV2.csv")
    assert again["Average Duration(us)"].tolist() == ["9.250000", ""] and again["Remark"].tolist() == ["kept, with a comma", ""]
    assert again["Profiling Average Duration(us)"].tolist() == ["20.000000", ""]
    assert (tmp_path / "db/MatMulV2.csv").read_bytes().count(b"\r\n") == 3
    assert re.search(r"replaced:\n.*MatMulV2.csv.*10\.000000", (tmp_path / "db/provenance.yaml").read_text(), re.S)


def test_threads_do_not_change_a_byte(tmp_path):
    random = np.random.default_rng(5)
    rows = [row(f"{random.uniform(1, 100):.3f}", [f'"{random.integers(1, 40)},64;64,32"', *MATMUL[1:]],
                **{"aicore_time(us)": f"{random.uniform(0, 9):.3f}"}) for _ in range(60_000)]
    write_profile(tmp_path / "kernel_details.csv", V6, rows)
    for threads in (1, 2, 5):
        run_import(tmp_path / "kernel_details.csv", "--database-path", tmp_path / f"db{threads}", "--threads", threads)
    first = (tmp_path / "db1/MatMulV2.csv").read_bytes()
    assert first == (tmp_path / "db2/MatMulV2.csv").read_bytes() == (tmp_path / "db5/MatMulV2.csv").read_bytes()


def test_d40_fia_shapes(tmp_path):
    source = pd.read_csv(shared("data/ascend/FusedInferAttentionScore.csv"), dtype=str, keep_default_na=False).drop_duplicates(SLOTS)
    rows = [row("58.2", [r[c] for c in SLOTS], type_="FusedInferAttentionScore") for _, r in source.iterrows()]
    write_profile(tmp_path / "bundle/kernel_details.csv", V6, rows)
    run_import(tmp_path / "bundle", "--database-path", tmp_path / "db")
    table = imported(tmp_path / "db", "FusedInferAttentionScore.csv")
    slots = source["Input Shapes"].str.strip('"').str.split(";")
    assert table["Runtime actual_seq_lengths_kv_shape"].tolist() == [s[6] for s in slots]
    assert table["Runtime block_table_shape"].tolist() == [s[14] for s in slots]
    assert set(table["Runtime metadata_completeness"]) == {"profile_shapes_only"} and set(table["Runtime source_profile"]) == {"bundle"}


@pytest.mark.parametrize("change, code", [
    (lambda t: t.replace("Duration(us)", "Dauer"), "db.missing_column"), (lambda t: t + "1,2\n", "csv.malformed"),
    (lambda t: t + '"open', "csv.malformed"), (lambda t: "", "db.no_header"),
    (lambda t: t.replace("Step Id", "Type", 1), "db.duplicate_column"),
    (lambda t: "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n", "db.lfs_pointer"),
    (lambda t: t.encode("utf-16"), "csv.malformed")])
def test_d144_broken_profiles_end_in_one_error(tmp_path, change, code):
    path = write_profile(tmp_path / "kernel_details.csv", V6, [row("10")])
    broken = change(path.read_text())
    path.write_bytes(broken if isinstance(broken, bytes) else broken.encode())
    out = run_import(path, "--database-path", tmp_path / "db", check=False)
    assert out.returncode == 1 and f"[{code}]" in out.stderr and not (tmp_path / "db").exists(), out.stderr


def test_d167_stacks_are_not_mixed(tmp_path):
    write_profile(tmp_path / "run/kernel_details.csv", V6, [row("10")])
    (tmp_path / "run/profiler_info_0.json").write_text(json.dumps({"cann_version": "9.0.1", "torch_npu_version": "2.9.0"}))
    where = ["--root", tmp_path, "--device", "A3", "--vllm-version", "v0.18.0", "--torch-version", "2.9.0+cpu", "--cann-version", "8.5"]
    out = run_import(tmp_path / "run", *where, check=False)
    assert out.returncode == 1 and "[db.stack_mismatch]" in out.stderr
    run_import(tmp_path / "run", *where, "--allow-stack-mismatch")
    target = tmp_path / "A3/vllm_ascend/vllm0.18.0_torch2.9.0_cann8.5"
    assert (target / "MatMulV2.csv").exists() and "9.0.1" in (target / "provenance.yaml").read_text()


def test_our_own_profile_keeps_hashes_apart(tmp_path):
    kind = "autofused_elemwise_add_mul"
    rows = [row(str(us), type_=kind, Name=f"{kind}_{h}") for us, h in ((1, "aaaa"), (3, "aaaa"), (9, "bbbb"))]
    write_profile(tmp_path / "kernel_details.csv", V6, rows)
    run_import(tmp_path, "--database-path", tmp_path / "db")
    table = imported(tmp_path / "db", "autofused_elemwise_add_mul.csv")
    assert table["Runtime kernel_hash"].tolist() == ["aaaa", "bbbb"]
    assert table["Profiling Average Duration(us)"].tolist() == ["2.000000", "9.000000"]
