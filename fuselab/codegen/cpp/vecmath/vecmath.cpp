#include "fuselab/codegen/cpp/vecmath/vecmath.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "fuselab/codegen/cpp/vecmath/groups.h"
#include "fuselab/core/error.h"

namespace fuselab::codegen::vecmath {
namespace {

using Key = std::pair<DType, std::string_view>;

const std::map<Key, const Function*>& table() {
  static const std::map<Key, const Function*> all_functions = [] {
    std::map<Key, const Function*> m;
    for (const Group* group : {&f32_exponentials(), &f32_logarithms(), &f32_error_functions(), &f32_activations(),
                               &f32_two_arguments(), &f32_through_f64(), &trigonometric(), &f64_exponentials(), &f64_logarithms(),
                               &f64_trigonometric(), &f64_error_functions(), &roots(), &low_precision(), &row_functions()}) {
      for (const Function& f : *group) m[{f.type, f.name}] = &f;
    }
    return m;
  }();
  return all_functions;
}

/// "exp:f64" names the f64 function; "exp" the one of the asking function's type.
Key resolve(std::string_view need, DType type) {
  const auto colon = need.find(':');
  if (colon == std::string_view::npos) return {type, need};
  return {need.substr(colon + 1) == "f64" ? DType::f64 : DType::f32, need.substr(0, colon)};
}

}  // namespace

const Function* find(std::string_view name, DType type) {
  const auto it = table().find({type, name});
  return it == table().end() ? nullptr : it->second;
}

std::vector<const Function*> all() {
  std::vector<const Function*> result;
  for (const auto& [key, function] : table()) {
    if (key.second.front() != '_') result.push_back(function);
  }
  return result;
}

std::string texts(std::vector<std::pair<std::string, DType>> functions) {
  std::sort(functions.begin(), functions.end());
  std::set<const Function*> done;
  std::string out;
  std::function<void(const Key&)> emit = [&](const Key& key) {
    const Function* f = find(key.second, key.first);
    if (f == nullptr) fail("codegen.no_function", "there is no vector-math text for {} in {}", key.second, name(key.first));
    if (!done.insert(f).second) return;
    for (const std::string_view need : f->needs) emit(resolve(need, f->type));
    out += f->text;
  };
  for (const auto& [function, type] : functions) emit({type, function});
  return out;
}

const std::vector<std::string>& external_symbols() {
  static const std::vector<std::string> none;
  return none;
}

}  // namespace fuselab::codegen::vecmath
