// What a kernel's script is made of. Only make_spec() (spec.cpp) looks at compiled graphs; the writer (script.h) reads nothing
// but a BenchmarkSpec, so a script can be written from one made by hand.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuselab/core/dtype.h"
#include "fuselab/core/expr.h"
#include "fuselab/core/random.h"
#include "fuselab/runtime/compiled.h"

namespace fuselab::repro {

/// Values of symbolic sizes.
using Symbols = std::map<std::string, std::int64_t>;

/// The texts of one kernel and what they were made for.
struct Artifacts {
  std::string name, target, wrapper, tiling_def, host_impl, device_impl;
  std::vector<std::string> sizes;            ///< codegen::Source::sizes
  int vector_core_num = 0, ai_core_num = 0;  ///< recorded; no text depends on them
  std::string hash;
};

/// A tensor to be made: layout in elements, safe range of integers.
struct Buffer {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape, stride;
  IntRange range;
  std::string value;  ///< Python text of the number a 0-d input must hold (a size that enters as data); empty: random
};

/// What can be restored of the front end's graph. Absent: the script can only profile.
struct PrecisionContext {
  std::string eager_fn_code;              ///< Python text of `def eager_fn(...)`
  std::vector<Buffer> fx_input_meta;      ///< its parameters, in order
  std::vector<std::string> output_names;  ///< its results, in order: those of the kernel
};

/// A positional argument of the kernel's call: a tensor (profile_buffers, by name) or a size.
struct CallArgument {
  std::string name;
  bool is_size = false;
};

struct BenchmarkSpec {
  std::string kernel_name;
  std::vector<std::string> node_summary;  ///< one line per node: operator, result, front-end node
  Artifacts artifacts;
  std::string fragment, kernel_ir;
  std::vector<CallArgument> call_arguments;
  std::map<std::string, std::int64_t> size_hints;  ///< symbol -> the size it had when the script was made
  std::vector<Buffer> profile_buffers;             ///< tensor inputs of the kernel, in order
  std::optional<PrecisionContext> precision;
  std::string no_precision_reason;
  bool is_static = true;
  std::string precision_mode = "block";
  std::vector<std::pair<std::string, std::string>> options;  ///< of the original compile: name -> Python text
  std::map<std::string, std::string> environment;            ///< the snapshot
  std::string fuselab_version, torch_version;
};

/// The texts of a source with their wrapper, for the machine this runs on.
Artifacts make_artifacts(const codegen::Source& source);
/// artifacts.json: the texts, and what a judge must know of how they were made (precision mode, exemptions).
/// `buffers`: the range that each integer input is safe in is kept as "int_ranges"; none: the file says nothing about them.
std::string artifacts_json(const Artifacts& artifacts, const Symbols& size_hints, const codegen::Options& options,
                           const std::vector<Buffer>& buffers = {});
/// Integers that a kernel takes whatever their place: where it divides, nothing may be zero.
IntRange safe_range(const codegen::Generated& generated);

/// The fragment with a size parameter for every symbol that no input has as a dimension: inside its model such a size is known
/// from other values (`x: f32[B*T, 64]`), alone it must be given.
Graph standalone(const Graph& fragment);

/// Everything but the precision context, for distinct kernel `k` of a compiled graph. Sizes without a hint count as 16.
BenchmarkSpec make_spec(const runtime::CompiledGraph& graph, std::size_t k, const Symbols& hints);

/// The variables a script must restore: FUSELAB_*, AUTOFUSE_*, TORCHINDUCTOR_* of this process, without cache folders, the
/// switches of debug folder and kernel checks, and the backend's own variable.
std::map<std::string, std::string> environment_snapshot();

}  // namespace fuselab::repro
