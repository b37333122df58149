"""What needs an Ascend device: torch_npu's own profile, with the set-up of spec 4.1, read in the place of ours."""

import importlib.util

import pytest

torch = pytest.importorskip("torch")

from fuselab.repro import bench

pytestmark = [
    pytest.mark.npu,
    pytest.mark.skipif(importlib.util.find_spec("torch_npu") is None, reason="needs torch_npu and an Ascend device"),
]


def test_r40_r77_r82_profile_of_torch_npu(tmp_path):
    import torch_npu

    profiler = torch_npu.profiler
    config = profiler._ExperimentalConfig(
        export_type=[profiler.ExportType.Text, profiler.ExportType.Db],
        profiler_level=profiler.ProfilerLevel.Level2,
        msprof_tx=False,
        aic_metrics=profiler.AiCMetrics.AiCoreNone,
        l2_cache=False,
        op_attr=False,
        record_op_args=False,
    )
    x, y = (torch.randn(8, 16, device="npu") for _ in range(2))
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
        schedule=profiler.schedule(wait=0, warmup=0, active=10, repeat=1, skip_first=1),
        on_trace_ready=profiler.tensorboard_trace_handler(str(tmp_path / "profiling")),
        experimental_config=config,
    ) as running:
        for _ in range(bench.LOOPS):
            (x + y).abs()
            torch.npu.synchronize()
            running.step()
    steps = bench.step_sums(bench.newest(tmp_path / "profiling"))
    assert len(steps) == bench.LOOPS - bench.SKIPPED
    assert all(us > 0 for us in steps)
