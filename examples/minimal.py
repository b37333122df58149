"""The smallest fused kernel with its debug folder: (x + y).abs() on [8, 16].

    python examples/minimal.py
    python fuselab_debug/run_*/model__0_inference_0.0/autofused_*/benchmark.py --check
"""
import os
import pathlib

os.environ.setdefault("AUTOFUSE_DFX_FLAGS", "--codegen_compile_debug=true")

import torch

import fuselab


def main():
    model = torch.compile(lambda x, y: (x + y).abs(), backend="fuselab")
    x, y = torch.randn(8, 16), torch.randn(8, 16)
    result = model(x, y)
    print(f"fuselab {fuselab.__version__}: equal to eager: {torch.equal(result, (x + y).abs())}")
    run = max(pathlib.Path("fuselab_debug").glob("run_*"), key=lambda p: p.stat().st_mtime_ns)
    for path in sorted(run.rglob("*")):
        if path.is_file():
            print(path)


if __name__ == "__main__":
    main()
