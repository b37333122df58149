#include "fuselab/kernel/lower_axes.h"

#include <algorithm>
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/graph/infer.h"

namespace fuselab::kernel {

LoopAxes::Splits LoopAxes::with_split(const SplitAxis& split) const {
  Splits next = splits_;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot)
    for (std::size_t j = 0; j < slots_[slot].size(); ++j) {
      if (slots_[slot][j] != split.axis) continue;
      auto& factors = next[static_cast<int>(slot)];
      if (factors.empty()) factors.push_back(k_.axes[split.axis].extent);
      Expr outer;
      if (!exact_div(factors[j], split.inner, outer)) fail("kernel.unsupported", "{}: an axis cannot be split evenly", k_.name);
      factors[j] = split.inner;
      factors.insert(factors.begin() + static_cast<std::ptrdiff_t>(j), outer);
      return next;
    }
  fail("kernel.unsupported", "{}: an axis to split does not exist", k_.name);
}

Index LoopAxes::new_axis(const Expr& extent, Role role) {
  const int slot = static_cast<int>(slots_.size());
  auto it = splits_.find(slot);
  const std::vector<Expr> factors = it == splits_.end() ? std::vector<Expr>{extent} : it->second;
  slots_.emplace_back();
  Index index;
  for (const Expr& f : factors) {
    const int axis = static_cast<int>(k_.axes.size());
    k_.axes.push_back({"i" + std::to_string(axis), f, role});
    slots_.back().push_back(axis);
    index = index.times(f);
    index.add(axis, 1);
  }
  return index;
}

void LoopAxes::bind_main(const std::vector<Expr>& sizes) {
  for (const Expr& e : sizes) main_index_.push_back(e.is(1) ? Index{} : new_axis(e, Role::parallel));
  main_sizes_ = sizes;
}

std::vector<Index> LoopAxes::output_index(const Value& v) const {
  if (v.type.sizes == main_sizes_) return main_index_;
  std::vector<int> axes;
  for (const Index& i : main_index_)
    for (const auto& t : i.terms)
      if (k_.axes[t.first].role == Role::parallel) axes.push_back(t.first);
  std::vector<Index> index(v.type.sizes.size());
  std::size_t next = 0;
  for (std::size_t d = 0; d < index.size(); ++d) {
    if (v.type.sizes[d].is(1)) continue;
    for (Expr covered = 1; covered != v.type.sizes[d]; ++next) {
      if (next == axes.size()) unsupported(v.name, "its sizes do not match the block's rows");
      covered = covered * k_.axes[axes[next]].extent;
      index[d] = index[d].times(k_.axes[axes[next]].extent);
      index[d].add(axes[next], 1);
    }
  }
  if (next != axes.size()) unsupported(v.name, "it covers only part of the block's rows");
  return index;
}

void LoopAxes::unsupported(const std::string& what, const std::string& why) const {
  fail("kernel.unsupported", "kernel {}: {}: {}; it runs as several kernels instead", k_.name, what, why);
}

LoopAxes::Operand LoopAxes::reduced_operand(const Node& n, const Value& value, const std::vector<Index>& index) {
  const Type& operand = g_.values[std::get<ValueId>(n.args[0])].type;
  const ops::ShapeRule shape = value.result == 0 ? n.op->shape : n.op->more.at(static_cast<std::size_t>(value.result) - 1).shape;
  const bool element = shape == ops::ShapeRule::same;
  return n.op->reduce == ops::ReduceDims::group ? group_index(n, operand, value, index, element)
                                                : reduce_index(n, operand, value, index, element);
}

LoopAxes::Operand LoopAxes::reduce_index(const Node& n, const Type& operand, const Value& value, const std::vector<Index>& index,
                                         bool element) {
  const auto dims = reduced_dims(g_, n);
  std::vector<bool> reduced(operand.sizes.size());
  for (int d : dims) reduced[static_cast<std::size_t>(d)] = true;
  std::vector<Index> at(operand.sizes.size());
  const bool keep = !element && value.type.sizes.size() == operand.sizes.size();
  for (std::size_t d = 0, k = 0; d < at.size(); ++d) {
    if (element)
      at[d] = index[d];
    else if (!reduced[d])
      at[d] = keep ? index[d] : index[k++];
  }
  std::vector<Expr> extents;
  bool kept_after = false, any = false;
  for (std::size_t d = 0; d < at.size(); ++d) {
    if (reduced[d]) {
      extents.push_back(operand.sizes[d]);
      any = any || !operand.sizes[d].is(1);
      if (!operand.sizes[d].is(1)) kept_after = false;
    } else if (!operand.sizes[d].is(1) && any) {
      kept_after = true;
    }
  }
  std::vector<Index> given;
  if (element)
    for (int d : dims) given.push_back(index[static_cast<std::size_t>(d)]);
  std::vector<Index> kept;
  for (std::size_t d = 0; d < at.size(); ++d)
    if (!reduced[d]) kept.push_back(at[d]);
  const auto inner = bind_inner(n, extents, given, kept, !kept_after);
  for (std::size_t j = 0; j < dims.size(); ++j) at[static_cast<std::size_t>(dims[j])] = inner[j];
  return {std::move(at), product(extents), {}};
}

LoopAxes::Operand LoopAxes::group_index(const Node& n, const Type& operand, const Value& value, const std::vector<Index>& index,
                                        bool element) {
  const auto& sizes = operand.sizes;
  Expr groups = 1, per_group;
  const Attr& attr = n.attrs.at("num_groups");
  if (const auto* i = std::get_if<std::int64_t>(&attr)) groups = *i;
  if (const auto* e = std::get_if<Expr>(&attr)) groups = *e;
  if (!exact_div(sizes.at(1), groups, per_group)) unsupported(value.name, "channels are no multiple of the groups");
  std::vector<Expr> extents{per_group};
  extents.insert(extents.end(), sizes.begin() + 2, sizes.end());
  std::vector<Index> at(sizes.size()), given, kept{index[0]};
  at[0] = index[0];
  Index group;
  if (element) {
    Index channel_in_group;
    for (const auto& [a, c] : index[1].terms) {
      Expr q;
      if (exact_div(c, per_group, q) && !(per_group.is(1) && groups.is(1)))
        group.add(a, q);
      else if (c.is(1) && k_.axes[a].extent != per_group && !groups.is(1))
        throw SplitAxis{a, per_group};
      else
        channel_in_group.add(a, c);
    }
    if (groups.is(1)) channel_in_group = index[1];
    given.push_back(channel_in_group);
    for (std::size_t d = 2; d < sizes.size(); ++d) given.push_back(index[d]);
  } else {
    group = index.at(1);
  }
  kept.push_back(group);
  const auto inner = bind_inner(n, extents, given, kept, true);
  at[1] = group.times(per_group).plus(inner[0]);
  for (std::size_t d = 2; d < sizes.size(); ++d) at[d] = inner[d - 1];
  return {std::move(at), product(extents), std::move(group)};
}

std::vector<Index> LoopAxes::bind_inner(const Node& n, const std::vector<Expr>& extents, const std::vector<Index>& given,
                                        const std::vector<Index>& kept, bool lanes) {
  std::vector<Expr> real;
  for (const Expr& e : extents)
    if (!e.is(1)) real.push_back(e);
  if (!given.empty()) claim(n, extents, given);
  if (inner_.empty() && given.empty()) claim_unused(real, kept);
  if (inner_.empty()) {
    for (const Expr& e : real) add_inner(e, new_axis(e, Role::inner));
    if (real.empty()) add_inner(1, new_axis(1, Role::inner));
  }
  if (!bound_) lanes_ = lanes;
  bound_ = true;
  std::vector<Expr> have;
  for (const auto& [e, i] : inner_)
    if (!e.is(1)) have.push_back(e);
  if (have != real) unsupported(n.op->name, "two reductions over different extents");
  if (lanes != lanes_) unsupported(n.op->name, "two reductions along different directions");
  std::vector<Index> out;
  std::size_t j = 0;
  for (const Expr& e : extents) {
    if (e.is(1)) {
      out.emplace_back();
      continue;
    }
    while (inner_[j].first.is(1)) ++j;
    out.push_back(inner_[j++].second);
  }
  return out;
}

void LoopAxes::add_inner(const Expr& extent, const Index& index) {
  inner_.emplace_back(extent, index);
  for (const auto& t : index.terms) k_.axes[t.first].role = Role::inner;
}

void LoopAxes::claim(const Node& n, const std::vector<Expr>& extents, const std::vector<Index>& given) {
  std::vector<std::pair<Expr, Index>> want;
  for (std::size_t j = 0; j < extents.size(); ++j)
    if (!extents[j].is(1)) want.emplace_back(extents[j], given[j]);
  if (inner_.empty()) {
    for (const auto& [e, i] : want) {
      Expr covered = 1;
      bool plain = i.offset.is(0) && !i.terms.empty();
      for (auto t = i.terms.rbegin(); plain && t != i.terms.rend(); ++t) {
        plain = t->second == covered && (!bound_ || k_.axes[t->first].role == Role::inner);
        covered = covered * k_.axes[t->first].extent;
      }
      if (!plain || covered != e) unsupported(n.op->name, "only part of a reduced row is wanted");
    }
    for (const auto& [e, i] : want) add_inner(e, i);
    return;
  }
  std::size_t j = 0;
  for (const auto& [e, i] : inner_) {
    if (e.is(1)) continue;
    if (j == want.size() || want[j].first != e || !(want[j].second == i))
      unsupported(n.op->name, "a reduced row is wanted along other axes");
    ++j;
  }
  if (j != want.size()) unsupported(n.op->name, "two reductions over different extents");
}

void LoopAxes::claim_unused(const std::vector<Expr>& real, const std::vector<Index>& kept) {
  std::set<int> used;
  for (const Index& i : kept)
    for (const auto& t : i.terms) used.insert(t.first);
  std::vector<std::pair<Expr, Index>> found;
  std::size_t d = 0;
  for (const Expr& e : real) {
    for (; d < main_sizes_.size(); ++d) {
      const auto& terms = main_index_[d].terms;
      if (main_sizes_[d] == e && !terms.empty() &&
          std::none_of(terms.begin(), terms.end(), [&](const auto& t) { return used.count(t.first); }))
        break;
    }
    if (d == main_sizes_.size()) return;
    found.emplace_back(e, main_index_[d++]);
  }
  for (const auto& [e, i] : found) add_inner(e, i);
}

void LoopAxes::finish_tree() {
  k_.tree.lanes = lanes_;
  std::vector<std::vector<int>> groups;
  std::int64_t elements = 0;
  for (std::size_t j = inner_.size(); j-- > 0;) {
    std::vector<int> axes;
    for (const auto& t : inner_[j].second.terms) axes.push_back(t.first);
    const bool small = !groups.empty() && elements > 0 && elements < 256 && inner_[j].first.is_const();
    if (small || (!groups.empty() && !lanes_)) {
      groups.front().insert(groups.front().begin(), axes.begin(), axes.end());
      if (small) elements *= inner_[j].first.value();
    } else {
      groups.insert(groups.begin(), axes);
      elements = inner_[j].first.is_const() ? inner_[j].first.value() : 0;
    }
  }
  k_.tree.groups = groups;
  int p = 0, r = 0;
  for (Axis& a : k_.axes) a.name = a.role == Role::inner ? "r" + std::to_string(r++) : "p" + std::to_string(p++);
}

}  // namespace fuselab::kernel
