#include "fuselab/fuse/flags.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>

#include "fuselab/core/error.h"
#include "fuselab/core/warn.h"
#include "fuselab/fuse/flag_docs.h"
#include "fuselab/ops/op.h"

namespace fuselab::fuse {
namespace {

constexpr const char* kFuseVariable = "AUTOFUSE_FLAGS";
constexpr const char* kDebugVariable = "AUTOFUSE_DFX_FLAGS";

std::string_view trimmed(std::string_view s) {
  const auto first = s.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(" \t\r\n") - first + 1);
}

std::vector<std::string> split_list(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (true) {
    const auto at = text.find(separator);
    out.emplace_back(trimmed(text.substr(0, at)));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool parse_bool(const std::string& option, const std::string& value) {
  const std::string v = lower(value);
  if (v == "true") return true;
  if (v == "false") return false;
  fail("flags.bad_value", "--{}: \"{}\" is neither true nor false.", option, value);
}

int parse_count(const std::string& option, const std::string& value) {
  int out = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (error != std::errc() || end != value.data() + value.size() || out < 0) {
    fail("flags.bad_value", "--{}: \"{}\" is not a whole number of 0 or more.", option, value);
  }
  return out;
}

std::vector<std::string> parse_classes(const std::string& option, const std::string& value) {
  std::vector<std::string> out;
  for (const std::string& word : split_list(value, ',')) {
    const std::string name = lower(word);
    const auto& known = class_names();
    if (name != "all" && std::find(known.begin(), known.end(), name) == known.end()) {
      fail("flags.unknown_class", "--{}: there is no fusion class \"{}\"; the classes are {}, or all.", option, word,
           fmt::join(known, ", "));
    }
    out.push_back(name);
  }
  return out;
}

std::vector<std::string> parse_operators(const std::string& option, const std::string& value) {
  std::vector<std::string> out;
  if (value.empty()) return out;
  for (const std::string& word : split_list(value, ',')) {
    if (lower(word) == "all") {
      out.push_back("all");
      continue;
    }
    const ops::Op* op = ops::find_any_case(word);
    if (!op) {
      fail("flags.unknown_operator",
           "--{}: there is no operator \"{}\"; names are those of `fuselab ops` or their Ascend spelling, or all.", option, word);
    }
    if (!op->low_precision_meaning) {
      fail("flags.no_low_precision",
           "--{}: {} has no meaning in f16 and bf16, the dtypes it would be left in; take it off the list.", option, op->name);
    }
    if (op->name == "sum" || op->name == "mean" || op->name == "prod") {
      warn("flags.always_promoted", "--{}: {} is always computed in higher precision; naming it has no effect.", option,
           op->name);
    }
    out.push_back(op->name);
  }
  return out;
}

bool* class_switch(Options& options, const std::string& name) {
  if (name == "elemwise") return &options.elemwise;
  if (name == "reduce") return &options.reduce;
  if (name == "concat") return &options.concat;
  if (name == "slice") return &options.slice;
  if (name == "gather") return &options.gather;
  return &options.transpose;
}

void set_all(Options& options, bool on) {
  for (const std::string& name : class_names()) *class_switch(options, name) = on;
}

const FlagRow* find_row(const std::string& name) {
  static const std::vector<FlagRow> rows = flag_rows();
  for (const FlagRow& row : rows) {
    if (row.option == name) return &row;
  }
  return nullptr;
}

std::string options_of(std::string_view variable) {
  std::string out;
  for (const FlagRow& row : flag_rows()) {
    if (variable.empty() || row.variable == variable) out += (out.empty() ? "--" : ", --") + row.option;
  }
  return out;
}

/// Checks one value where it is given, so that the message can name the place.
void check_value(const std::string& name, const std::string& value) {
  if (name == "enable_autofuse" || name == "codegen_compile_debug") parse_bool(name, value);
  if (name == "max_fusion_size" || name == "recomputation_threshold") parse_count(name, value);
  if (name == "autofuse_enable_pass" || (name == "autofuse_disable_pass" && !value.empty())) parse_classes(name, value);
  if (name == "debug_dir" && value.empty()) fail("flags.bad_value", "--debug_dir: the name of the folder is empty.");
}

void add(Settings& into, std::string_view variable, const std::string& name, const std::string& value) {
  if (is_meaningless_option(name)) {
    warn_once_text("flags.no_meaning", name,
                   fmt::format("--{} is an option of another compiler and has no meaning here; it is ignored.", name));
    return;
  }
  const FlagRow* row = find_row(name);
  if (!row || (!variable.empty() && row->variable != variable)) {
    const std::string where = variable.empty() ? "" : std::string(variable) + ": ";
    if (row) fail("flags.unknown_option", "{}--{} belongs into {}.", where, name, row->variable);
    fail("flags.unknown_option", "{}there is no option --{}; the options are {}.", where, name, options_of(variable));
  }
  check_value(name, value);
  if (!into.values.emplace(name, value).second) fail("flags.twice", "{}: --{} is given twice.", variable, name);
}

const char* place_name(Origin origin) {
  switch (origin) {
    case Origin::environment:
      return "the environment";
    case Origin::command_line:
      return "the command line";
    case Origin::api:
      return "the call";
  }
  return "";
}

}  // namespace

const std::vector<std::string>& class_names() {
  static const std::vector<std::string> names = {"elemwise", "reduce", "concat", "slice", "gather", "transpose"};
  return names;
}

Settings parse_flags(std::string_view text, std::string_view variable, Origin origin) {
  Settings out;
  out.origin = origin;
  for (const std::string& piece : split_list(text, ';')) {
    if (piece.empty()) continue;
    const auto equals = piece.find('=');
    if (piece.rfind("--", 0) != 0 || equals == std::string::npos) {
      fail("flags.syntax", "{}: \"{}\" is not of the form --option=value; options are separated by semicolons.", variable, piece);
    }
    const std::string name(trimmed(std::string_view(piece).substr(2, equals - 2)));
    add(out, variable, name, std::string(trimmed(std::string_view(piece).substr(equals + 1))));
  }
  return out;
}

Settings environment_settings() {
  Settings out;
  for (const char* variable : {kFuseVariable, kDebugVariable}) {
    const char* text = std::getenv(variable);
    if (!text) continue;
    out.values.merge(parse_flags(text, variable, Origin::environment).values);
  }
  return out;
}

Settings named_settings(const std::map<std::string, std::string>& values, Origin origin) {
  Settings out;
  out.origin = origin;
  for (const auto& [name, value] : values) {
    const auto first = name.find_first_not_of('-');
    add(out, "", first == std::string::npos ? name : name.substr(first), std::string(trimmed(value)));
  }
  return out;
}

Flags resolve(std::vector<Settings> places) {
  std::stable_sort(places.begin(), places.end(), [](const Settings& a, const Settings& b) { return a.origin < b.origin; });
  std::map<std::string, std::pair<std::string, Origin>> chosen;
  for (const Settings& place : places) {
    for (const auto& [name, value] : place.values) {
      const auto it = chosen.find(name);
      if (it != chosen.end() && it->second.first != value) {
        warn("flags.overridden", "--{}={} from {} overrides {} from {}.", name, value, place_name(place.origin), it->second.first,
             place_name(it->second.second));
      }
      chosen[name] = {value, place.origin};
    }
  }
  const auto given = [&](const char* name) {
    const auto it = chosen.find(name);
    return it == chosen.end() ? nullptr : &it->second.first;
  };
  Flags flags;
  Options& options = flags.fuse;
  if (const auto* v = given("enable_autofuse")) options.enable = parse_bool("enable_autofuse", *v);
  std::vector<std::string> on, off;
  if (const auto* v = given("autofuse_enable_pass")) on = parse_classes("autofuse_enable_pass", *v);
  if (const auto* v = given("autofuse_disable_pass"); v && !v->empty()) off = parse_classes("autofuse_disable_pass", *v);
  const bool all_on = std::find(on.begin(), on.end(), "all") != on.end();
  const bool all_off = std::find(off.begin(), off.end(), "all") != off.end();
  for (const std::string& name : on) {
    if (name == "all" ? all_off : all_off || std::find(off.begin(), off.end(), name) != off.end()) {
      fail("flags.class_conflict",
           "The class {} is both in --autofuse_enable_pass and in --autofuse_disable_pass; take it out of one.", name);
    }
  }
  if (!on.empty() && !all_on) {
    set_all(options, false);
    options.elemwise = true;
    for (const std::string& name : on) *class_switch(options, name) = true;
  }
  if (all_off) set_all(options, false);
  for (const std::string& name : off) {
    if (name != "all") *class_switch(options, name) = false;
  }
  if (const auto* v = given("max_fusion_size")) options.max_fusion_size = parse_count("max_fusion_size", *v);
  if (const auto* v = given("recomputation_threshold"))
    options.recomputation_threshold = parse_count("recomputation_threshold", *v);
  if (const auto* v = given("autofuse_enhance_precision_blacklist")) {
    flags.keep_dtype = parse_operators("autofuse_enhance_precision_blacklist", *v);
  }
  if (const auto* v = given("codegen_compile_debug")) flags.debug = parse_bool("codegen_compile_debug", *v);
  if (const auto* v = given("debug_dir")) {
    flags.debug_dir = *v;
    if (!given("codegen_compile_debug")) flags.debug = true;
  }
  return flags;
}

}  // namespace fuselab::fuse
