"""`fuselab db lint`: each rule finds its fault, and good directories have none (D-03, D-22, D-23, D-33, D-39, D-48, D-52, D-133, D-171, D-178)."""
import json
import shutil

import pytest

from perfdb_support import fuselab, shared

HEAD = "OP State,Accelerator Core,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,Average Duration(us)\n"
GOOD = 'dynamic,AI_CORE,"""1,32;32,32""",DT_BF16;DT_BF16,ND;ND,"""1,32""",DT_BF16,ND,3.5\n'
MAPPING = "operator_mappings:\n  aten.mm.default: {kernel_type: MatMul}\n"
COMM = "message_bytes,num_devices,dtype,topology_tier,Duration(us),bandwidth_gbps\n"


def lint(directory):
    out = fuselab("db", "lint", str(directory), "--json", check=False)
    report = json.loads(out.stdout)
    assert out.returncode == (1 if report["errors"] else 0)
    return report


def found(directory, level=None):
    return {(f["level"], f["rule"]) for f in lint(directory)["findings"] if level in (None, f["level"])}


def make(directory, rows=GOOD, head=HEAD, mapping=MAPPING, name="MatMul.csv"):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(head + rows)
    if mapping is not None:
        (directory / "op_mapping.yaml").write_text(mapping)
    return directory


def test_a_good_directory(tmp_path):
    report = lint(make(tmp_path / "db"))
    assert report["findings"] == [] and (report["files"], report["rows"], report["measured"]) == (1, 1, 1)


@pytest.mark.parametrize("path", ["sglang0.5.14", "nccl/v2.29.2"])
def test_d03_measured_data_has_no_errors(path):
    assert found(shared(f"data/measured/NVIDIA_H200/{path}"), "error") == set()


@pytest.mark.parametrize("name", ["vllm0.13.0_torch2.8.0_cann8.3", "vllm0.18.0_torch2.9.0_cann8.5"])
def test_d55_real_mappings_have_no_unknown_fields(tmp_path, name):
    source = shared(f"data/op_mapping/{name}.yaml")
    directory = make(tmp_path / "db", mapping=source.read_text())
    assert ("warning", "mapping") not in found(directory)


CASES = {
    "duplicate_signature": GOOD + GOOD.replace("DT_BF16", "BF16"),
    "slot_alignment": GOOD.replace("DT_BF16;DT_BF16,ND;ND", "DT_BF16,ND;ND"),
    "bad_shape": GOOD.replace("32,32", "32,x"),
    "bad_latency": GOOD + GOOD.replace("1,32", "2,32").replace("3.5", "fast"),
}


@pytest.mark.parametrize("rule", CASES)
def test_d33_d178_faults_of_rows(tmp_path, rule):
    assert found(make(tmp_path / "db", CASES[rule]), "error") == {("error", rule)}


@pytest.mark.parametrize("cell", ['""', "0", ""])
def test_d171_generated_rows_need_the_name(tmp_path, cell):
    rows = GOOD.replace("3.5", cell)
    assert found(make(tmp_path / "db", rows), "error") == {("error", "generated_name")}
    assert found(make(tmp_path / "db_staging", rows), "error") == set()


def test_empty_slots_and_regimes_are_no_faults(tmp_path):
    fia = ('dynamic,MIX_AIC,"""1,2;1,2;;3;""",DT_BF16;DT_BF16;DT_UNDEFINED;INT64;DT_UNDEFINED,ND;ND;NULL;ND;NULL,'
           '"""1,2;""",DT_BF16;FLOAT,ND;ND,{},{}\n')
    head = HEAD.replace("\n", ",Runtime avg_seq_len\n")
    assert lint(make(tmp_path / "db", fia.format("1.5", "10") + fia.format("2.5", "20"), head))["findings"] == []


def test_words_that_are_not_known_are_warnings(tmp_path):
    directory = make(tmp_path / "db", GOOD.replace("DT_BF16,ND,3.5", "DT_BF61,DN,3.5"))
    assert found(directory) == {("warning", "unknown_dtype"), ("warning", "unknown_format")}


def test_d39_completeness_words(tmp_path):
    head, row = HEAD.replace("\n", ",Runtime metadata_completeness\n"), GOOD.replace("\n", ",{}\n")
    assert found(make(tmp_path / "a", row.format("runtime_values_dumped"), head)) == set()
    assert found(make(tmp_path / "b", row.format("full"), head)) == {("warning", "completeness")}


def test_columns(tmp_path):
    assert found(make(tmp_path / "a", head=HEAD.replace("Output Formats", "Formats")), "error") == {("error", "db.missing_column")}
    assert found(make(tmp_path / "b", head=HEAD.replace("Average Duration(us)", "Time")), "error") >= {("error", "no_latency_column")}


def test_d22_d23_mapping(tmp_path):
    assert found(make(tmp_path / "none", mapping=None)) == {("error", "no_mapping")}
    two = make(tmp_path / "two")
    shutil.copy(two / "op_mapping.yaml", two / "op_mapping_old.yaml")
    assert ("error", "two_mappings") in found(two)
    assert found(make(tmp_path / "ref", mapping='communication_data_ref: "../hccl/v8.5/"\n' + MAPPING)) == {("error", "communication_data_ref")}
    assert found(make(tmp_path / "broken", mapping="a: [\n"), "error") == {("error", "db.bad_mapping")}
    other = make(tmp_path / "other", mapping=MAPPING.replace("MatMul", "Nothing"))
    assert found(other) == {("warning", "missing_file"), ("warning", "unreferenced_file")}
    assert found(make(tmp_path / "word", mapping=MAPPING.replace("{", "{colour: red, "))) == {("warning", "mapping")}


@pytest.mark.parametrize("rows, want", [
    ("256,2,DT_BF16,1,30.827839,0.008304\n", set()),
    ("256,2,DT_BF16,1,30.827839,0.008304\n256,2,DT_BF16,1,31,0.008258\n", {("error", "ambiguous_communication")}),
    ("256,2,DT_BF16,1,30.827839,0.008304\n256,2,DT_BF16,2,31,0.008258\n", {("warning", "needs_tier")}),
    ("256,2,DT_BF16,1,30.827839,0.008304\n256,2,INT8,1,31,0.008258\n", {("warning", "needs_dtype")}),
    ("256,2,DT_BF16,1,30.827839,8.304\n", {("error", "bandwidth")}),
    ("2.5,2,DT_BF16,1,30.8,\n", {("error", "bad_number")}),
])
def test_d48_d52_communication(tmp_path, rows, want):
    assert found(make(tmp_path / "v8.5", rows, COMM, None, "hcom_allReduce_.csv")) == want


def test_d52_rows_without_a_tier(tmp_path):
    rows, head = "256,2,30\n256,2,40\n", "message_bytes,num_devices,Duration(us)\n"
    assert found(make(tmp_path / "v8.5", rows, head, None, "hcom_allReduce_.csv")) == {("error", "ambiguous_communication")}


def test_d133_names_of_collectives(tmp_path):
    rows = "256,2,DT_BF16,1,30.827839,0.008304\n"
    assert found(make(tmp_path / "v8.5", rows, COMM, None, "hcom_AllReduce_.csv")) == {("warning", "communication_name")}


def test_raw_profiles_and_left_overs(tmp_path):
    directory = make(tmp_path / "db")
    (directory / "PROF_0001").mkdir()
    assert found(directory) == {("error", "raw_profile")}
    assert ("error", "raw_profile") in found(make(tmp_path / "PROF_2" / "db"))


def test_damaged_files_are_findings(tmp_path):
    directory = make(tmp_path / "db", 'x,"unclosed\n')
    assert found(directory, "error") == {("error", "csv.malformed")}
    (directory / "MatMul.csv").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    assert found(directory, "error") == {("error", "db.lfs_pointer")}
    assert fuselab("db", "lint", str(tmp_path / "nowhere"), check=False).returncode == 1


def test_many_findings_are_summed_up(tmp_path):
    findings = lint(make(tmp_path / "db", GOOD * 50))["findings"]
    assert len(findings) == 11 and "49 in all" in findings[-1]["text"]
