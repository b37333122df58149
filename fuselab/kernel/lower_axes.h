// The axes of a kernel while it is lowered: which of them each dimension of the results runs over, and which become the inner
// ones because a reduction folds them. Used by lower alone.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fuselab/kernel/ir.h"
#include "fuselab/kernel/lower_views.h"

namespace fuselab::kernel {

class LoopAxes {
 public:
  /// Axes come in slots, one per dimension that asked for an axis, in a fixed order; a slot whose axis had to be split has
  /// several factors. Splits found in one attempt are kept for the next.
  using Splits = std::map<int, std::vector<Expr>>;

  /// Axes go to `k.axes`, the reduction tree to `k.tree`. Keeps references to all three.
  LoopAxes(const Graph& g, Kernel& k, const Splits& splits) : g_(g), k_(k), splits_(splits) {}

  /// The dims of the main output become the parallel axes.
  void bind_main(const std::vector<Expr>& sizes);
  const std::vector<Index>& main_index() const { return main_index_; }

  /// The index of a second output: the main one's parallel axes in their order, matched by extent (several may make one dim);
  /// all of them must be used.
  std::vector<Index> output_index(const Value& v) const;

  /// Where a reduction whose result `value` is read at `index` reads its first operand.
  struct Operand {
    std::vector<Index> at;
    Expr count;   ///< elements that are folded into one
    Index group;  ///< group_norm and its like: the group's number
  };
  /// The reduced dims are bound to the kernel's inner axes. Throws Error("kernel.unsupported") when they run over others already,
  /// or SplitAxis.
  Operand reduced_operand(const Node& n, const Value& value, const std::vector<Index>& index);

  /// Groups the inner dims for the reduction tree: from the last one outwards, merged until a group has a block's elements; names
  /// the axes.
  void finish_tree();

  /// The splits for the next attempt: those so far and this one.
  Splits with_split(const SplitAxis& split) const;

  [[noreturn]] void unsupported(const std::string& what, const std::string& why) const;

 private:
  Index new_axis(const Expr& extent, Role role);
  Operand reduce_index(const Node& n, const Type& operand, const Value& value, const std::vector<Index>& index, bool element);
  Operand group_index(const Node& n, const Type& operand, const Value& value, const std::vector<Index>& index, bool element);

  /// Binds the reduced dims to the kernel's inner axes. `given`: where the result's own index lies (element
  /// results).
  std::vector<Index> bind_inner(const Node& n, const std::vector<Expr>& extents, const std::vector<Index>& given,
                                const std::vector<Index>& kept, bool lanes);
  void add_inner(const Expr& extent, const Index& index);

  /// The axes at `given` become the inner ones (or must be them already).
  void claim(const Node& n, const std::vector<Expr>& extents, const std::vector<Index>& given);

  /// Main-output axes of the right extents that the kept dims do not use become the inner ones: `x - sum(x, -1, keepdim)`.
  void claim_unused(const std::vector<Expr>& real, const std::vector<Index>& kept);

  const Graph& g_;
  Kernel& k_;
  const Splits& splits_;
  std::vector<std::vector<int>> slots_;
  std::vector<Index> main_index_;
  std::vector<Expr> main_sizes_;
  std::vector<std::pair<Expr, Index>> inner_;  ///< reduced extents and where they lie
  bool bound_ = false, lanes_ = true;
};

}  // namespace fuselab::kernel
