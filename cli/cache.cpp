// fuselab cache: what the kernel cache holds.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "cli/common.h"
#include "fuselab/core/error.h"
#include "fuselab/jit/cache.h"

namespace fuselab::cli {
namespace {

jit::Cache open_cache() {
  const std::string folder = jit::Cache::default_folder();
  if (folder.empty()) throw UsageError("no place for the cache is known: set FUSELAB_CACHE_DIR.");
  return jit::Cache(folder);
}

void show(bool json, bool verify) {
  const jit::Cache cache = open_cache();
  const std::vector<jit::Cache::Entry> entries = verify ? cache.verify() : cache.list();
  std::int64_t bytes = 0, damaged = 0;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& e : entries) {
    bytes += e.bytes;
    damaged += e.damaged;
    nlohmann::ordered_json row = {{"key", e.key}, {"bytes", e.bytes}, {"modified", e.modified}};
    if (verify) row["damaged"] = e.damaged;
    if (e.damaged) row["reason"] = e.reason;
    rows.push_back(row);
  }
  if (damaged > 0) set_exit(kFailed);
  if (json) {
    nlohmann::ordered_json document = {{"folder", cache.folder()}, {"entries", rows}, {"bytes", bytes}};
    if (verify) document["damaged"] = damaged;
    print_json(document);
    return;
  }
  for (const auto& e : entries) {
    if (verify && !e.damaged) continue;
    std::cout << fmt::format("{}  {:>9} bytes  {:%Y-%m-%d %H:%M:%S}{}\n", e.key, e.bytes,
                             fmt::gmtime(static_cast<std::time_t>(e.modified)), e.damaged ? "  DAMAGED: " + e.reason : "");
  }
  std::cout << fmt::format("{}: {} entries, {} bytes", cache.folder(), entries.size(), bytes);
  if (verify) std::cout << fmt::format(", {} damaged", damaged);
  std::cout << "\n";
}

}  // namespace

void add_cache(CLI::App& app) {
  CLI::App* command = app.add_subcommand("cache", "show, verify or clear the kernel cache");
  command->require_subcommand(1);
  command->footer("Examples:\n  fuselab cache show\n  fuselab cache verify --json\n  FUSELAB_CACHE_DIR=dir fuselab cache clear");
  for (const char* name : {"show", "verify", "clear"}) {
    auto json = std::make_shared<bool>(false);
    const std::string what = name;
    CLI::App* sub = command->add_subcommand(what, what == "show"     ? "list the entries"
                                                  : what == "verify" ? "read every entry; exit 1 when one is damaged"
                                                                     : "remove all entries");
    sub->add_flag("--json", *json, "as JSON");
    sub->callback([json, what] {
      if (what != "clear") {
        show(*json, what == "verify");
        return;
      }
      const jit::Cache cache = open_cache();
      const std::int64_t removed = cache.clear();
      if (*json) {
        print_json({{"folder", cache.folder()}, {"removed", removed}});
      } else {
        std::cout << fmt::format("{}: {} entries removed\n", cache.folder(), removed);
      }
    });
  }
}

}  // namespace fuselab::cli
