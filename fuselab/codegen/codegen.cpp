#include "fuselab/codegen/codegen.h"

#include <fmt/format.h>

#include <algorithm>

#include "fuselab/codegen/cpp/emit.h"
#include "fuselab/core/error.h"
#include "fuselab/graph/simplify.h"
#include "fuselab/kernel/improve_precision.h"
#include "fuselab/kernel/lower.h"
#include "fuselab/kernel/one_value.h"
#include "fuselab/kernel/simplify.h"

namespace fuselab::codegen {
namespace {

/// Runs passes over a kernel and keeps the text after each one that changed it.
class Pipeline {
 public:
  explicit Pipeline(kernel::Kernel k) : k_(std::move(k)), text_(print_kernel(k_)) { dumps_.emplace_back("lower", text_); }

  template <typename Pass>
  void run(const std::string& pass, const Pass& apply) {
    k_ = apply(k_);
#ifndef NDEBUG
    kernel::verify(k_);
#endif
    std::string text = print_kernel(k_);
    if (text == text_) return;
    dumps_.emplace_back(pass, text);
    text_ = std::move(text);
  }

  Generated finish() && {
    Generated out;
    out.source = cpp::emit(kernel::schedule(k_));
    out.kernel_ir = std::move(text_);
    out.dumps = std::move(dumps_);
    return out;
  }

 private:
  kernel::Kernel k_;
  std::string text_;  // of k_
  std::vector<std::pair<std::string, std::string>> dumps_;
};

}  // namespace

void check_skip_passes(const std::vector<std::string>& names) {
  std::vector<std::string> known = simplify_pass_names();
  known.emplace_back("simplify");
  for (const std::string& n : names)
    if (std::find(known.begin(), known.end(), n) == known.end())
      fail("options.bad_value", "there is no pass '{}' to skip; there are {}", n, fmt::join(known, ", "));
}

Generated generate(const Graph& fragment, const std::string& kernel_name, const Options& options) {
  kernel::PrecisionOptions precision;
  precision.eager = options.precision == Precision::eager;
  for (const std::string& name : options.keep_dtype) {
    if (name == "all") precision.keep_all = true;
    precision.keep.insert(name);
  }
  Pipeline passes(kernel::lower(fragment, kernel_name));
  // improve_precision and one_value are the contract, not optimisation: they cannot be skipped.
  passes.run("improve_precision", [&](const kernel::Kernel& k) { return improve_precision(k, precision); });
  passes.run("one_value", [](const kernel::Kernel& k) { return kernel::one_value(k); });
  const auto skipped = [&](const char* pass) {
    return std::find(options.skip_passes.begin(), options.skip_passes.end(), pass) != options.skip_passes.end();
  };
  if (options.opt_level > 0 && !skipped("simplify"))
    passes.run("simplify", [](const kernel::Kernel& k) { return kernel::simplify(k); });
  return std::move(passes).finish();
}

Generated generate_from_ir(const std::string& ir_text, const std::string& file, const Graph* fragment) {
  kernel::Kernel k = kernel::parse_kernel(ir_text, file);
  Generated out;
  if (fragment) out.bounds = kernel::bounds(k, *fragment, file);
  out.kernel_ir = print_kernel(k);
  out.source = cpp::emit(kernel::schedule(k));
  return out;
}

}  // namespace fuselab::codegen
