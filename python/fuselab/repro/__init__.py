"""The lab of single kernels: what benchmark.py is made of (spec.py, fragment.py, debug.py) and what runs it (runner.py)."""
from .compiled import CompiledKernel, kernels_of
from .spec import BenchmarkSpec, PrecisionContext, generate_benchmark_script

__all__ = ["BenchmarkSpec", "CompiledKernel", "PrecisionContext", "generate_benchmark_script", "kernels_of"]
