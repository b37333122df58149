// fuselab db loo: how well a directory's kernels predict each other.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "cli/common.h"
#include "cli/db.h"
#include "fuselab/perfdb/loo.h"

namespace fuselab::cli {
namespace {

struct Args {
  std::string directory, task;
  double coverage = 0.9;
  int folds = 5;
  bool protocol = false, json = false;
};

std::string figures(const perfdb::LooErrors& e) {
  if (e.n == 0) return fmt::format("{:>7} {:>7} {:>7} {:>7}", "-", "-", "-", "-");
  return fmt::format("{:>7.2f} {:>7.1f} {:>7.1f} {:>7.1f}", e.median, e.p90, e.p99, e.max);
}

void print(const std::vector<perfdb::LooResult>& results, const Args& args) {
  std::cout << fmt::format("errors in % of the measured latency; interval for {:g} %\n", 100 * args.coverage)
            << fmt::format("{:<9}  {:>6} {:>6}  {:^31}  {:^15}  {:>6} {:>6}\n", "", "", "", "predicted", "linear", "truths", "")
            << fmt::format("{:<9}  {:>6} {:>6}  {:>7} {:>7} {:>7} {:>7}  {:>7} {:>7}  {:>6} {:>6}  method\n", "task", "rows",
                           "miss", "median", "p90", "p99", "max", "median", "p90", "inside", "width");
  std::string file;
  for (const perfdb::LooResult& r : results) {
    const std::string here = r.file + (r.regime.empty() ? "" : "  " + r.regime);
    if (here != file) std::cout << here << "\n";
    file = here;
    const std::string linear =
        r.linear.n == 0 ? fmt::format("{:>7} {:>7}", "-", "-") : fmt::format("{:>7.2f} {:>7.1f}", r.linear.median, r.linear.p90);
    std::cout << fmt::format("{:<9}  {:>6} {:>5.1f}%  {}  {}  {:>5.1f}% {:>6.2f}  {}\n", r.task, r.scored,
                             100.0 * static_cast<double>(r.missed) / static_cast<double>(std::max<std::size_t>(r.scored, 1)),
                             figures(r.ours), linear, r.inside, r.width, r.method);
  }
  if (results.empty()) std::cout << "no kernel file with rows to judge\n";
}

nlohmann::ordered_json errors(const perfdb::LooErrors& e) {
  return {{"n", e.n}, {"median", e.median}, {"p90", e.p90}, {"p99", e.p99}, {"max", e.max}};
}

void loo(const Args& args) {
  perfdb::LooOptions options;
  options.task = args.task;
  options.coverage = args.coverage;
  options.folds = args.folds;
  std::vector<perfdb::LooResult> results;
  {
    Progress bar("loo");
    options.progress = [&](double share, const std::string& what) { bar.show(share, what); };
    results = perfdb::leave_one_out(args.directory, options);
  }
  if (!args.json) {
    print(results, args);
    return;
  }
  nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
  for (const perfdb::LooResult& r : results) {
    tasks.push_back({{"task", r.task},
                     {"file", r.file},
                     {"family", perfdb::name(r.kind)},
                     {"regime", r.regime},
                     {"scored", r.scored},
                     {"missed", r.missed},
                     {"predicted", errors(r.ours)},
                     {"linear", errors(r.linear)},
                     {"inside_percent", r.inside},
                     {"width", r.width},
                     {"method", r.method}});
  }
  print_json({{"directory", args.directory}, {"coverage", args.coverage}, {"tasks", tasks}});
}

}  // namespace

void add_db_loo(CLI::App& db) {
  auto args = std::make_shared<Args>();
  CLI::App* command =
      db.add_subcommand("loo", "How well the rows predict each other: hides rows, predicts them from the rest, compares");
  command->add_option("DIR", args->directory, "Directory with kernel CSV files")->required();
  command->add_flag("--protocol", args->protocol, "All tasks of docs/prediction.md (the default)");
  command->add_option("--task", args->task,
                      "Only one: gemm-m, gemm-nk, ctx, ctx-seq, gen, gen-seq, moe, ew, comm, generic, extra1, extra3, extrahalf");
  command->add_option("--coverage", args->coverage, "Share of truths that the interval shall hold")
      ->check(CLI::Range(0.5, 0.99))
      ->capture_default_str();
  command->add_option("--folds", args->folds, "How often methods are chosen, each time without a part of the rows")
      ->check(CLI::Range(2, 50))
      ->capture_default_str();
  command->add_flag("--json", args->json, "One JSON document on stdout");
  command->footer("Example: fuselab db loo NVIDIA_H200/sglang0.5.14 --task gemm-m");
  command->callback([args] { loo(*args); });
}

}  // namespace fuselab::cli
