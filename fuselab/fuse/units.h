// The units of a plan while it grows: blocks of nodes and single extern calls, with the order between them. Merging two units
// keeps the order free of cycles.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "fuselab/fuse/block.h"

namespace fuselab::fuse {

struct Unit {
  Block block;  ///< an extern call or an opaque view: exactly its node
  Role role = Role::compute;
  std::set<int> before, after;  ///< units that must run earlier and later
  bool reduces = false;
  int first = 0;          ///< smallest node of the unit
  std::string why_alone;  ///< the first thing that kept it from growing
  bool gone = false;      ///< merged into another unit
};

class Units {
 public:
  /// Every computing node, extern call and needed view on its own. `info` must outlive the object.
  /// Blocks with one of the `careful` nodes are shown to options.accept at every merge.
  Units(const Info& info, const Options& options, const std::set<NodeId>& careful);
  /// Fuses producers into consumers, then units that read the same value, as far as the options let it.
  void grow();

  const std::vector<Unit>& all() const { return units_; }
  /// The unit that computes a node; -1 for nodes without one (folded views, inlined and unused nodes).
  int unit_of(NodeId n) const { return unit_of_[n]; }
  /// Units that are left, in an order in which they can run: always the earliest node first.
  std::vector<int> order() const;

 private:
  std::vector<int> downstream(int from, int to) const;
  void reorder(int kept, int dropped);
  bool try_merge(int a, int b, const std::vector<ValueId>& ties);
  std::string forbidden(const Unit& a, const Unit& b) const;
  void fuse_vertically();
  void fuse_horizontally();
  Block joined(const Unit& a, const Unit& b, const std::vector<ValueId>& ties) const;
  void add_inlined(Block& block) const;

  const Info& info_;
  const Options& options_;
  const std::set<NodeId>& careful_;
  std::vector<Unit> units_;
  std::vector<int> unit_of_;
  std::vector<int> line_;      ///< the units in some order in which they could run; -1 where one was merged away
  std::vector<int> position_;  ///< unit -> place in line_
};

}  // namespace fuselab::fuse
