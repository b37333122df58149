// benchmark.py: the script of one kernel. Reads nothing but the spec.
#pragma once
#include <string>

#include "fuselab/repro/spec.h"

namespace fuselab::repro {

struct Script {
  std::string text;            ///< a Python program
  bool has_precision = false;  ///< it defines eager_fn, and therefore takes --check and --bench
};

/// Deterministic: the same spec gives the same text.
Script generate_benchmark_script(const BenchmarkSpec& spec);

/// A Python literal of a string; long texts as raw triple-quoted ones, which can be read and edited.
std::string python_text(const std::string& s);

}  // namespace fuselab::repro
