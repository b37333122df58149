// fuselab compare: two files of tensors, name by name.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>

#include "cli/common.h"
#include "fuselab/core/threads.h"
#include "fuselab/numerics/compare.h"

namespace fuselab::cli {
namespace {

struct Args {
  std::string a, b, html;
  numerics::CompareLimits limits;
  std::size_t rows = 40;
  int threads = 0;
  bool json = false, quiet = false;
};

/// One line on stderr that grows, when someone is looking and the work takes longer than a moment.
class Bar {
 public:
  explicit Bar(bool shown) : shown_(shown && ::isatty(2)) {}
  ~Bar() {
    if (printed_) std::cerr << "\r\033[K";
  }
  void operator()(double share) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    printed_ = true;
    const auto done = static_cast<std::size_t>(share * 40);
    std::cerr << fmt::format("\rcomparing [{}{}] {:3.0f} %", std::string(done, '#'), std::string(40 - done, ' '), share * 100)
              << std::flush;
  }

 private:
  bool shown_, printed_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void compare(const Args& args) {
  if (args.threads > 0) set_max_threads(args.threads);
  numerics::Comparison found;
  {
    Bar bar(!args.quiet);
    found = numerics::compare_files(args.a, args.b, args.limits, [&](double share) { bar(share); });
  }
  if (!args.html.empty()) write_file(args.html, numerics::report_html(found));
  std::cout << (args.json ? numerics::report_json(found) + "\n" : numerics::report_text(found, args.rows));
  if (!args.html.empty() && !args.json) std::cout << "page: " << args.html << "\n";
  if (!found.passed()) set_exit(kFailed);
}

}  // namespace

void add_compare(CLI::App& app) {
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand("compare", "compare two files or folders of tensors, worst first");
  command->add_option("a", args->a, "expected: .npy, .npz, .safetensors, .pt, or a folder of these")->required();
  command->add_option("b", args->b, "actual")->required();
  command->add_flag("--exact", args->limits.exact, "only the same bits pass (NaN equals NaN)");
  command->add_option("--max-ulp", args->limits.max_ulp, "largest error in ULP that passes")->check(CLI::NonNegativeNumber);
  command->add_option("--rtol", args->limits.rtol, "with --atol: |a - b| <= atol + rtol |a| passes")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--atol", args->limits.atol, "see --rtol")->check(CLI::NonNegativeNumber);
  command->add_option("--rows", args->rows, "tensors shown (default 40)");
  command->add_option("--threads", args->threads, "at most so many threads");
  command->add_option("--html", args->html, "write a page with a histogram per tensor");
  command->add_flag("--json", args->json, "as JSON");
  command->add_flag("--quiet", args->quiet, "no progress bar");
  command->footer(
      "Without a limit a tensor passes by the CANN metrics (docs/precision.md); non-finite values must agree in any case.\n"
      "Exit codes: 0 all passed, 1 a tensor failed, is missing or has other sizes, 2 the call was wrong.\n"
      "Examples:\n  fuselab compare eager.safetensors fused.safetensors\n  fuselab compare a.npz b.npz --max-ulp 2\n"
      "  fuselab compare dump_a/ dump_b/ --html report.html");
  command->callback([args] { compare(*args); });
}

}  // namespace fuselab::cli
