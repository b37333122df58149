// One kernel on its own: launched on tensors, and judged against the fp64 reference and the operators one by one.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/inputs.h"
#include "fuselab/codegen/codegen.h"
#include "fuselab/core/tensor.h"
#include "fuselab/graph/graph.h"
#include "fuselab/jit/jit.h"
#include "fuselab/runtime/compiled.h"

namespace fuselab::cli {

/// Runs the kernel over outputs that are first filled with `poison`. Inputs in the order and with the strides of the fragment.
/// Throws Error("call.division_by_zero" | "call.index_range") as the kernel reports.
std::vector<Tensor> launch(const jit::Kernel& kernel, const codegen::Source& source, const Graph& fragment,
                           const std::vector<Tensor>& inputs, const Symbols& symbols, std::uint8_t poison);

struct KernelCheck {
  std::string kernel;
  std::vector<std::string> lines;   ///< the lines that tools parse, in the order of spec/repro
  std::vector<std::string> failed;  ///< outputs that failed
  std::vector<std::string> warnings;
  bool passed() const { return failed.empty(); }
};

/// How a kernel was made, as far as a judge must know.
struct CheckOptions {
  codegen::Options codegen;  ///< precision mode and exemptions
  bool read_cache = true;
  bool recompile = false;                            ///< also judge the fragment compiled anew, as path "precision"
  std::optional<codegen::Precision> recompile_mode;  ///< of that path; nothing: as it was made
};

/// A whole fragment as the one kernel of these texts, called through the runtime. Throws what compiling throws.
runtime::CompiledGraph artifact_graph(const Graph& fragment, const codegen::Source& source, const runtime::Options& options);

/// The verdict on a kernel's text: its results over two poison patterns, the fragment's fp64 value with its error bound, and the
/// fragment run operator by operator. `path` names the kernel's results in the lines ("artifact").
KernelCheck check_kernel(const Graph& fragment, const codegen::Source& source, const std::vector<Tensor>& inputs,
                         const Symbols& symbols, const std::string& path, const CheckOptions& options);

}  // namespace fuselab::cli
