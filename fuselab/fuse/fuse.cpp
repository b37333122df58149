#include "fuselab/fuse/fuse.h"

#include <map>
#include <set>

#include "fuselab/core/hash.h"
#include "fuselab/fuse/fragment.h"
#include "fuselab/fuse/units.h"
#include "fuselab/graph/rewrite.h"

namespace fuselab::fuse {
namespace {

std::string extern_reason(const Node& node) {
  if (!node.op) return "extern: " + node.target + " runs in the host framework";
  if (node.op->kind == ops::Kind::move) {
    return "extern: " + node.op->name + " only moves data; blocks of that class are not compiled yet";
  }
  return "extern: " + node.op->name + " is never compiled, the host framework runs it";
}

std::string alone_reason(const Unit& unit, const Options& options) {
  if (!options.enable) return "fusing is off (--enable_autofuse=false)";
  if (options.max_fusion_size == 0) return "fusing is off (--max_fusion_size=0)";
  return unit.why_alone.empty() ? "no neighbour is computed by a kernel" : unit.why_alone;
}

/// Blocks that compute the same share one fragment, so that they compile once; a clash of short hashes gets the long one.
void share_fragments(std::vector<Step>& steps) {
  std::map<std::string, const Step*> by_text;
  std::map<std::string, std::string> text_of_name;
  for (Step& step : steps) {
    if (step.kind != Step::Kind::kernel) continue;
    const std::string text = canonical_text(step.fragment);
    const auto [same, first] = by_text.try_emplace(text, &step);
    if (!first) {
      step.fragment = same->second->fragment;
      step.name = same->second->name;
      continue;
    }
    if (!text_of_name.try_emplace(step.name, text).second) {
      step.name = step.name.substr(0, step.name.rfind('_') + 1) + hash128_hex(text);
      step.fragment.name = step.name;
    }
  }
}

Step make_step(const Info& info, const Unit& unit) {
  if (unit.role == Role::compute) return make_kernel_step(info, unit.block, check_block(info, unit.block));
  const Node& node = info.g.nodes[unit.first];
  Step step;
  step.kind = unit.role == Role::view ? Step::Kind::view : Step::Kind::extern_call;
  step.nodes = {node.id};
  step.inputs = tensor_operands(node);
  step.outputs = node.results;
  return step;
}

void give_reasons(const Info& info, const Units& units, const Options& options, const std::vector<int>& step_of, Plan& plan) {
  plan.reasons.assign(info.g.nodes.size(), "");
  for (const Node& node : info.g.nodes) {
    std::string& reason = plan.reasons[node.id];
    const int u = units.unit_of(node.id);
    switch (info.role[node.id]) {
      case Role::unused:
        reason = "unused: nothing that leaves the graph depends on it";
        break;
      case Role::extern_call:
        reason = extern_reason(node);
        break;
      case Role::view:
        reason = u >= 0 ? "view: an alias of " + info.g.values[info.root(std::get<ValueId>(node.args[0]))].name
                        : "view: folded into the addressing of its readers";
        break;
      case Role::compute: {
        if (u < 0) {
          reason = info.is_create(node.id) ? "inlined: a constant of every block that reads it"
                                           : "inlined: computed again in every block that reads it";
          break;
        }
        const Unit& unit = units.all()[u];
        const std::string& name = plan.steps[step_of[u]].name;
        reason = unit.block.nodes.size() > 1 ? "block " + name : "alone: " + alone_reason(unit, options) + " (" + name + ")";
        break;
      }
    }
  }
}

/// What to do otherwise about a block without a kernel form: cut it, and when nothing is left to cut, let an alias in memory
/// stand for the views it reads through, which no addressing of a kernel can say together. Returns how much is new.
std::size_t retreat(const Info& info, const Unit& unit, std::set<NodeId>& careful, std::set<NodeId>& aliased) {
  std::size_t changed = 0;
  if (unit.block.nodes.size() > 1)
    for (NodeId n : unit.block.nodes) changed += careful.insert(n).second;
  if (changed > 0) return changed;
  for (NodeId n : unit.block.nodes) {
    for (ValueId v : tensor_operands(info.g.nodes[n])) {
      const std::vector<NodeId> views = info.chain(v);
      if (!views.empty()) changed += aliased.insert(views.back()).second;
    }
  }
  return changed;
}

}  // namespace

Plan fuse(const Graph& g, const Options& options) {
  std::set<NodeId> careful, aliased;
  while (true) {
    const Info info(g, options, aliased);
    Units units(info, options, careful);
    units.grow();
    Plan plan;
    std::vector<int> step_of(units.all().size(), -1);
    std::size_t refused = 0;
    for (int u : units.order()) {
      const Unit& unit = units.all()[u];
      step_of[u] = static_cast<int>(plan.steps.size());
      plan.steps.push_back(make_step(info, unit));
      const Step& step = plan.steps.back();
      if (options.accept && step.fragment.nodes.size() > 1 && !options.accept(step.fragment, step.name).empty())
        refused += retreat(info, unit, careful, aliased);
    }
    if (refused > 0) continue;  // again, more carefully around these nodes
    share_fragments(plan.steps);
    give_reasons(info, units, options, step_of, plan);
    return plan;
  }
}

}  // namespace fuselab::fuse
