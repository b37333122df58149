#include "fuselab/kernel/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fuselab/core/error.h"

namespace fuselab::kernel {
namespace {

/// More points than any machine finishes; scratch memory and units stay far below 63 bits.
constexpr std::int64_t kMostPoints = std::int64_t{1} << 48;

struct Range {
  Expr least, largest;

  /// Adds factor * [0, n - 1], n >= 1.
  void add(const Expr& factor, const Expr& n) {
    const Expr reach = factor * (n - 1);
    least = least + (factor.non_negative() ? Expr(0) : min(0, reach));
    largest = largest + (factor.non_negative() ? reach : max(0, reach));
  }
};

/// A call hands over the fragment's tensors by their place: a buffer more, or a wider one, would lie outside them.
std::vector<ValueId> fragment_buffers(const Kernel& k, const Graph& fragment, const std::string& file) {
  std::vector<ValueId> wanted = fragment.inputs;
  wanted.insert(wanted.end(), fragment.outputs.begin(), fragment.outputs.end());
  if (static_cast<std::size_t>(k.inputs) != fragment.inputs.size() || k.buffers.size() != wanted.size()) {
    fail("kernel.invalid",
         "{}: the kernel has {} inputs and {} outputs, its fragment has {} and {}: keep the buffers as they were.", file,
         k.inputs, k.buffers.size() - static_cast<std::size_t>(k.inputs), fragment.inputs.size(), fragment.outputs.size());
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const DType t = fragment.values[static_cast<std::size_t>(wanted[i])].type.dtype;
    if (k.buffers[i].dtype != t) {
      fail("kernel.invalid", "{}: buffer {} is {}, the fragment's '{}' is {}: keep the buffers as they were.", file,
           k.buffers[i].name, name(k.buffers[i].dtype), fragment.values[static_cast<std::size_t>(wanted[i])].name, name(t));
    }
  }
  return wanted;
}

void check_symbols(const Kernel& k, const Graph& fragment, const std::string& file) {
  std::set<std::string> known(fragment.size_params.begin(), fragment.size_params.end()), used;
  for (const ValueId v : fragment.inputs) {
    for (const Expr& e : fragment.values[static_cast<std::size_t>(v)].type.sizes) e.collect_symbols(known);
    for (const Expr& e : fragment.values[static_cast<std::size_t>(v)].type.strides) e.collect_symbols(known);
  }
  used.insert(k.symbols.begin(), k.symbols.end());
  for (const Axis& a : k.axes) a.extent.collect_symbols(used);
  for (const Stmt& s : k.stmts) {
    s.size.collect_symbols(used);
    s.index.offset.collect_symbols(used);
    for (const auto& [axis, factor] : s.index.terms) factor.collect_symbols(used);
  }
  for (const std::string& s : used)
    if (!known.contains(s)) fail("kernel.invalid", "{}: no size of the kernel's fragment is called {}.", file, s);
}

class Collector {
 public:
  Collector(const Kernel& k, std::string file) : k_(k), file_(std::move(file)), inner_(k.inner_stmts()) {}

  std::vector<Bound> run(const std::vector<Type>& types) {
    Expr points = 1;
    for (const Axis& a : k_.axes) {
      add(1, a.extent,
          fmt::format("axis {} runs over [{}], which is below zero by {{}}: make its extent longer", a.name, a.extent.str()));
      points = points * max(a.extent, 1);
    }
    add(1, kMostPoints - points,
        "the axes have more points together than a run ever finishes, {} beyond the most: make them shorter");
    for (std::size_t i = 0; i < k_.stmts.size(); ++i) {
      const Stmt& s = k_.stmts[i];
      if (s.kind == StmtKind::load || s.kind == StmtKind::store) access(i, types[static_cast<std::size_t>(s.buffer)]);
    }
    return std::move(found_);
  }

 private:
  void access(std::size_t i, const Type& type) {
    const Stmt& s = k_.stmts[i];
    Expr when = k_.axes.empty() ? Expr(1) : Expr(kMostPoints);
    for (std::size_t a = 0; a < k_.axes.size(); ++a)
      if (k_.axes[a].role == Role::parallel || inner_[i]) when = min(when, k_.axes[a].extent);
    Range range{s.index.offset, s.index.offset};
    for (const auto& [axis, factor] : s.index.terms) range.add(factor, k_.axes[static_cast<std::size_t>(axis)].extent);
    Range memory{0, 0};
    Expr elements = 1;
    for (std::size_t d = 0; d < type.sizes.size(); ++d) {
      memory.add(type.strides[d], type.sizes[d]);
      elements = elements * type.sizes[d];
    }
    const std::string who = fmt::format("%{} = {} {} [{}]", i, s.kind == StmtKind::load ? "load" : "store",
                                        k_.buffers[static_cast<std::size_t>(s.buffer)].name, s.index.str(k_.axes));
    const std::string keep = fmt::format("of {}: keep extents, strides and offsets inside it", type.str());
    add(when, elements - 1, fmt::format("{} reaches into an empty tensor {}", who, keep));
    add(when, memory.largest - range.largest, fmt::format("{} reaches {{}} elements past the end {}", who, keep));
    add(when, range.least - memory.least, fmt::format("{} reaches {{}} elements before the start {}", who, keep));
  }

  void add(const Expr& when, const Expr& slack, const std::string& what) {
    if (slack.non_negative()) return;
    Bound bound{when, slack, file_ + ": " + what};
    if (when.is_const() && slack.is_const()) {
      check_bounds({bound}, {});
    } else {
      found_.push_back(std::move(bound));
    }
  }

  const Kernel& k_;
  std::string file_;
  std::vector<bool> inner_;
  std::vector<Bound> found_;
};

}  // namespace

std::vector<Bound> bounds(const Kernel& k, const Graph& fragment, const std::string& file) {
  std::vector<Type> types;
  for (const ValueId v : fragment_buffers(k, fragment, file)) types.push_back(fragment.values[static_cast<std::size_t>(v)].type);
  check_symbols(k, fragment, file);
  return Collector(k, file).run(types);
}

void check_bounds(const std::vector<Bound>& bounds, const SymbolValues& values) {
  for (const Bound& b : bounds) {
    if (b.when.eval(values) <= 0) continue;
    const std::int64_t slack = b.slack.eval(values);
    if (slack >= 0) continue;
    std::string what = b.what;
    const std::size_t hole = what.rfind("{}");
    if (hole != std::string::npos) what.replace(hole, 2, fmt::format("{}", -slack));
    fail("kernel.bounds", "{}.", what);
  }
}

}  // namespace fuselab::kernel
