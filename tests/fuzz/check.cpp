#include "check.h"

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "fuselab/core/error.h"
#include "fuselab/graph/text.h"
#include "fuselab/graph/verify.h"
#include "fuselab/numerics/ulp.h"
#include "fuselab/reference/reference.h"
#include "fuselab/runtime/compiled.h"

namespace fuselab::fuzz {
namespace {

using Tensors = std::vector<Tensor>;

/// Sets FUSELAB_ISA for a scope.
class IsaScope {
 public:
  explicit IsaScope(const char* isa) {
    if (const char* old = std::getenv("FUSELAB_ISA")) old_ = old;
    setenv("FUSELAB_ISA", isa, 1);
  }
  ~IsaScope() { old_.empty() ? unsetenv("FUSELAB_ISA") : setenv("FUSELAB_ISA", old_.c_str(), 1); }
  IsaScope(const IsaScope&) = delete;
  IsaScope& operator=(const IsaScope&) = delete;

 private:
  std::string old_;
};

runtime::Options options_for(int threads, codegen::Precision precision, bool fused) {
  runtime::Options o;
  o.threads = threads;
  o.codegen.precision = precision;
  o.fuse.enable = fused;
  return o;
}

Tensors run(const Case& c, const Tensors& inputs, const runtime::Options& options) {
  const runtime::CompiledGraph compiled(c.graph, options);
  return compiled(inputs, size_arguments(c));
}

/// The kernels' IR read back: its accesses lie inside the buffers for these sizes, and it gives the same kernels.
Tensors run_from_ir(const Case& c, const Tensors& inputs, const runtime::Options& options) {
  const runtime::CompiledGraph compiled(c.graph, options);
  std::vector<codegen::Generated> again;
  for (std::size_t i = 0; i < compiled.generated().size(); ++i) {
    const Graph& fragment = compiled.program().kernels[i].fragment;
    again.push_back(codegen::generate_from_ir(compiled.generated()[i].kernel_ir, "kernel.ir", &fragment));
    if (again.back().source.text() != compiled.generated()[i].source.text())
      throw std::runtime_error("the kernel's IR read back gives another text");
  }
  const runtime::CompiledGraph read_back(compiled.graph(), compiled.plan(), std::move(again), options);
  return read_back(inputs, size_arguments(c));
}

const std::string& output_name(const Case& c, std::size_t i) {
  return c.graph.values[static_cast<std::size_t>(c.graph.outputs[i])].name;
}

/// "" when all outputs have equal bits. NaNs count as equal: their payload is promised for moves only.
std::string compare_bits(const Case& c, const Tensors& a, const Tensors& b, const std::string& what) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (numerics::bit_equal(a[i], b[i])) continue;
    for (std::int64_t k = 0; k < a[i].numel(); ++k) {
      const double x = a[i].get(k), y = b[i].get(k);
      const bool same = is_float(a[i].dtype())
                            ? (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y))
                            : a[i].get_int(k) == b[i].get_int(k);
      if (!same) return fmt::format("{}: output {} element {}: {} and {}", what, output_name(c, i), k, x, y);
    }
  }
  return "";
}

std::string compare_reference(const Case& c, const Tensors& inputs, const Tensors& got) {
  reference::Options options;
  options.any_borders = true;
  for (const std::string& s : c.graph.size_params) options.sizes[s] = c.symbols.at(s);
  const std::vector<reference::Output> want = reference::fp64_reference(c.graph, inputs, options);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const reference::Output& w = want[i];
    if (w.sizes != got[i].sizes() || w.dtype != got[i].dtype())
      return fmt::format("result type: output {} differs from the reference's", output_name(c, i));
    for (std::int64_t k = 0; k < got[i].numel(); ++k) {
      const auto at = static_cast<std::size_t>(k);
      if (!w.undecided.empty() && w.undecided[at] != 0) continue;
      if (!w.ints.empty()) {
        if (got[i].get_int(k) != w.ints[at])
          return fmt::format("integer result: output {} element {} is {}, should be {}", output_name(c, i), k, got[i].get_int(k),
                             w.ints[at]);
        continue;
      }
      const double x = got[i].get(k), y = w.value[at];
      const bool inside = std::isnan(y)
                              ? std::isnan(x)
                              : x == y || std::fabs(x - y) <= w.bound[at] * (1 + 1e-12);  // the middle of an interval is rounded
      if (!inside && !std::isinf(w.bound[at])) {
        return fmt::format("error bound: output {} element {} is {}, should be {} +- {}", output_name(c, i), k, x, y,
                           w.bound[at]);
      }
    }
  }
  return "";
}

std::string check_text(const Case& c) {
  const std::string text = print_graph(c.graph);
  const std::string again = print_graph(parse_graph(text));
  return text == again ? "" : "text form: printing what was parsed gives another text:\n" + again;
}

}  // namespace

std::string kind_of(const std::string& failure) { return failure.substr(0, failure.find(':')); }

std::string check(const Case& c, const CheckOptions& options) {
  std::string step = "verify";
  try {
    if (const char* file = std::getenv("FUSELAB_FUZZ_LAST")) std::ofstream(file) << print_graph(c.graph);  // to find what crashed
    verify(c.graph);
    step = "text form";
    if (std::string bad = check_text(c); !bad.empty()) return bad;
    step = "data";
    const Tensors inputs = random_inputs(c);
    step = "block";
    const Tensors block = run(c, inputs, options_for(1, codegen::Precision::block, true));
    step = "from kernel IR";
    if (std::string bad = compare_bits(c, block, run_from_ir(c, inputs, options_for(1, codegen::Precision::block, true)), step);
        !bad.empty())
      return bad;
    step = "two threads";
    if (std::string bad = compare_bits(c, block, run(c, inputs, options_for(2, codegen::Precision::block, true)), "threads");
        !bad.empty())
      return bad;
    step = "reference";
    if (std::string bad = compare_reference(c, inputs, block); !bad.empty()) return bad;
    if (options.other_isa && jit::Target::host().isa == "avx512") {
      step = "avx2";
      const IsaScope avx2("avx2");
      if (std::string bad = compare_bits(c, block, run(c, inputs, options_for(1, codegen::Precision::block, true)), "avx2");
          !bad.empty())
        return bad;
    }
    step = "eager, fused";
    const Tensors fused = run(c, inputs, options_for(1, codegen::Precision::eager, true));
    step = "eager, unfused";
    const Tensors unfused = run(c, inputs, options_for(1, codegen::Precision::eager, false));
    return compare_bits(c, fused, unfused, "eager against unfused");
  } catch (const Error& e) {
    return fmt::format("{} failed with {}: {}", step, e.code(), e.what());
  } catch (const std::exception& e) {
    return fmt::format("{} failed: {}", step, e.what());
  }
}

}  // namespace fuselab::fuzz
