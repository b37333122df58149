// The table: all rows in documentation order, and the indices into them.
#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "fuselab/ops/rows.h"

namespace fuselab::ops {
namespace {

std::string lower_case(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

struct Index {
  std::vector<Op> rows;
  std::unordered_map<std::string, const Op*> by_name, by_any_case;
  std::unordered_map<std::string, std::vector<const Op*>> by_aten;

  Index() {
    add_arithmetic(rows);
    add_integer(rows);
    add_math(rows);
    add_rounding(rows);
    add_compare(rows);
    add_select(rows);
    add_activations(rows);
    add_backward(rows);
    add_reductions(rows);
    add_statistics(rows);
    add_softmax(rows);
    add_norms(rows);
    add_norm_gradients(rows);
    add_create(rows);
    add_views(rows);
    for (const Op& op : rows) {
      by_name.emplace(op.name, &op);
      by_any_case.emplace(lower_case(op.name), &op);
      for (const std::string& form : op.aten) by_aten[form.substr(0, form.find('['))].push_back(&op);
    }
    // The table's own names win over Ascend's; among Ascend's the first row does.
    for (const Op& op : rows) {
      if (!op.ascend_ir.empty()) by_any_case.emplace(lower_case(op.ascend_ir), &op);
    }
  }
};

const Index& index() {
  static const Index instance;
  return instance;
}

template <typename Map>
const Op* lookup(const Map& map, const std::string& key) {
  const auto it = map.find(key);
  return it == map.end() ? nullptr : it->second;
}

}  // namespace

const std::vector<Op>& table() { return index().rows; }
const Op* find(std::string_view name) { return lookup(index().by_name, std::string(name)); }
const Op* find_any_case(std::string_view name) { return lookup(index().by_any_case, lower_case(name)); }

std::vector<const Op*> find_aten_all(std::string_view overload) {
  const auto it = index().by_aten.find(std::string(overload));
  return it == index().by_aten.end() ? std::vector<const Op*>{} : it->second;
}
const Op* find_aten(std::string_view overload) {
  const std::vector<const Op*> all = find_aten_all(overload);
  return all.empty() ? nullptr : all.front();
}

}  // namespace fuselab::ops
