#include "fuselab/runtime/binding.h"

#include <algorithm>
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/runtime/layout.h"

namespace fuselab::runtime {
namespace {

constexpr std::int64_t kAlign = 64;
constexpr std::int64_t kBigWork = 64 * 1024;  // bytes read and written by a kernel that takes about 20 us
std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// Places the work space's values one after another in time, each into the lowest gap that is free while it lives.
std::int64_t plan_arena(const Program& p, Binding& b) {
  struct Taken {
    std::int64_t begin, end;
    int last;
  };
  std::vector<Taken> taken;  // sorted by begin
  std::int64_t peak = 0;
  for (int i = 0; i < static_cast<int>(p.steps.size()); ++i) {
    std::erase_if(taken, [i](const Taken& t) { return t.last < i; });
    for (const int s : p.steps[i].slots) {
      if (s < 0 || p.slots[s].home != Home::arena || p.slots[s].first != i) continue;
      const std::int64_t bytes = round_up(b.slots[s].bytes, kAlign);
      std::int64_t at = 0;
      auto place = taken.begin();
      for (; place != taken.end() && place->begin - at < bytes; ++place) at = std::max(at, place->end);
      taken.insert(place, {at, at + bytes, p.slots[s].last});
      b.slots[s].shift = at;
      peak = std::max(peak, at + bytes);
    }
  }
  return peak;
}

void add_facts(const Type& t, const SlotNumbers& n, std::vector<Expr>& exprs, std::vector<std::int64_t>& values) {
  for (int d = 0; d < n.rank; ++d) {
    exprs.push_back(t.sizes[d]);
    values.push_back(n.sizes[d]);
  }
  for (int d = 0; d < n.rank; ++d) {
    if (n.sizes[d] < 2) continue;  // such a stride says nothing
    exprs.push_back(t.strides[d]);
    values.push_back(n.strides[d]);
  }
}

}  // namespace

void solve_symbols(const std::vector<Expr>& exprs, const std::vector<std::int64_t>& values, SymbolValues& known) {
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t i = 0; i < exprs.size(); ++i) {
      if (exprs[i].is_const()) continue;
      std::set<std::string> symbols;
      exprs[i].collect_symbols(symbols);
      std::erase_if(symbols, [&](const std::string& s) { return known.contains(s); });
      if (symbols.size() != 1) continue;
      const std::string& name = *symbols.begin();
      if (exprs[i].is_symbol()) {
        known[name] = values[i];
        progress = true;
        continue;
      }
      SymbolValues probe = known;
      probe[name] = 0;
      const std::int64_t at0 = exprs[i].eval(probe);
      probe[name] = 1;
      const std::int64_t slope = exprs[i].eval(probe) - at0;
      if (slope == 0 || (values[i] - at0) % slope != 0) continue;
      probe[name] = (values[i] - at0) / slope;
      if (exprs[i].eval(probe) != values[i]) continue;
      known[name] = probe[name];
      progress = true;
    }
  }
}

std::unique_ptr<Binding> bind_program(const Program& p, const std::vector<jit::Kernel>& kernels,
                                      const std::vector<KernelSizes>& kernel_sizes, const SymbolValues& symbols, int threads) {
  auto b = std::make_unique<Binding>();
  for (const std::string& s : p.symbols) b->key.push_back(symbols.at(s));
  b->key.push_back(threads);

  for (const auto& [left, right] : p.assumptions)
    if (left.eval(symbols) != right.eval(symbols))
      fail("call.shape", "graph {} was made for sizes with {} == {}, these give {} and {}: compile it for these sizes", p.name,
           left.str(), right.str(), left.eval(symbols), right.eval(symbols));

  check_sizes(p.checks, symbols);

  std::size_t total = 0;
  for (const Slot& s : p.slots) total += 2 * s.type.sizes.size();
  b->numbers.reserve(total);  // the slots point into it
  b->slots.resize(p.slots.size());
  for (std::size_t i = 0; i < p.slots.size(); ++i) {
    const Slot& s = p.slots[i];
    SlotNumbers& n = b->slots[i];
    n.rank = static_cast<int>(s.type.sizes.size());
    n.sizes = b->numbers.data() + b->numbers.size();
    for (const Expr& e : s.type.sizes) b->numbers.push_back(e.eval(symbols));
    n.strides = b->numbers.data() + b->numbers.size();
    for (const Expr& e : s.type.strides) b->numbers.push_back(e.eval(symbols));
    n.elements = count(n.shape());
    n.bytes = extent(n.shape(), n.steps(), size_of(s.type.dtype));
    if (s.home != Home::alias || n.elements == 0) continue;
    n.shift = s.offset.eval(symbols) * size_of(s.type.dtype);
    if (n.shift < 0 || n.shift + n.bytes > b->slots[s.root].bytes)
      fail("call.index_range", "graph {}: a view of {} with sizes {} reaches outside of its memory", p.name, s.type.str(),
           list_text(n.shape()));
  }
  b->arena_bytes = plan_arena(p, *b);

  b->launches.resize(p.steps.size());
  b->call_sizes.resize(p.steps.size());
  std::size_t words = 0;
  for (const ProgramStep& s : p.steps)
    if (s.kernel >= 0) words += static_cast<std::size_t>(round_up(kernels[s.kernel].tiling_bytes, kAlign) / 8);
  b->tilings.resize(words);
  std::size_t word = 0;
  std::int64_t extra = 0;  // behind the values: shared and scratch memory, one kernel at a time
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const ProgramStep& s = p.steps[i];
    for (const Expr& e : s.sizes) b->call_sizes[i].push_back(e.eval(symbols));
    if (s.kernel < 0) continue;
    const jit::Kernel& k = kernels[s.kernel];
    const Graph& fragment = p.kernels[s.kernel].fragment;
    // The fragment may have names of its own for the sizes: its inputs' numbers give their values.
    SymbolValues inner;
    if (!p.symbols.empty()) {
      std::vector<Expr> exprs;
      std::vector<std::int64_t> values;
      for (int j = 0; j < s.inputs; ++j) add_facts(fragment.values[fragment.inputs[j]].type, b->slots[s.slots[j]], exprs, values);
      for (std::size_t j = s.inputs; j < s.slots.size(); ++j)
        if (s.slots[j] >= 0) add_facts(fragment.values[fragment.outputs[j - s.inputs]].type, b->slots[s.slots[j]], exprs, values);
      solve_symbols(exprs, values, inner);
      inner.insert(symbols.begin(), symbols.end());
    }
    kernel::check_bounds(kernel_sizes[s.kernel].bounds, inner);
    std::vector<std::int64_t> sizes;
    for (const Expr& e : kernel_sizes[s.kernel].tiling) sizes.push_back(e.eval(inner));
    void* tiling = b->tilings.data() + word;
    word += static_cast<std::size_t>(round_up(k.tiling_bytes, kAlign) / 8);
    k.tile(sizes.data(), threads, tiling);
    const auto& head = *static_cast<const codegen::TilingHead*>(tiling);

    Launch& l = b->launches[i];
    l.tiling = tiling;
    l.phases = static_cast<int>(head.phases);
    bool some = false;  // a kernel whose results are all empty has nothing to do
    std::int64_t bytes = 0;
    for (std::size_t j = 0; j < s.slots.size(); ++j) {
      if (s.slots[j] < 0) continue;
      bytes += b->slots[s.slots[j]].elements * size_of(p.slots[s.slots[j]].type.dtype);
      some = some || (static_cast<int>(j) >= s.inputs && b->slots[s.slots[j]].elements > 0);
    }
    if (!some) l.phases = 0;
    l.big = bytes >= kBigWork;
    int most = 1;
    for (int phase = 0; phase < l.phases && phase < 2; ++phase) {
      l.units[phase] = head.units[phase];
      const std::int64_t grain = std::max<std::int64_t>(head.grain[phase], 1);
      l.threads[phase] = static_cast<int>(std::clamp<std::int64_t>(head.units[phase] / grain, 1, threads));
      most = std::max(most, l.threads[phase]);
    }
    l.shared_offset = b->arena_bytes;
    l.scratch_offset = l.shared_offset + round_up(head.shared_bytes, kAlign);
    l.scratch_stride = round_up(head.scratch_bytes, kAlign);
    extra = std::max(extra, l.scratch_offset - b->arena_bytes + most * l.scratch_stride);
  }
  b->arena_bytes += extra;
  return b;
}

}  // namespace fuselab::runtime
