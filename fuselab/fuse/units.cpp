#include "fuselab/fuse/units.h"

#include <algorithm>
#include <queue>

#include "fuselab/fuse/fragment.h"

namespace fuselab::fuse {
namespace {

/// Readers of one value that horizontal fusion looks at; a value read by more kernels than this is a table or a scalar.
constexpr std::size_t kSiblingsLooked = 64;

void insert_all(std::set<int>& into, const std::set<int>& from) { into.insert(from.begin(), from.end()); }

}  // namespace

Units::Units(const Info& info, const Options& options, const std::set<NodeId>& careful)
    : info_(info), options_(options), careful_(careful) {
  const Graph& g = info.g;
  unit_of_.assign(g.nodes.size(), -1);
  // Views that something outside the kernels looks at get a step of their own.
  std::vector<bool> needed(g.nodes.size(), false);
  const auto need = [&](ValueId v) {
    while (info.producer(v) >= 0 && info.role[info.producer(v)] == Role::view && !needed[info.producer(v)]) {
      needed[info.producer(v)] = true;
      v = std::get<ValueId>(g.nodes[info.producer(v)].args[0]);
    }
  };
  for (ValueId v : g.outputs) need(v);
  for (const Node& node : g.nodes) {
    if (info.role[node.id] == Role::unused) continue;
    if (info.role[node.id] == Role::extern_call) {
      for (ValueId v : tensor_operands(node)) need(v);
    } else if (info.role[node.id] == Role::compute) {
      for (ValueId v : tensor_operands(node)) {
        if (const ValueId root = info.root(v); info.producer(root) >= 0 && info.role[info.producer(root)] == Role::view)
          need(root);
      }
    }
  }
  for (const Node& node : g.nodes) {
    const Role role = info.role[node.id];
    if (role == Role::unused || info.inlined[node.id] || (role == Role::view && !needed[node.id])) continue;
    Unit unit;
    unit.role = role;
    unit.block.nodes = {node.id};
    if (role == Role::compute) add_inlined(unit.block);
    unit.first = node.id;
    unit.reduces = info.is_reduce(node.id);
    unit_of_[node.id] = static_cast<int>(units_.size());
    line_.push_back(unit_of_[node.id]);
    position_.push_back(unit_of_[node.id]);
    units_.push_back(std::move(unit));
  }
  for (std::size_t u = 0; u < units_.size(); ++u) {
    for (NodeId n : units_[u].block.nodes) {
      for (ValueId v : tensor_operands(g.nodes[n])) {
        // A kernel reads the memory under a view; everything else needs the view's own step.
        const NodeId from = info.producer(units_[u].role == Role::compute ? info.root(v) : v);
        if (from < 0 || unit_of_[from] < 0 || unit_of_[from] == static_cast<int>(u)) continue;
        units_[u].before.insert(unit_of_[from]);
        units_[unit_of_[from]].after.insert(static_cast<int>(u));
      }
    }
  }
}

// Nodes that are repeated in every block: pulled in behind those that read them.
void Units::add_inlined(Block& block) const {
  std::set<NodeId> nodes(block.nodes.begin(), block.nodes.end());
  std::vector<NodeId> work(nodes.begin(), nodes.end());
  while (!work.empty()) {
    const NodeId n = work.back();
    work.pop_back();
    for (ValueId v : tensor_operands(info_.g.nodes[n])) {
      const NodeId p = info_.producer(info_.root(v));
      // Constants and index patterns have no index space that could clash: they join when the fragment is made.
      if (p >= 0 && info_.inlined[p] && !info_.is_create(p) && nodes.insert(p).second) work.push_back(p);
    }
  }
  block.nodes.assign(nodes.begin(), nodes.end());
}

Block Units::joined(const Unit& a, const Unit& b, const std::vector<ValueId>& ties) const {
  std::set<NodeId> nodes(a.block.nodes.begin(), a.block.nodes.end());
  nodes.insert(b.block.nodes.begin(), b.block.nodes.end());
  std::set<ValueId> tied(a.block.ties.begin(), a.block.ties.end());
  tied.insert(b.block.ties.begin(), b.block.ties.end());
  tied.insert(ties.begin(), ties.end());
  return {{nodes.begin(), nodes.end()}, {tied.begin(), tied.end()}};
}

// Units that depend on `from` and stand before `to` in the line; when `to` itself depends on one of them, the last entry is `to`.
std::vector<int> Units::downstream(int from, int to) const {
  std::vector<int> found;
  std::set<int> seen;
  const auto look_behind = [&](int u) {
    for (int next : units_[u].after) {
      if (next == to && u != from) return true;
      if (position_[next] < position_[to] && seen.insert(next).second) found.push_back(next);
    }
    return false;
  };
  bool reached = look_behind(from);
  for (std::size_t i = 0; i < found.size() && !reached; ++i) reached = look_behind(found[i]);
  if (reached) found.push_back(to);
  return found;
}

// Keeps the line an order in which everything can run: what depends on the earlier of the two moves behind the merged unit.
void Units::reorder(int kept, int dropped) {
  const int early = position_[kept] < position_[dropped] ? kept : dropped;
  const int late = early == kept ? dropped : kept;
  const int begin = position_[early], end = position_[late];
  const std::vector<int> found = downstream(early, late);
  const std::set<int> behind(found.begin(), found.end());
  std::vector<int> left, right;
  for (int at = begin + 1; at < end; ++at) {
    if (line_[at] >= 0) (behind.count(line_[at]) ? right : left).push_back(line_[at]);
  }
  std::fill(line_.begin() + begin, line_.begin() + end + 1, -1);
  int at = begin;
  const auto place = [&](int u) { line_[position_[u] = at++] = u; };
  for (int u : left) place(u);
  place(kept);
  for (int u : right) place(u);
}

std::string Units::forbidden(const Unit& a, const Unit& b) const {
  const auto has_pointwise = [&](const Unit& u) {
    return std::any_of(u.block.nodes.begin(), u.block.nodes.end(), [&](NodeId n) { return !info_.is_reduce(n); });
  };
  if (!options_.elemwise && (has_pointwise(a) || has_pointwise(b))) return "the class elemwise is off";
  if (!options_.reduce && (a.reduces || b.reduces)) return "the class reduce is off";
  std::set<NodeId> nodes(a.block.nodes.begin(), a.block.nodes.end());
  nodes.insert(b.block.nodes.begin(), b.block.nodes.end());
  const auto count = std::count_if(nodes.begin(), nodes.end(), [&](NodeId n) { return !info_.inlined[n]; });
  if (count > options_.max_fusion_size) return "max_fusion_size is reached";
  return "";
}

// Puts unit b into unit a; units keep their number, the other one is gone.
bool Units::try_merge(int a, int b, const std::vector<ValueId>& ties) {
  const auto refuse = [&](const std::string& why) {
    if (units_[a].why_alone.empty()) units_[a].why_alone = why;
    if (units_[b].why_alone.empty()) units_[b].why_alone = why;
    return false;
  };
  if (const std::string why = forbidden(units_[a], units_[b]); !why.empty()) return refuse(why);
  const int early = position_[a] < position_[b] ? a : b, late = early == a ? b : a;
  if (const std::vector<int> between = downstream(early, late); !between.empty() && between.back() == late) {
    return refuse("an operator between it and its neighbour is in another step");
  }
  Block block = joined(units_[a], units_[b], ties);
  const Verdict verdict = check_block(info_, block);
  if (!verdict.ok()) return refuse(verdict.why);
  if (options_.accept && std::any_of(block.nodes.begin(), block.nodes.end(), [&](NodeId n) { return careful_.count(n) > 0; })) {
    const Step step = make_kernel_step(info_, block, verdict);
    if (const std::string why = options_.accept(step.fragment, step.name); !why.empty()) return refuse(why);
  }
  reorder(a, b);
  Unit& into = units_[a];
  Unit& from = units_[b];
  into.block = std::move(block);
  into.reduces = verdict.reduces;
  into.first = std::min(into.first, from.first);
  insert_all(into.before, from.before);
  insert_all(into.after, from.after);
  for (int u : {a, b}) into.before.erase(u), into.after.erase(u);
  for (int u : from.before) {
    units_[u].after.erase(b);
    if (u != a) units_[u].after.insert(a);
  }
  for (int u : from.after) {
    units_[u].before.erase(b);
    if (u != a) units_[u].before.insert(a);
  }
  for (NodeId n : from.block.nodes) {
    if (unit_of_[n] == b) unit_of_[n] = a;
  }
  from.gone = true;
  return true;
}

void Units::fuse_vertically() {
  for (const Node& node : info_.g.nodes) {
    if (unit_of_[node.id] < 0 || info_.role[node.id] != Role::compute) continue;
    std::vector<NodeId> producers;
    for (NodeId n : units_[unit_of_[node.id]].block.nodes) {
      if (n != node.id && !info_.inlined[n]) continue;
      for (ValueId v : tensor_operands(info_.g.nodes[n])) {
        const NodeId p = info_.producer(info_.root(v));
        if (p >= 0 && unit_of_[p] >= 0 && info_.role[p] == Role::compute) producers.push_back(p);
      }
    }
    // The nearest producer first: it is the one whose result is still warm.
    std::sort(producers.rbegin(), producers.rend());
    for (NodeId p : producers) {
      if (unit_of_[p] != unit_of_[node.id]) try_merge(unit_of_[p], unit_of_[node.id], {});
    }
  }
}

void Units::fuse_horizontally() {
  for (const Value& value : info_.g.values) {
    if (info_.root(value.id) != value.id) continue;
    const auto& readers = info_.readers[value.id];
    if (readers.size() < 2 || readers.size() > kSiblingsLooked) continue;
    std::vector<int> units;
    for (NodeId n : readers) {
      const int u = unit_of_[n];
      if (u < 0 || info_.role[n] != Role::compute || std::find(units.begin(), units.end(), u) != units.end()) continue;
      units.push_back(u);
    }
    for (std::size_t i = 0; i < units.size(); ++i) {
      for (std::size_t j = i + 1; j < units.size(); ++j) {
        const int a = units[i], b = units[j];
        if (a == b || units_[a].gone || units_[b].gone) continue;
        if (units_[a].after.count(b) || units_[b].after.count(a)) continue;  // looked at already, as producer and consumer
        try_merge(a, b, {value.id});
      }
    }
  }
}

void Units::grow() {
  if (!options_.enable || options_.max_fusion_size == 0) return;
  fuse_vertically();
  fuse_horizontally();
}

std::vector<int> Units::order() const {
  std::vector<std::size_t> waiting(units_.size());
  const auto later = [&](int a, int b) { return units_[a].first > units_[b].first; };
  std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
  for (std::size_t u = 0; u < units_.size(); ++u) {
    waiting[u] = units_[u].before.size();
    if (!units_[u].gone && waiting[u] == 0) ready.push(static_cast<int>(u));
  }
  std::vector<int> out;
  while (!ready.empty()) {
    const int u = ready.top();
    ready.pop();
    out.push_back(u);
    for (int next : units_[u].after) {
      if (--waiting[next] == 0) ready.push(next);
    }
  }
  return out;
}

}  // namespace fuselab::fuse
