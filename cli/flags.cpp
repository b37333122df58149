// fuselab flags: every option and environment variable, from the parser's table.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "cli/common.h"

namespace fuselab::cli {

void add_flags(CLI::App& app) {
  struct Args {
    bool json = false, markdown = false;
  };
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("flags", "list the fusing and debugging options");
  command->add_flag("--json", args->json, "as JSON");
  command->add_flag("--markdown", args->markdown, "as docs/flags.md");
  command->footer("Examples:\n  fuselab flags\n  fuselab flags --markdown > docs/flags.md");
  command->callback([args] {
    if (args->markdown) {
      std::cout << fuse::flags_markdown();
      return;
    }
    if (args->json) {
      nlohmann::ordered_json rows = nlohmann::ordered_json::array();
      for (const fuse::FlagRow& row : fuse::flag_rows()) {
        rows.push_back({{"option", row.option},
                        {"program", row.program},
                        {"variable", row.variable},
                        {"default", row.fallback},
                        {"meaning", row.meaning}});
      }
      print_json({{"options", rows}, {"classes", fuse::class_names()}});
      return;
    }
    for (const fuse::FlagRow& row : fuse::flag_rows()) {
      const std::string program = row.program.empty() ? "" : row.program + " in the program; ";
      std::cout << fmt::format("--{} ({}; {}default {})\n    {}\n", row.option, row.variable, program,
                               row.fallback.empty() ? "none" : row.fallback, row.meaning);
    }
  });
}

}  // namespace fuselab::cli
