"""--bench: what is timed, that nothing is cached, outputs before and after, the spread, and profiles that others recorded."""

import json
import os
import re

import pytest

torch = pytest.importorskip("torch")

import fuselab
from fuselab import _core
from fuselab.repro import bench


@pytest.fixture(scope="module")
def script(minimal):
    (kernel,) = minimal.kernels()
    return kernel / "benchmark.py"


def lines_of(done):
    assert done.code == 0, done.out + done.err
    return done.out.splitlines()


def test_the_lines_below_the_table(lab, script):
    lines = lines_of(lab.run(script, "--bench"))[16:]
    number = r"-?(\d+\.\d\d|inf)"
    assert re.fullmatch(
        rf"spread: {number} x \+- {number} \(99\.9 %, 10 paired steps\); "
        r"(faster than eager|slower than eager|AMBIGUOUS: (the ratio is inside the noise|the control differs from itself))",
        lines[0],
    )
    assert re.fullmatch(rf"control: graph mode against itself {number} x \+- {number}; .*", lines[1])
    assert re.fullmatch(rf"artifact: mean {number} us, {number} x \+- {number}( \(AMBIGUOUS\))?", lines[2])
    assert lines[3] == "outputs: right before and after the timing"
    assert re.fullmatch(r"profiler: \d+ ns per launch", lines[4])


def test_a_kernel_against_itself(lab, script):
    """The control is the kernel against itself: 1.00 within the printed spread, which is what AMBIGUOUS says. By the spread's meaning one
    run in a thousand is outside; three in a row are not."""
    for _ in range(3):
        document = json.loads(lab.run(script, "--bench", "--json").out)["bench"]
        found = _core.bench_verdict(document["graph_us"], document["control_us"])
        assert found["ambiguous"] == (abs(found["ratio"] - 1) <= max(found["spread"], 0.01))
        if found["ambiguous"]:
            assert "AMBIGUOUS, as it must be" in "".join(_core.bench_verdict([1.0], [2.0], [1.0])["lines"])
            return
    raise AssertionError(f"a kernel differs from itself: {document}")


def test_case_83_reference_kernels_102_steps_see_new_inputs(script):
    """An answer kept from an earlier step is wrong for this one's inputs."""
    x, seen = torch.zeros(4), {"a": [], "b": []}
    order = []

    def path(name):
        order.append(name)
        seen[name].append(x.tolist())
        return x.clone()

    spans, last = bench.by_turns({n: (lambda n=n: path(n)) for n in seen}, x.fill_)
    assert len(spans["a"]) == len(spans["b"]) == bench.LOOPS - bench.SKIPPED
    assert seen["a"] == seen["b"]  # the same inputs for both
    timed = seen["a"][1::2]
    assert [v[0] for v in timed] == list(range(bench.LOOPS))  # others in each step
    assert all(before != now for before, now in zip(seen["a"][::2], timed))  # and others than just before
    assert order[:8] == ["b", "b", "a", "a", "a", "a", "b", "b"]  # both orders
    assert last["a"].tolist() == timed[-1]


def test_case_83_flashinfer_21_a_kept_answer_is_found(lab, script, monkeypatch):
    """Results are checked after the last timed call, on that call's inputs."""
    kept = {}

    def cheat(scope, mode):
        def run(*inputs):
            if "answer" not in kept:
                kept["answer"] = scope["eager_fn"](*inputs)
            return kept["answer"]

        return run

    monkeypatch.setattr(bench, "compiled_fragment", cheat)
    done = lab.run(script, "--bench")
    assert done.code == 1
    (line,) = [line for line in done.out.splitlines() if line.startswith("outputs: ")]
    assert line.startswith("outputs: FAILED after the timing: output:abs precision FAILED")


def test_case_81_triton_2306_tritonbench_519_warm_up_and_sweep_are_not_timed(monkeypatch):
    """The first step is not kept, each timed call follows one of its own, and the caches are swept before the clock is read."""
    log = []
    clock = iter(range(10**6))

    def read_clock():
        log.append("clock")
        return next(clock)

    monkeypatch.setattr(bench._core, "profile_clock", read_clock)
    monkeypatch.setattr(bench._core, "evict_caches", lambda: log.append("sweep"))
    spans, _ = bench.by_turns({"a": lambda: log.append("call")}, lambda step: log.append("refill"), cold=True)
    one = ["refill", "call", "refill", "sweep", "clock", "call", "clock"]
    assert log == one * bench.LOOPS
    assert len(spans["a"]) == bench.LOOPS - 1
    assert spans["a"][0] == (2, 3)  # the first step's readings, 0 and 1, are gone


def test_case_84_pytorch_140970_phases_are_told_apart():
    """What fusing, code generation, compiling, loading and the first run took; none is counted in another."""
    made = fuselab.compile("graph g(x: f32[7]) {\n  y = exp(x)\n  return y\n}\n")
    made(torch.ones(7))
    spent = made.explain()["timing_ms"]
    phases = ["simplify", "fuse", "codegen", "compile", "load"]
    assert {*phases, "first_run", "total"} <= set(spent)
    assert all(v >= 0 for v in spent.values())
    assert sum(spent[p] for p in phases) <= spent["total"] * 1.0001
    assert spent["first_run"] > 0


def test_a_wrong_result_is_found_before(lab, script, monkeypatch):
    monkeypatch.setattr(bench, "compiled_fragment", lambda scope, mode: lambda *a: [t + 1 for t in scope["eager_fn"](*a)])
    done = lab.run(script, "--bench")
    assert done.code == 1
    assert "outputs: FAILED before the timing: output:abs precision FAILED" in done.out


def test_a_wrong_artifact_is_found(minimal, script):
    done = minimal.run(minimal.edited(script, "(x0_0 + x1_1)", "(x0_0 - x1_1)"), "--bench")
    assert done.code == 1
    assert "outputs: FAILED before the timing: output:abs artifact FAILED" in done.out


def test_given_inputs_move_and_come_back(minimal, script):
    """A file's data is used in every step, moved in memory; the same number gives the same values, and restore the first ones."""
    import runpy
    from types import SimpleNamespace

    from fuselab.repro.kernel import Kernel

    scope = runpy.run_path(str(script), run_name="script")
    x = torch.arange(128, dtype=torch.float32).reshape(8, 16)
    file = minimal.tmp / "given.safetensors"
    _core.write_safetensors(str(file), ["x0"], [x])
    kernel = Kernel(scope, SimpleNamespace(e2e=False, seed=3, inputs=str(file)))
    before = {name: t.clone() for name, t in kernel.tensors.items()}
    kernel.refill(1)
    one = {name: t.clone() for name, t in kernel.tensors.items()}
    assert torch.equal(one["x0"].flatten().sort().values, x.flatten()) and not torch.equal(one["x0"], x)
    kernel.refill(2)
    assert all(not torch.equal(one[n], t) for n, t in kernel.tensors.items())
    kernel.refill(1)
    assert all(torch.equal(one[n], t) for n, t in kernel.tensors.items())
    kernel.restore()
    assert all(torch.equal(before[n], t) for n, t in kernel.tensors.items())


def test_cold(lab, minimal, script):
    document = json.loads(lab.run(script, "--bench", "--cold", "--json").out)["bench"]
    assert document["cold"] and len(document["graph_us"]) == 10
    assert lab.run(script, "--cold").code == 2  # it goes with --bench


# ---- profiles that others recorded ----------------------------------------------------------------------------------------

IDS = "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)"
OPERANDS = "Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID"
TODAY = f"{IDS},Block Num,Mix Block Num,HF32 Eligible,{OPERANDS}"
EARLIER = f"{IDS},Block Dim,Mix Block Dim,HF32 Eligible,{OPERANDS}".replace("Device_id,", "")


def recorded(folder, header, durations, stamp):
    """What torch_npu leaves: a folder per run, `durations[step]` a list of kernels; communication has no state and no duration."""
    place = folder / f"host_{stamp}_ascend_pt/ASCEND_PROFILER_OUTPUT"
    place.mkdir(parents=True)
    rows, start = [header], 1796078528258512.296
    for step, kernels in durations.items():
        for i, us in enumerate(kernels):
            device = "0," if "Device_id" in header else ""
            rows.append(f'{step},{device}4294967295,{i},2,autofused_k,Vector,static,AI_VECTOR_CORE,"{start:.3f}\t",{us},0.5,40,0,NO,'
                        '"""8,16;8,16""",FLOAT;FLOAT,ND;ND,"""8,16""",FLOAT,ND,N/A')  # fmt: skip
            start += us + 1
        rows.append(f'{step},{"0," if "Device_id" in header else ""}4294967295,9,3,hcom_allReduce,N/A,N/A,HCCL,"{start:.3f}\t",N/A,N/A,'
                    'N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A')  # fmt: skip
    (place / "kernel_details.csv").write_text("\n".join(rows) + "\n")
    os.utime(place / "kernel_details.csv", (stamp, stamp))
    return place


def test_a_recorded_npu_profile_in_place_of_ours(lab, script):
    """R-80 to R-86: the newest one is read, durations are summed per step; the header of today and the one before."""
    recorded(lab.tmp / "bench_eager_prof", EARLIER, {1: [99.0]}, 1000)  # older
    recorded(lab.tmp / "bench_eager_prof", EARLIER, {s: [2.0, 1.5, 2.5] for s in range(1, 11)}, 2000)
    newest = recorded(lab.tmp / "bench_compiled_prof", TODAY, {s: [2.5 + s / 100] for s in range(1, 11)}, 2000)
    lines = lines_of(lab.run(script, "--bench", "--recorded"))
    assert lines[4] == "  1    |               2.51 |               6.00 |  2.39 x"
    assert lines[15] == " Avg   |               2.56 |               6.00 |  2.35 x"
    assert "faster than eager" in lines[16]
    assert str(newest.relative_to(lab.tmp)) in lines[17]
    assert len(list((lab.tmp / "bench_eager_prof").iterdir())) == 2  # nothing was run


def test_a_recorded_profile_without_its_columns(lab, script):
    recorded(lab.tmp / "bench_eager_prof", TODAY, {1: [2.0]}, 2000)
    done = lab.run(script, "--bench", "--recorded")
    assert done.code == 1
    assert "bench_compiled_prof has no *_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv" in done.err
    assert "'Step Id' and 'Duration(us)'" in done.err and "docs/repro.md#no-kernel_details" in done.err
    place = recorded(lab.tmp / "bench_compiled_prof", TODAY, {1: [2.0]}, 2000)
    (place / "kernel_details.csv").write_text("Name,Duration(us)\na,1\n")
    done = lab.run(script, "--bench", "--recorded")
    assert done.code == 1
    assert "no column 'Step Id'" in done.err


# ---- an entry of the kernel itself ----------------------------------------------------------------------------------------


def test_r13_kernel_benchmark_entry(lab):
    """benchmark(nodes, file_path): the script of a kernel for which no debug folder was asked; with a precision context it checks."""
    from fuselab.repro import PrecisionContext, kernels_of

    made = fuselab.compile("graph g(x: f32[4, 8], y: f32[4, 8]) {\n  a = add(x, y)\n  b = abs(a)\n  return b\n}\n")
    (kernel,) = kernels_of(made)
    assert kernel.name.startswith("autofused_elemwise_add_abs_")
    path = lab.tmp / "made" / "benchmark.py"
    assert kernel.benchmark(file_path=path) is False
    assert lab.run(path).code == 0
    assert lab.run(path, "--check").code == 2
    context = PrecisionContext(
        "def eager_fn(x0, x1):\n    return (torch.abs(x0 + x1),)\n",
        [{"name": n, "dtype": "f32", "shape": [4, 8], "stride": [8, 1]} for n in ("x0", "x1")],
        ["b"],
    )
    assert kernel.benchmark(["abs of a sum"], path, context) is True
    assert "    abs of a sum\n" in path.read_text()
    done = lab.run(path, "--check")
    assert done.code == 0, done.out + done.err


def test_r13_of_a_traced_function():
    import numpy as np

    from fuselab.repro import kernels_of

    f = fuselab.compile(lambda x: fuselab.ops.exp(x) + 1)
    f(np.ones((3, 4), np.float32))
    f(np.ones((5,), np.float32))
    assert len(kernels_of(f)) == 2
