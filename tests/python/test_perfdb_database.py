"""fuselab.perfdb: the same answers as rows have, one by one and in batches."""
import csv
import threading

import numpy as np
import pytest

import fuselab
from fuselab.perfdb import SOURCES, Database
from perfdb_support import shared

H200 = "data/measured/NVIDIA_H200/sglang0.5.14"


@pytest.fixture(scope="module")
def h200():
    return Database(shared(H200))


def matmul_rows(limit=2000):
    with open(shared(H200) / "MatMul.csv", newline="") as f:
        return list(csv.DictReader(f))[:limit]


def test_one_lookup_by_shapes_tensors_and_text(h200):
    import torch

    row = next(r for r in matmul_rows() if r["Input Shapes"] == '"16,32;32,32"')
    want = float(row["Average Duration(us)"])
    by_shape = h200.query("aten.mm.default", [(16, 32), (32, 32)], "bf16")
    by_tensor = h200.query("aten.mm.default", [torch.empty(16, 32, dtype=torch.bfloat16), torch.empty(32, 32, dtype=torch.bfloat16)])
    by_text = h200.query("aten.mm.default", "16,32;32,32", "DT_BF16;DT_BF16")
    assert by_shape == by_tensor == by_text
    assert (by_shape["source"], by_shape["latency_us"], by_shape["interval"]) == ("MEASURED", want, (want, want))
    assert by_shape["anchors"][0].endswith(f"MatMul.csv:{2 + matmul_rows().index(row)}")


def test_a_miss_is_an_answer(h200):
    answer = h200.query("no.such.op", [(3, 4)], "f32")
    assert (answer["source"], answer["latency_us"], answer["reason"]) == ("MISS", None, "unmapped")


def test_batches_take_columns_and_give_numpy(h200):
    rows = matmul_rows()
    got = h200.batch(["aten.mm.default"] * len(rows), inputs=np.array([r["Input Shapes"] for r in rows]), dtypes="DT_BF16;DT_BF16")
    assert got["latency_us"].dtype == np.float64 and set(got["source"]) == {SOURCES.index("MEASURED")}
    np.testing.assert_array_equal(got["latency_us"], [float(r["Average Duration(us)"]) for r in rows])
    with pytest.raises(fuselab.Error, match="entries"):
        h200.batch(["aten.mm.default"] * 3, inputs=["1,2"] * 2)


def test_threads_share_one_database(h200):
    rows, results = matmul_rows(300), {}

    def work(name):
        results[name] = h200.batch(["aten.mm.default"] * len(rows), inputs=[r["Input Shapes"] for r in rows], dtypes="DT_BF16;DT_BF16")["latency_us"]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(np.array_equal(results[0], r) for r in results.values())


def test_no_database_is_an_error(tmp_path):
    with pytest.raises(fuselab.Error, match="op_mapping"):
        Database(tmp_path)
