#include "cli/launch.h"

#include <cstdlib>
#include <memory>

#include "cli/common.h"
#include "fuselab/core/error.h"
#include "fuselab/core/hash.h"
#include "fuselab/graph/bind.h"
#include "fuselab/numerics/verdict.h"
#include "fuselab/reference/reference.h"
#include "fuselab/runtime/program.h"

namespace fuselab::cli {
namespace {

constexpr std::size_t kAlignment = 64;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
std::unique_ptr<void, Free> aligned(std::int64_t bytes) {
  const std::size_t size =
      (static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)) + kAlignment - 1) / kAlignment * kAlignment;
  std::unique_ptr<void, Free> out(std::aligned_alloc(kAlignment, size));
  if (!out) fail("runtime.out_of_memory", "{} bytes of work space are not to be had.", size);
  return out;
}

std::vector<std::int64_t> evaluated(const std::vector<Expr>& list, const Symbols& symbols) {
  std::vector<std::int64_t> out;
  for (const Expr& e : list) out.push_back(e.eval(symbols));
  return out;
}

}  // namespace

std::vector<Tensor> launch(const jit::Kernel& kernel, const codegen::Source& source, const Graph& fragment,
                           const std::vector<Tensor>& inputs, const Symbols& symbols, std::uint8_t poison) {
  std::vector<void*> buffers;
  std::vector<Tensor> outputs;
  for (const Tensor& t : inputs) buffers.push_back(t.data());
  for (ValueId v : fragment.outputs) {
    const Type& type = fragment.values[v].type;
    outputs.push_back(Tensor::strided(type.dtype, evaluated(type.sizes, symbols), evaluated(type.strides, symbols)));
    numerics::fill_poison(outputs.back(), poison);
    buffers.push_back(outputs.back().data());
  }
  std::vector<std::int64_t> sizes;
  for (const std::string& text : source.sizes) sizes.push_back(Expr::parse(text).eval(symbols));
  const auto tiling = aligned(kernel.tiling_bytes);
  kernel.tile(sizes.data(), 1, tiling.get());
  const auto& head = *static_cast<const codegen::TilingHead*>(tiling.get());
  const auto scratch = aligned(head.scratch_bytes), shared = aligned(head.shared_bytes);
  for (std::int64_t phase = 0; phase < head.phases; ++phase) {
    const std::int64_t status = kernel.run(buffers.data(), tiling.get(), phase, 0, head.units[phase],
                                           static_cast<char*>(scratch.get()), static_cast<char*>(shared.get()));
    if (status == codegen::kDivisionByZero) fail("call.division_by_zero", "{}: an integer is divided by zero.", source.name);
    if (status == codegen::kIndexOutOfRange) fail("call.index_range", "{}: an index is out of range.", source.name);
  }
  return outputs;
}

runtime::CompiledGraph artifact_graph(const Graph& fragment, const codegen::Source& source, const runtime::Options& options) {
  codegen::Generated made;
  made.source = source;
  made.source.hash = hash_hex(source.text());
  return {fragment, runtime::one_kernel_plan(fragment, source.name), {std::move(made)}, options};
}

KernelCheck check_kernel(const Graph& fragment, const codegen::Source& source, const std::vector<Tensor>& inputs,
                         const Symbols& symbols, const std::string& path, const CheckOptions& options) {
  KernelCheck check;
  check.kernel = source.name;
  jit::Options jit_options;
  jit_options.read_cache = options.read_cache;
  const jit::Kernel kernel = jit::load(source, jit::Target::host(), jit_options);
  runtime::Options unfused_options;
  unfused_options.fuse.enable = false;
  unfused_options.jit.read_cache = options.read_cache;
  unfused_options.codegen = options.codegen;
  const std::vector<std::int64_t> size_args = size_arguments(fragment, symbols);
  const runtime::CompiledGraph unfused(fragment, unfused_options);
  const std::vector<Tensor> expected = unfused(inputs, size_args);
  const auto fp64 = [&](codegen::Precision mode) {
    reference::Options o;
    if (mode == codegen::Precision::eager) o.rounding = reference::Rounding::eager;
    o.any_borders = !options.codegen.keep_dtype.empty();
    return reference::fp64_reference(concrete(fragment, symbols), inputs, o);
  };
  struct Path {
    std::string label, shown;  // in the verdict's line, in the line with the errors
    std::vector<Tensor> runs[2];
    std::vector<reference::Output> reference;
  };
  std::vector<Path> paths;
  if (options.recompile) {
    Path& p = paths.emplace_back();
    p.label = "precision";
    p.shown = "compiled";
    runtime::Options anew;
    anew.codegen = options.codegen;
    anew.codegen.precision = options.recompile_mode.value_or(options.codegen.precision);
    anew.jit.read_cache = options.read_cache;
    for (int i = 0; i < 2; ++i) {
      anew.poison = numerics::kPoison[i];
      p.runs[i] = runtime::CompiledGraph(fragment, anew)(inputs, size_args);
    }
    p.reference = fp64(anew.codegen.precision);
  }
  Path& own = paths.emplace_back();
  own.label = own.shown = path;
  for (int i = 0; i < 2; ++i) own.runs[i] = launch(kernel, source, fragment, inputs, symbols, numerics::kPoison[i]);
  own.reference = fp64(options.codegen.precision);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::string& name = fragment.values[fragment.outputs[i]].name;
    std::vector<numerics::PathErrors> errors;
    bool passed = true;
    for (const Path& p : paths) {
      numerics::Evidence evidence;
      evidence.expected = expected[i];
      evidence.actual = p.runs[0].at(i);
      evidence.second_run = p.runs[1].at(i);
      evidence.reference = &p.reference.at(i);
      const numerics::Verdict verdict = numerics::judge(evidence);
      check.lines.push_back(numerics::precision_line(name, p.label, verdict));
      passed = passed && verdict.passed;
      if (errors.empty()) errors.push_back({"unfused", expected[i], verdict.expected_error});
      errors.push_back({p.shown, p.runs[0][i], verdict.actual_error});
    }
    if (is_float(expected[i].dtype()) && expected[i].numel() > 0)
      check.lines.push_back(numerics::fp64_line(name, paths[0].reference[i], errors));
    if (!passed) check.failed.push_back(name);
  }
  check.lines.push_back(numerics::summary_line(check.failed));
  return check;
}

}  // namespace fuselab::cli
