#include "fuselab/fuse/flag_docs.h"

#include <algorithm>
#include <iterator>

#include "fuselab/fuse/flags.h"

namespace fuselab::fuse {
namespace {

/// Options that the original's public manual lists and that have no counterpart here: its tiling solver, its profile-guided
/// search, its graph splitting.
constexpr const char* kMeaningless[] = {
    "autofuse_enable_pgo", "experimental_enable_jit_executor_v2", "autofuse_att_algorithm", "att_accuracy_level", "att_profiling",
    "att_ub_threshold",    "att_enable_multicore_ub_tradeoff",    "att_corenum_threshold"};

struct Variable {
  const char* name;
  const char* meaning;
  const char* fallback;
};

constexpr Variable kVariables[] = {
    {"AUTOFUSE_FLAGS", "Fusing options, `--option=value;--option=value`.", "empty"},
    {"AUTOFUSE_DFX_FLAGS", "Debugging options, in the same form.", "empty"},
    {"FUSELAB_CACHE_DIR", "Folder of the kernel cache.", "`$XDG_CACHE_HOME/fuselab`, else `~/.cache/fuselab`"},
    {"FUSELAB_FORCE_DISABLE_CACHES", "`1`: compile every kernel, whatever the cache holds.", "`0`"},
    {"TORCHINDUCTOR_FORCE_DISABLE_CACHES", "The same, under PyTorch's name.", "`0`"},
    {"FUSELAB_ISA", "Instruction set to compile for: `avx512`, `avx2`, `generic`. Results are the same.", "the best the CPU has"},
    {"FUSELAB_POOL_BYTES", "Upper bound of the memory that results are taken from and given back to.", "a share of the memory"},
    {"TORCH_COMPILE_DEBUG", "`1`: write the debug folder, under `torch_compile_debug`.", "`0`"},
    {"TORCHINDUCTOR_EMULATE_PRECISION_CASTS", "`1`: `precision=\"eager\"` unless the call says otherwise.", "`0`"},
    {"OMP_NUM_THREADS", "Threads of the pool that kernels run on.", "one per core"},
};

}  // namespace

bool is_meaningless_option(const std::string& name) {
  return std::find(std::begin(kMeaningless), std::end(kMeaningless), name) != std::end(kMeaningless);
}

std::vector<FlagRow> flag_rows() {
  const char* fuse = "AUTOFUSE_FLAGS";
  const char* debug = "AUTOFUSE_DFX_FLAGS";
  return {
      {"enable_autofuse", "--no-fuse", "`false` turns fusing off altogether, whatever else is given: one operator is one kernel.",
       "true", fuse},
      {"autofuse_enable_pass",
       "--fuse=", "Only these fusion classes, separated by commas, and elemwise unless it is disabled; or `all`.", "all", fuse},
      {"autofuse_disable_pass", "--no-fuse=", "Fusion classes that are off, or `all`. One class in both lists is an error.", "",
       fuse},
      {"autofuse_enhance_precision_blacklist", "--keep-dtype=",
       "Operators that stay in their own dtype and round after each step, or `all`. Names are those of the operator table or "
       "their Ascend "
       "spelling, in any case. `sum`, `mean` and `prod` are promoted all the same, with a warning.",
       "", fuse},
      {"max_fusion_size", "--max_fusion_size=", "Operators in one kernel at most; 0 means no fusing.", "64", fuse},
      {"recomputation_threshold",
       "--recomputation_threshold=", "How many consumers may compute a cheap value again rather than have it stored.", "1", fuse},
      {"codegen_compile_debug", "",
       "`true` writes the debug folder: graphs before and after fusing, and every kernel with its script.", "false", debug},
      {"debug_dir", "", "Where the debug folder is written; giving it turns the folder on.", "fuselab_debug", debug},
  };
}

std::string flags_markdown() {
  std::string out =
      "# Flags\n\n"
      "This page is generated from the parser's table (`fuselab flags --markdown`).\n\n"
      "Options come from three places: the call (`options={...}` in Python), the command line of `fuselab`, and the environment. "
      "The call beats\n"
      "the command line, the command line beats the environment, and a run in which one overrides another says so. Everything is "
      "parsed strictly:\n"
      "an unknown option, class or value is an error that lists what exists.\n\n"
      "    AUTOFUSE_FLAGS=\"--enable_autofuse=true;--autofuse_enable_pass=reduce,concat\" fuselab explain model.graph\n\n"
      "## Options\n\n"
      "| option | program | where | meaning | default |\n|---|---|---|---|---|\n";
  for (const FlagRow& row : flag_rows()) {
    out += "| `--" + row.option + "` | " + (row.program.empty() ? "" : "`" + row.program + "`") + " | `" + row.variable + "` | " +
           row.meaning + " | " + (row.fallback.empty() ? "none" : "`" + row.fallback + "`") + " |\n";
  }
  out += "\n## Fusion classes\n\n";
  for (const std::string& name : class_names()) out += "- `" + name + "`\n";
  out +=
      "\nAll are on by default. `elemwise` and `reduce` may change the last bits against operators run alone; the others never "
      "do.\n\n"
      "## Options without a meaning here\n\nAccepted with one warning each, and ignored: ";
  for (const char* name : kMeaningless) out += (name == kMeaningless[0] ? "`--" : ", `--") + std::string(name) + "`";
  out += ".\n\n## Environment variables\n\n| variable | meaning | default |\n|---|---|---|\n";
  for (const Variable& v : kVariables) out += std::string("| `") + v.name + "` | " + v.meaning + " | " + v.fallback + " |\n";
  return out;
}

}  // namespace fuselab::fuse
