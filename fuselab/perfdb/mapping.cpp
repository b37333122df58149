#include "fuselab/perfdb/mapping.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "fuselab/core/error.h"
#include "fuselab/perfdb/table.h"

namespace fuselab::perfdb {
namespace {

std::size_t line_of(const YAML::Node& node) { return static_cast<std::size_t>(std::max(node.Mark().line, 0)) + 1; }

class Reader {
 public:
  explicit Reader(Mapping& out) : out_(out) {}

  void top(const YAML::Node& root) {
    if (!root.IsMap()) bad(root, "the file is no mapping of keys");
    static const std::set<std::string> kParts = {"operator_mappings", "interpolation_policy", "latency_policy",
                                                 "query_selection_policy", "torch_npu_reference"};
    std::set<std::string> seen;
    for (const auto& item : root) {
      const std::string key = text(item.first);
      if (!seen.insert(key).second) bad(item.first, fmt::format("the key \"{}\" stands twice", key));
      if (item.second.IsScalar()) out_.top[key] = item.second.Scalar();
      if (!item.second.IsScalar() && !item.second.IsNull() && !kParts.contains(key)) {
        warn(item.first, fmt::format("\"{}\" is not acted on", key));
      }
    }
    if (const YAML::Node ops = root["operator_mappings"]; ops && !ops.IsNull()) {
      if (!ops.IsMap()) bad(ops, "operator_mappings is no mapping");
      for (const auto& item : ops) entry(item.first, item.second);
    } else {
      warn(root, "there are no operator_mappings");
    }
    interpolation(root["interpolation_policy"]);
    latency(root["latency_policy"]);
    selection(root["query_selection_policy"]);
  }

 private:
  [[noreturn]] void bad(const YAML::Node& at, const std::string& why) const {
    fail("db.bad_mapping", "{}:{}: {}.", out_.path, line_of(at), why);
  }
  void warn(const YAML::Node& at, const std::string& why) {
    out_.warnings.push_back(fmt::format("{}:{}: {}", out_.path, line_of(at), why));
  }

  std::string text(const YAML::Node& node) const {
    if (!node.IsScalar()) bad(node, "a word is expected here");
    return node.Scalar();
  }
  bool flag(const YAML::Node& node) const {
    bool value = false;
    if (!node.IsScalar() || !YAML::convert<bool>::decode(node, value)) bad(node, "true or false is expected here");
    return value;
  }
  std::int64_t integer(const YAML::Node& node) const {
    std::int64_t value = 0;
    if (!node.IsScalar() || !YAML::convert<std::int64_t>::decode(node, value)) bad(node, "a whole number is expected here");
    return value;
  }
  std::vector<std::string> words(const YAML::Node& node) const {
    if (node.IsScalar()) return {node.Scalar()};
    if (!node.IsSequence()) bad(node, "a list is expected here");
    std::vector<std::string> out;
    for (const YAML::Node& n : node) out.push_back(text(n));
    return out;
  }

  void entry(const YAML::Node& key, const YAML::Node& body) {
    OperatorEntry e;
    e.name = text(key);
    e.line = line_of(key);
    if (!body.IsMap()) bad(body, fmt::format("the entry of {} is no mapping", e.name));
    for (const auto& item : body) field(e, text(item.first), item.first, item.second);
    const bool answers = e.zero_cost || e.accepted_miss || e.composite || !e.kernel_type.empty() || !e.by_input_rank.empty();
    if (!answers) warn(key, fmt::format("{} names no kernel_type and is neither composite, zero_cost nor accepted_miss", e.name));
    if (e.composite && !e.decomposer && e.sub_kernels.empty())
      warn(key, fmt::format("{} is composite without sub_kernels", e.name));
    if (!out_.operators.emplace(e.name, e).second) bad(key, fmt::format("{} stands twice", e.name));
  }

  void field(OperatorEntry& e, const std::string& name, const YAML::Node& key, const YAML::Node& value) {
    static const std::set<std::string> kOthers = {"decomposer_options",   "project_full_shape",     "degenerate_bmm_kernel_type",
                                                  "embedded_compute",     "embedded_communication", "primary_kernel_type",
                                                  "runtime_comm_variants"};
    if (name == "kernel_type") {
      e.kernel_type = text(value);
    } else if (name == "alternate_kernel_types") {
      e.alternates = words(value);
    } else if (name == "sub_kernels") {
      e.sub_kernels = words(value);
    } else if (name == "expected_input_formats") {
      e.expected_input_formats = words(value);
    } else if (name == "kernel_types_by_input_rank") {
      if (!value.IsMap()) bad(value, "kernel_types_by_input_rank is no mapping");
      for (const auto& item : value) e.by_input_rank[integer(item.first)] = words(item.second);
    } else if (name == "tc_input_count") {
      e.tc_input_count = integer(value);
      if (*e.tc_input_count < 0) bad(value, "tc_input_count is negative");
    } else if (name == "tp_linear_projection") {
      e.tp_projection = projection(value);
    } else if (name == "category") {
      const std::string word = text(value);
      if (word != "compute" && word != "communication") warn(value, fmt::format("category {} is not known", word));
      e.communication = word == "communication";
    } else if (name == "compute_subcategory") {
      e.compute_subcategory = text(value);
    } else if (name == "query_mode") {
      e.mode = mode(value);
    } else if (name == "mtp_projection_kernel_type") {
      e.mtp_projection_kernel_type = text(value);
    } else if (name == "composite") {
      e.composite = flag(value);
    } else if (name == "decomposer") {
      e.decomposer = flag(value);
    } else if (name == "zero_cost") {
      e.zero_cost = flag(value);
    } else if (name == "require_all_sub_kernels") {
      e.require_all_sub_kernels = flag(value);
    } else if (name == "accepted_miss") {
      e.accepted_miss = text(value);
    } else if (name == "notes") {
      if (value.IsScalar()) e.notes = value.Scalar();
    } else {
      if (!kOthers.contains(name)) warn(key, fmt::format("{}: the field \"{}\" is not known", e.name, name));
      e.unknown.push_back(name);
    }
  }

  QueryMode mode(const YAML::Node& value) {
    const std::string word = text(value);
    if (word == "elementwise") return QueryMode::elementwise;
    if (word == "attention_special") return QueryMode::attention_special;
    if (word == "moe_fused") return QueryMode::moe_fused;
    if (word == "mtp_projection") return QueryMode::mtp_projection;
    if (word != "compute") warn(value, fmt::format("query_mode {} is not known: looked up as compute", word));
    return QueryMode::compute;
  }
  TpProjection projection(const YAML::Node& value) const {
    if (!value.IsMap()) bad(value, "tp_linear_projection is no mapping");
    TpProjection out;
    const std::string axis = value["shard_axis"] ? text(value["shard_axis"]) : "";
    if (axis != "input" && axis != "output") bad(value, "tp_linear_projection: shard_axis is input or output");
    out.output = axis == "output";
    if (const YAML::Node dims = value["logical_global_dims"]) {
      if (!dims.IsSequence()) bad(dims, "logical_global_dims is no list");
      for (const YAML::Node& d : dims) out.global_dims.push_back(integer(d));
    }
    return out;
  }

  void interpolation(const YAML::Node& policy) {
    if (!policy || !policy.IsMap()) return;
    const YAML::Node kernels = policy["kernel_overrides"];
    if (!kernels || !kernels.IsMap()) return;
    for (const auto& item : kernels) {
      if (!item.second.IsMap()) bad(item.second, "an override is no mapping");
      KernelPolicy& p = out_.policies[text(item.first)];
      for (const auto& word : item.second) {
        const std::string name = text(word.first);
        if (name == "max_interpolation_dim") {
          p.max_interpolation_dim = integer(word.second);
        } else if (name == "axis_transform" || name == "shape_transform") {
          const std::string transform = text(word.second);
          p.axis_transform = transform == "sqrt" ? "sqrt_seq" : transform;
        } else if (name == "generic_compute" && word.second.IsMap() && word.second["axis"]) {
          p.axis = text(word.second["axis"]);
        } else if (name != "quant_mode") {
          warn(word.first, fmt::format("interpolation_policy: {} is not acted on", name));
        }
      }
    }
  }
  void latency(const YAML::Node& policy) {
    if (!policy || !policy.IsMap()) return;
    const YAML::Node kernels = policy["kernel_overrides"] ? policy["kernel_overrides"] : policy;
    for (const auto& item : kernels) {
      if (!item.second.IsMap()) continue;
      KernelPolicy& p = out_.policies[text(item.first)];
      if (const YAML::Node n = item.second["prefer_profiling_rows"]) p.prefer_profiling_rows = flag(n);
      if (const YAML::Node n = item.second["profiling_core_envelope_fallback"];
          n && n.IsMap() && n["max_duration_to_core_ratio"]) {
        p.max_duration_to_core_ratio = number_in(text(n["max_duration_to_core_ratio"]));
      }
    }
  }
  void selection(const YAML::Node& policy) {
    if (!policy || !policy.IsMap()) return;
    const YAML::Node kernels = policy["kernel_overrides"] ? policy["kernel_overrides"] : policy;
    for (const auto& item : kernels) {
      if (!item.second.IsMap()) continue;
      if (const YAML::Node n = item.second["require_semantic_unique"])
        out_.policies[text(item.first)].require_semantic_unique = flag(n);
    }
  }

  Mapping& out_;
};

}  // namespace

std::vector<std::string> OperatorEntry::kernels(std::size_t first_rank) const {
  std::vector<std::string> out;
  const auto take = [&](const std::string& kernel) {
    if (!kernel.empty() && std::find(out.begin(), out.end(), kernel) == out.end()) out.push_back(kernel);
  };
  if (const auto it = by_input_rank.find(static_cast<std::int64_t>(first_rank)); it != by_input_rank.end()) {
    for (const std::string& k : it->second) take(k);
  }
  take(kernel_type);
  for (const std::string& k : alternates) take(k);
  return out;
}

Mapping Mapping::read(const std::string& path) { return parse(read_text(path), path); }

Mapping Mapping::parse(const std::string& given, const std::string& what) {
  Mapping out;
  out.path = what;
  if (given.size() > (std::size_t{8} << 20))
    fail("db.bad_mapping", "{}: {} MiB is too large for a mapping.", what, given.size() >> 20);
  try {
    const YAML::Node root = YAML::Load(given.starts_with("\xef\xbb\xbf") ? given.substr(3) : given);
    Reader(out).top(root);
  } catch (const YAML::Exception& e) {
    fail("db.bad_mapping", "{}:{}: {}.", what, e.mark.line + 1, e.msg);
  }
  return out;
}

std::string Mapping::get(const std::string& key) const {
  const auto it = top.find(key);
  return it == top.end() ? std::string() : it->second;
}

const OperatorEntry* Mapping::find(const std::string& op) const {
  const auto it = operators.find(op);
  return it == operators.end() ? nullptr : &it->second;
}

KernelPolicy Mapping::policy(const std::string& kernel) const {
  const auto it = policies.find(kernel);
  return it == policies.end() ? KernelPolicy() : it->second;
}

}  // namespace fuselab::perfdb
