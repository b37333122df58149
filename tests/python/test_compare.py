"""Comparing files and sets of tensors: expected figures are NumPy's, the files are written by NumPy, PyTorch and safetensors."""

import json
import os
import pickle
import struct
import subprocess
import zipfile

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import fuselab
from fuselab import numerics
from program import find_program

PROGRAM = find_program()


def rows(found):
    return {t["name"]: t for t in json.loads(found.json())["tensors"]}


def spread(x):
    """Percentiles by nearest rank."""
    x = np.sort(x)
    rank = lambda share: x[max(1, int(np.ceil(share * len(x)))) - 1]
    return {"max": x[-1], "mean": x.mean(), "p50": rank(0.5), "p99": rank(0.99)}


@pytest.mark.parametrize("n", [1, 17, 65536, 65537, 300_001])
def test_figures_are_numpys(n):
    rng = np.random.default_rng(n)
    a = rng.standard_normal(n).astype(np.float32)
    b = (a * (1 + rng.standard_normal(n) * 1e-6)).astype(np.float32)
    row = rows(numerics.compare({"x": a}, {"x": b}))["x"]
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    error = np.abs(wide_b - wide_a)
    expected = {"absolute": error, "relative": error / np.abs(wide_a), "ulp": error / np.spacing(np.abs(a)).astype(np.float64)}
    for kind, values in expected.items():
        want = spread(values)
        assert row[kind]["max"] == pytest.approx(want["max"], rel=1e-12)
        assert row[kind]["mean"] == pytest.approx(want["mean"], rel=1e-12)
        for p in ("p50", "p99"):  # a percentile is the low edge of a bin of 1/64 octave
            assert want[p] * (1 - 1 / 64) <= row[kind][p] <= want[p]
    assert row["differing"] == np.count_nonzero(a != b)
    assert row["relative_rms"] == pytest.approx(np.sqrt((error**2).sum() / (wide_a**2).sum()), rel=1e-12)
    worst = int(expected["ulp"].argmax())
    assert row["worst"]["index"] == f"[{worst}]"
    one = numerics.cann_metrics(a, b)
    assert row["cann"]["CosineSim"] == pytest.approx(one["CosineSim"], rel=1e-12)
    assert row["cann"]["KLDiv"] == pytest.approx(one["KLDiv"], rel=1e-6, abs=1e-15)
    assert row["cann"]["RMSE"] == pytest.approx(np.sqrt((error**2).mean()), rel=1e-9)


def cann_by_numpy(a, b):
    """The three metrics from their formulas."""
    eps = np.finfo(np.float32).eps
    p, q = (np.maximum((v - v.min()) / (v.max() - v.min()), eps) for v in (a, b))
    p, q = p / p.sum(), q / q.sum()
    return {
        "CosineSim": (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()),
        "RelEuclid": np.sqrt(((a - b) ** 2).sum() / (b * b).sum()),
        "KLDiv": (p * np.log(p / q)).sum(),
    }


@pytest.mark.parametrize("noise", [1e-3, 0.5, 30.0])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_metrics_and_counts_are_numpys(dtype, noise):
    """Elements near to and far from each other, equal ones, zeros, subnormals; a limit."""
    rng = np.random.default_rng(3)
    n = 70_001
    a = rng.standard_normal(n).astype(dtype)
    b = (a * (1 + noise * rng.standard_normal(n))).astype(dtype)
    b[1000:5000] = a[1000:5000]
    a[7000:7100] = 0
    b[7050:7150] = 0
    a[9000:9100] = np.finfo(dtype).smallest_subnormal * np.arange(100)
    row = rows(numerics.compare({"x": a}, {"x": b}, rtol=0.1, atol=0.01))["x"]
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    error = np.abs(wide_b - wide_a)
    beyond = np.count_nonzero(error > 0.01 + 0.1 * np.abs(wide_a))
    assert row["reason"] == (f"{beyond} of {n} elements lie outside atol + rtol |a|" if beyond else "")
    assert row["differing"] == np.count_nonzero(a != b)
    ulp = error / np.spacing(np.abs(a)).astype(np.float64)
    assert float(row["ulp"]["max"]) == ulp.max() and row["worst"]["index"] == f"[{int(ulp.argmax())}]"
    for name, want in cann_by_numpy(wide_a, wide_b).items():
        assert row["cann"][name] == pytest.approx(want, rel=1e-9, abs=1e-14), name


def test_equal_tensors_have_the_metrics_of_equality():
    a = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    a[5] = np.nan
    row = rows(numerics.compare({"x": a}, {"x": a.copy()}))["x"]
    assert row["cann"]["CosineSim"] == 1 and row["cann"]["KLDiv"] == row["cann"]["RMSE"] == 0
    assert row["differing"] == 0 and row["passed"]
    assert rows(numerics.compare({"x": a * 0}, {"x": a * 0}))["x"]["passed"]


def test_the_same_report_for_any_number_of_threads(tmp_path):
    torch.manual_seed(1)
    a = torch.randn(500_000)
    np.save(tmp_path / "a.npy", a.numpy())
    np.save(tmp_path / "b.npy", (a * 1.0001).numpy())
    threads = torch.get_num_threads()
    texts = []
    for n in (1, 2):
        torch.set_num_threads(n)
        texts.append(numerics.compare_files(str(tmp_path / "a.npy"), str(tmp_path / "b.npy")).json())
    torch.set_num_threads(threads)
    assert texts[0] == texts[1]


def test_every_format_holds_the_same_tensors(tmp_path):
    from safetensors.torch import save_file

    torch.manual_seed(0)
    tensors = {
        "h": torch.randn(3, 5).half(),
        "b": torch.randn(7).bfloat16(),
        "f": torch.randn(4, 6),
        "d": torch.randn(2, 1, 3).double(),
        "i": torch.randint(-(2**62), 2**62, (5,)),
        "s": torch.randint(-100, 100, (3,), dtype=torch.int16),
        "u": torch.randint(0, 255, (4,), dtype=torch.uint8),
        "o": torch.tensor([True, False]),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
    }
    save_file(tensors, tmp_path / "t.safetensors")
    torch.save(tensors, tmp_path / "t.pt")
    torch.save({k: torch.nn.Parameter(v) if v.is_floating_point() else v for k, v in tensors.items()}, tmp_path / "parameters.pt")
    numpy = {k: v.view(torch.int16).numpy().view("V2") if v.dtype == torch.bfloat16 else v.numpy() for k, v in tensors.items()}
    np.savez(tmp_path / "t.npz", **numpy)
    np.savez_compressed(tmp_path / "packed.npz", **numpy)
    (tmp_path / "folder").mkdir()
    for k, v in numpy.items():
        np.save(tmp_path / "folder" / f"{k}.npy", v)
    numerics.save(tmp_path / "ours.safetensors", tensors)
    names = ["t.safetensors", "t.pt", "parameters.pt", "t.npz", "packed.npz", "folder", "ours.safetensors"]
    for other in names[1:]:
        found = numerics.compare_files(str(tmp_path / names[0]), str(tmp_path / other), exact=True)
        summary = json.loads(found.json())
        assert found.passed and summary["equal"] == summary["compared"] == len(tensors), (other, found.text())
    changed = dict(tensors, i=tensors["i"].clone())
    changed["i"][3] += 1  # past 2^53: the doubles are equal
    torch.save(changed, tmp_path / "changed.pt")
    found = numerics.compare_files(str(tmp_path / names[0]), str(tmp_path / "changed.pt"))
    assert not found.passed and rows(found)["i"]["differing"] == 1


def test_a_view_in_a_pt_file_is_read_through_its_strides(tmp_path):
    base = torch.arange(24.0).reshape(4, 6)
    torch.save({"m": {"t": base.t()[1:, ::2], "list": [base[2], (base,)]}}, tmp_path / "views.pt")
    np.savez(tmp_path / "plain.npz", **{"m.t": base.t()[1:, ::2].numpy(), "m.list.0": base[2].numpy(), "m.list.1.0": base.numpy()})
    assert numerics.compare_files(str(tmp_path / "plain.npz"), str(tmp_path / "views.pt"), exact=True).passed


def test_a_state_dict_of_a_module(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    torch.save(model.state_dict(), tmp_path / "a.pt")
    with torch.no_grad():
        model[0].bias[2] += 1
    torch.save(model.state_dict(), tmp_path / "b.pt")
    found = rows(numerics.compare_files(str(tmp_path / "a.pt"), str(tmp_path / "b.pt")))
    assert set(found) == set(model.state_dict())
    assert [k for k, v in found.items() if v["differing"]] == ["0.bias"]


def test_nothing_in_a_pickle_is_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "was_run"),)

    with zipfile.ZipFile(tmp_path / "evil.pt", "w") as z:
        z.writestr("evil/data.pkl", pickle.dumps({"x": Evil()}, protocol=2))
    found = numerics.compare_files(str(tmp_path / "evil.pt"), str(tmp_path / "evil.pt"))
    assert json.loads(found.json())["tensors"] == []
    assert not (tmp_path / "was_run").exists()


def test_nonfinite_values():
    a = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    assert numerics.compare({"x": a}, {"x": a.copy()}, exact=True).passed
    for at, value in ((0, 1.0), (1, -np.inf), (3, np.nan)):
        b = a.copy()
        b[at] = value
        found = numerics.compare({"x": a}, {"x": b}, rtol=1e9, atol=1e9, max_ulp=1e300)
        assert not found.passed and rows(found)["x"]["misaligned"] == 1
        assert rows(found)["x"]["worst"]["index"] == f"[{at}]"


def test_limits():
    a = np.ones(100, np.float32)
    b = a.copy()
    b[7] += np.float32(2**-22)  # 2 ULP
    assert numerics.compare({"x": a}, {"x": b}, max_ulp=2).passed
    assert not numerics.compare({"x": a}, {"x": b}, max_ulp=1.5).passed
    assert not numerics.compare({"x": a}, {"x": b}, exact=True).passed
    assert numerics.compare({"x": a}, {"x": b}, rtol=2.5e-7).passed
    assert not numerics.compare({"x": a}, {"x": b}, rtol=2e-7).passed
    assert not numerics.compare({"x": a}, {"x": b}, rtol=1, max_ulp=1).passed  # every limit must hold
    assert numerics.compare({"x": a}, {"x": b}, atol=2.5e-7).passed
    with pytest.raises(RuntimeError) as e:
        numerics.compare({"x": a}, {"x": b}, atol=-1)
    assert e.value.code == "options.bad_value"
    zero = np.zeros(4, np.float32)
    assert not numerics.compare({"x": zero}, {"x": -zero}, exact=True).passed
    assert numerics.compare({"x": zero}, {"x": -zero}).passed


def test_an_outlier_that_the_metrics_do_not_see_is_pointed_out():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((100, 1000)).astype(np.float32)
    b = a * np.float32(1.000001)
    b[3, 5] += 1
    row = rows(numerics.compare({"x": a}, {"x": b}))["x"]
    assert row["passed"] and any("[3,5]" in note for note in row["notes"])


def test_dtypes_and_sizes_that_differ():
    a = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    row = rows(numerics.compare({"x": a}, {"x": a.bfloat16()}))["x"]
    assert row["passed"] and row["ulp"]["max"] <= 0.5 and row["dtype"] == ["f32", "bf16"]
    found = numerics.compare({"x": a}, {"x": a[:3]})
    assert not found.passed and rows(found)["x"]["status"] == "mismatch"
    with pytest.raises(ValueError, match="built differently: y"):
        numerics.compare({"x": a}, {"x": a, "y": a})


def test_values_too_far_apart_to_subtract():
    a = np.array([-1.7e308, 1.7e308, 3.0])
    assert numerics.cann_metrics(a, a.copy())["KLDiv"] == 0
    assert numerics.compare({"x": a}, {"x": a.copy()}).passed


# ---- broken files: one error, nothing else ------------------------------------------------------------------------------


def safetensors_bytes(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
BROKEN = {
    "header past the end": safetensors_bytes({"x": GOOD}, bytes(8), length=5000),
    "no JSON": safetensors_bytes(b"{ broken", bytes(8)),
    "offsets past the end": safetensors_bytes({"x": {**GOOD, "data_offsets": [0, 80]}}, bytes(8)),
    "offsets backwards": safetensors_bytes({"x": {**GOOD, "data_offsets": [8, 0]}}, bytes(8)),
    "sizes and bytes differ": safetensors_bytes({"x": {**GOOD, "shape": [3]}}, bytes(8)),
    "overflowing sizes": safetensors_bytes({"x": {**GOOD, "shape": [2**62, 2**62]}}, bytes(8)),
    "negative size": safetensors_bytes({"x": {**GOOD, "shape": [-2]}}, bytes(8)),
    "no dtype": safetensors_bytes({"x": {"shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
    "an entry that is a number": safetensors_bytes({"x": 3}, bytes(8)),
    "npy cut": b"\x93NUMPY\x01\x00v\x00{'descr'",
    "zip cut": b"PK\x03\x04" + bytes(40),
    "text": b"hello\n",
    "empty": b"",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files(tmp_path, kind):
    path = tmp_path / "broken"
    path.write_bytes(BROKEN[kind])
    with pytest.raises(fuselab.Error) as e:
        numerics.compare_files(str(path), str(path))
    assert e.value.code in {"safetensors.malformed", "npy.malformed", "zip.malformed", "file.unknown_format"}
    assert str(path) in str(e.value)


PICKLES = {
    "endless nesting": b"\x80\x02" + b")" + b"\x85" * 300_000 + b".",
    "a list in itself": b"\x80\x02]q\x00h\x00a.",
    "a billion laughs": b"\x80\x02]q\x00" + b"".join(b"](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(60)) + b".",
    "empty stack": b"\x80\x02a.",
    "unknown operation": b"\x80\x02\xff.",
    "no end": b"\x80\x02}",
    "text past the end": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "never remembered": b"\x80\x02h\x07.",
}


@pytest.mark.parametrize("kind", PICKLES)
def test_broken_pickles(tmp_path, kind):
    path = tmp_path / "broken.pt"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("broken/data.pkl", PICKLES[kind])
    with pytest.raises(fuselab.Error) as e:
        numerics.compare_files(str(path), str(path))
    assert e.value.code == "pickle.malformed"


def test_a_tensor_outside_its_storage_is_refused(tmp_path):
    torch.save({"x": torch.arange(8.0)}, tmp_path / "whole.pt")
    with zipfile.ZipFile(tmp_path / "whole.pt") as old, zipfile.ZipFile(tmp_path / "short.pt", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data[:16] if name.endswith("data/0") else data)
    found = numerics.compare_files(str(tmp_path / "short.pt"), str(tmp_path / "whole.pt"))
    assert not found.passed and "outside its storage" in rows(found)["x"]["reason"]


def test_a_packed_member_with_a_wrong_checksum(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=np.arange(1000.0))
    data = bytearray((tmp_path / "a.npz").read_bytes())
    with zipfile.ZipFile(tmp_path / "a.npz") as z:
        info = z.getinfo("x.npy")
    data[info.header_offset + 60 + info.compress_size // 2] ^= 0xFF
    (tmp_path / "b.npz").write_bytes(data)
    found = numerics.compare_files(str(tmp_path / "a.npz"), str(tmp_path / "b.npz"))
    assert not found.passed and rows(found)["x"]["status"] == "unreadable"


def test_a_foreign_dtype_is_named_not_fatal(tmp_path):
    data = safetensors_bytes({"q": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}, "x": {**GOOD, "data_offsets": [8, 16]}}, bytes(16))
    (tmp_path / "q.safetensors").write_bytes(data)
    found = rows(numerics.compare_files(str(tmp_path / "q.safetensors"), str(tmp_path / "q.safetensors")))
    assert found["q"]["status"] == "unreadable" and "F8_E4M3" in found["q"]["reason"] and found["x"]["passed"]


def test_saving_is_whole_or_not_at_all(tmp_path):
    numerics.save(tmp_path / "x.safetensors", {"x": torch.ones(3)})
    with pytest.raises(fuselab.Error) as e:
        numerics.save(tmp_path / "no" / "x.safetensors", {"x": torch.ones(3)})
    assert e.value.code == "file.write"
    assert os.listdir(tmp_path) == ["x.safetensors"]


# ---- the program --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(PROGRAM is None, reason="the program is not built (set FUSELAB_PROGRAM)")
def test_program(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(5, np.float32), y=np.ones(3))
    np.savez(tmp_path / "b.npz", x=np.ones(5, np.float32), y=np.array([1, 1, 1.5]))
    run = lambda *args: subprocess.run([PROGRAM, "compare", *map(str, args)], capture_output=True, text=True, cwd=tmp_path, check=False)
    same = run("a.npz", "a.npz", "--exact")
    assert same.returncode == 0 and "2 tensors: 2 compared, 2 equal, 0 failed" in same.stdout
    page = run("a.npz", "b.npz", "--html", "report.html")
    assert page.returncode == 1 and "worst at [2]: 1 against 1.5" in page.stdout
    assert page.stdout.index("\ny ") < page.stdout.index("\nx ")  # worst first
    assert "<svg" in (tmp_path / "report.html").read_text() and "http" not in (tmp_path / "report.html").read_text()
    document = json.loads(run("a.npz", "b.npz", "--json").stdout)
    assert document["failed"] == 1 and document["tensors"][0]["name"] == "y"
    missing = run("a.npz", "none.npz")
    assert missing.returncode == 2 and "none.npz" in missing.stderr
    assert run("a.npz", "b.npz", "--max-ulp", "-1").returncode == 2
