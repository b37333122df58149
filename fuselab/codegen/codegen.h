// Kernel IR -> source text; and the whole way from a fragment to its texts.
#pragma once
#include <string>
#include <vector>

#include "fuselab/codegen/source.h"
#include "fuselab/graph/graph.h"
#include "fuselab/kernel/bounds.h"

namespace fuselab::codegen {

enum class Precision : std::uint8_t { block, eager };

struct Options {
  Precision precision = Precision::block;
  std::vector<std::string> keep_dtype;  ///< R9: table operator names (or "all") left in their own dtype, rounding after each
  std::vector<std::string> skip_passes;
  int opt_level = 1;  ///< 0: no simplify
};

struct Generated {
  Source source;
  std::string kernel_ir;                                   ///< text form after all passes
  std::vector<std::pair<std::string, std::string>> dumps;  ///< pass name -> IR text, for each pass that changed something
  std::vector<kernel::Bound> bounds;                       ///< edited IR: must hold for the sizes of each call
};

/// Throws Error("options.bad_value") for a name that is no pass one can skip, listing those that are: the graph passes and the
/// kernel pass `simplify`. improve_precision and one_value are the contract.
void check_skip_passes(const std::vector<std::string>& names);

/// fragment graph -> lower -> improve_precision -> one_value -> simplify -> schedule -> text. Deterministic.
/// Throws Error("kernel.unsupported") naming the node when the fragment has no kernel form.
Generated generate(const Graph& fragment, const std::string& kernel_name, const Options& options);
/// From (possibly edited) kernel IR text (`--e2e`, `fuselab compile kernel.ir`). With the fragment that it will be called for:
/// throws Error("kernel.invalid") when its buffers are not the fragment's inputs and outputs, in number, order and dtype, and
/// Error("kernel.bounds") when an access leaves them; what depends on symbolic sizes is left to the caller in `bounds`.
Generated generate_from_ir(const std::string& ir_text, const std::string& file, const Graph* fragment = nullptr);

}  // namespace fuselab::codegen
