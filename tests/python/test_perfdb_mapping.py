"""`fuselab db mapping`, and the mapping that a first import writes."""
import json

from perfdb_support import fuselab, shared


def test_d161_an_import_leaves_a_directory_that_answers(tmp_path):
    target = tmp_path / "A3/vllm_ascend/vllm0.18.0_torch2.9.0_cann8.5"
    fuselab("db", "import", str(shared("data/ascend/kernel_details_training_2023.csv")), "--database-path", str(target))
    text = (target / "op_mapping.yaml").read_text()
    assert 'version: "0.18.0"' in text and 'device: "A3"' in text and 'pytorch_version: "2.9.0"' in text
    answer = json.loads(fuselab("db", "query", str(target), "profiling.Cast", "--inputs", "4,1025", "--dtypes", "INT64", "--json").stdout)
    assert (answer["source"], answer["latency_us"]) == ("MEASURED", 3.14)
    assert fuselab("db", "mapping", "init", str(target), check=False).returncode == 1
    assert (target / "op_mapping.yaml").read_text() == text


def test_init_needs_kernels(tmp_path):
    out = fuselab("db", "mapping", "init", str(tmp_path), check=False)
    assert out.returncode == 1 and "[db.no_database]" in out.stderr


def test_d154_diff_of_the_real_mappings():
    old, new = (shared(f"data/op_mapping/{n}.yaml") for n in ("vllm0.13.0_torch2.8.0_cann8.3", "vllm0.18.0_torch2.9.0_cann8.5"))
    changes = json.loads(fuselab("db", "mapping", "diff", str(old), str(new), "--json").stdout)["changes"]
    added, removed = (sum(c.startswith(s) for c in changes) for s in "+-")
    assert added - removed == 147 - 113 and any(c.startswith("~ aten.mm.default: ") for c in changes)
    assert json.loads(fuselab("db", "mapping", "diff", str(new), str(new), "--json").stdout)["changes"] == []
