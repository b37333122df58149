#include "fuselab/codegen/codegen.h"

#include <algorithm>

#include "fuselab/codegen/cpp/emit.h"
#include "fuselab/kernel/improve_precision.h"
#include "fuselab/kernel/lower.h"
#include "fuselab/kernel/one_value.h"
#include "fuselab/kernel/simplify.h"

namespace fuselab::codegen {
namespace {

class Pipeline {
 public:
  explicit Pipeline(const Options& o) : options_(o) {}

  template <typename Pass>
  void run(const std::string& pass, kernel::Kernel& k, const Pass& apply) {
    if (std::find(options_.skip_passes.begin(), options_.skip_passes.end(), pass) != options_.skip_passes.end()) return;
    kernel::Kernel next = apply(k);
    std::string before = print_kernel(k), after = print_kernel(next);
    if (before != after) dumps.emplace_back(pass, after);
#ifndef NDEBUG
    kernel::verify(next);
#endif
    k = std::move(next);
  }

  std::vector<std::pair<std::string, std::string>> dumps;

 private:
  const Options& options_;
};

Generated finish(kernel::Kernel k, std::vector<std::pair<std::string, std::string>> dumps) {
  Generated out;
  out.kernel_ir = print_kernel(k);
  out.source = cpp::emit(kernel::schedule(k));
  out.dumps = std::move(dumps);
  return out;
}

}  // namespace

Generated generate(const Graph& fragment, const std::string& kernel_name, const Options& options) {
  kernel::Kernel k = kernel::lower(fragment, kernel_name);
  Pipeline passes(options);
  passes.dumps.emplace_back("lower", print_kernel(k));
  kernel::PrecisionOptions precision;
  precision.eager = options.precision == Precision::eager;
  for (const std::string& name : options.keep_dtype) {
    if (name == "all") precision.keep_all = true;
    precision.keep.insert(name);
  }
  // improve_precision and one_value are the contract, not optimisation: they cannot be skipped.
  Options always = options;
  always.skip_passes.clear();
  Pipeline contract(always);
  contract.run("improve_precision", k, [&](const kernel::Kernel& x) { return improve_precision(x, precision); });
  contract.run("one_value", k, [](const kernel::Kernel& x) { return kernel::one_value(x); });
  passes.dumps.insert(passes.dumps.end(), contract.dumps.begin(), contract.dumps.end());
  if (options.opt_level > 0) passes.run("simplify", k, [](const kernel::Kernel& x) { return kernel::simplify(x); });
  return finish(std::move(k), std::move(passes.dumps));
}

Generated generate_from_ir(const std::string& ir_text, const std::string& file) {
  return finish(kernel::parse_kernel(ir_text, file), {});
}

}  // namespace fuselab::codegen
