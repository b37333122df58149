#include "cli/launch.h"

#include <cstdlib>
#include <memory>

#include "cli/common.h"
#include "fuselab/core/error.h"
#include "fuselab/graph/bind.h"
#include "fuselab/numerics/verdict.h"
#include "fuselab/reference/reference.h"

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

KernelCheck check_kernel(const Graph& fragment, const codegen::Source& source, const std::vector<Tensor>& inputs,
                         const Symbols& symbols, const std::string& path, const CheckOptions& options) {
  KernelCheck check;
  check.kernel = source.name;
  jit::Options jit_options;
  jit_options.read_cache = options.read_cache;
  const jit::Kernel kernel = jit::load(source, jit::Target::host(), jit_options);
  const std::vector<Tensor> first = launch(kernel, source, fragment, inputs, symbols, numerics::kPoison[0]);
  const std::vector<Tensor> second = launch(kernel, source, fragment, inputs, symbols, numerics::kPoison[1]);
  runtime::Options unfused_options;
  unfused_options.fuse.enable = false;
  unfused_options.jit.read_cache = options.read_cache;
  unfused_options.codegen = options.codegen;
  const runtime::CompiledGraph unfused(fragment, unfused_options);
  const std::vector<Tensor> expected = unfused(inputs, size_arguments(fragment, symbols));
  reference::Options reference_options;
  if (options.codegen.precision == codegen::Precision::eager) reference_options.rounding = reference::Rounding::eager;
  reference_options.any_borders = !options.codegen.keep_dtype.empty();
  const std::vector<reference::Output> reference =
      reference::fp64_reference(concrete(fragment, symbols), inputs, reference_options);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const std::string& name = fragment.values[fragment.outputs[i]].name;
    numerics::Evidence evidence;
    evidence.expected = expected[i];
    evidence.actual = first[i];
    evidence.second_run = second[i];
    evidence.reference = &reference[i];
    const numerics::Verdict verdict = numerics::judge(evidence);
    check.lines.push_back(numerics::precision_line(name, path, verdict));
    if (is_float(first[i].dtype()) && first[i].numel() > 0) {
      check.lines.push_back(numerics::fp64_line(
          name, reference[i], {{"unfused", expected[i], verdict.expected_error}, {path, first[i], verdict.actual_error}}));
    }
    if (!verdict.passed) check.failed.push_back(name);
  }
  check.lines.push_back(numerics::summary_line(check.failed));
  return check;
}

}  // namespace fuselab::cli
