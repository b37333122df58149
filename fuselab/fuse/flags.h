// The flags: AUTOFUSE_FLAGS, AUTOFUSE_DFX_FLAGS, the same options of the program and of the API. One table (flags.cpp) drives the
// parser, the error messages and docs/flags.md.
//
// Strict: an unknown option, class or value is an error that lists what exists. Options of the system that fuselab replaces which
// have no meaning here are accepted with one warning.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fuselab/fuse/fuse.h"

namespace fuselab::fuse {

/// What all the flags together say.
struct Flags {
  Options fuse;
  std::vector<std::string> keep_dtype;  ///< names of the op table, or "all" (spec: R9)
  bool debug = false;                   ///< write the debug folder
  std::string debug_dir = "fuselab_debug";
};

/// Where options were given; the later one in this list is the stronger.
enum class Origin : std::uint8_t { environment, command_line, api };

/// The options given in one place: name in the table without dashes ("max_fusion_size") -> text of the value.
struct Settings {
  Origin origin = Origin::environment;
  std::map<std::string, std::string> values;
};

/// Reads `--name=value;--name=value`. Spaces around names, values and separators do not count; empty pieces are skipped.
/// `variable` is the name for messages: "AUTOFUSE_FLAGS" knows the fusing options, "AUTOFUSE_DFX_FLAGS" those for debugging.
/// Throws Error("flags.syntax" | "flags.unknown_option" | "flags.twice" | the codes of resolve()).
Settings parse_flags(std::string_view text, std::string_view variable, Origin origin);

/// AUTOFUSE_FLAGS and AUTOFUSE_DFX_FLAGS as this process has them.
Settings environment_settings();

/// Options given by name, as the API and the program have them; names with or without leading dashes.
/// Throws Error("flags.unknown_option").
Settings named_settings(const std::map<std::string, std::string>& values, Origin origin);

/// Puts the places together, strongest last decided by Origin. Where a stronger place contradicts a weaker one, says so with the
/// warning "flags.overridden". Throws Error("flags.bad_value" | "flags.unknown_class" | "flags.class_conflict" |
/// "flags.unknown_operator" | "flags.no_low_precision").
Flags resolve(std::vector<Settings> places);

/// The fusion classes, in the order of the documentation.
const std::vector<std::string>& class_names();

/// docs/flags.md: every option and environment variable with meaning, values and default.
std::string flags_markdown();
/// The same table for programs.
struct FlagRow {
  std::string option, program, meaning, fallback, variable;
};
std::vector<FlagRow> flag_rows();

}  // namespace fuselab::fuse
