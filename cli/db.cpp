#include "cli/db.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>

#include "cli/common.h"
#include "fuselab/core/error.h"
#include "fuselab/core/version.h"

namespace fuselab::cli {

void DbTarget::add_to(CLI::App& command) {
  const char* const group = "Which directory";
  command.add_option("--database-path", path, "The directory itself")->group(group);
  command.add_option("--root", root, "Where devices lie, with --device")->group(group)->capture_default_str();
  command.add_option("--device", device, "Device, e.g. ATLAS_800_A3_752T_128G_DIE")->group(group);
  command.add_option("--vllm-version", vllm, "vLLM-Ascend version of the stack")->group(group);
  command.add_option("--torch-version", torch, "PyTorch version of the stack")->group(group);
  command.add_option("--cann-version", cann, "CANN version of the stack")->group(group);
  command.add_option("--isa", isa, "Instruction set, for kernels that fuselab measured (avx2, avx512)")->group(group);
}

perfdb::Stack DbTarget::stack() const {
  perfdb::Stack out;
  if (!isa.empty()) {
    out["fuselab"] = std::string(version());
    out["isa"] = isa;
  }
  if (!vllm.empty()) out["vllm"] = vllm;
  if (!torch.empty()) out["torch"] = torch;
  if (!cann.empty()) out["cann"] = cann;
  return out;
}

std::string DbTarget::directory() const { return path.empty() ? perfdb::compute_dir(root, device, stack()) : path; }

Progress::Progress(std::string what) : what_(std::move(what)), on_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (on_ && last_ >= 0) std::cerr << "\r\x1b[K" << std::flush;
}

void Progress::show(double share, const std::string& detail) {
  const int now = static_cast<int>(std::clamp(share, 0.0, 1.0) * 1000);
  if (!on_ || now == last_) return;
  last_ = now;
  constexpr int kWidth = 30;
  const int filled = now * kWidth / 1000;
  std::cerr << fmt::format("\r\x1b[K{} [{}{}] {:3d} % {}", what_, std::string(static_cast<std::size_t>(filled), '#'),
                           std::string(static_cast<std::size_t>(kWidth - filled), ' '), now / 10, detail.substr(0, 60))
            << std::flush;
}

std::string utc_now() {
  const char* fixed = std::getenv("SOURCE_DATE_EPOCH");
  const std::time_t t = fixed ? static_cast<std::time_t>(std::strtoll(fixed, nullptr, 10)) : std::time(nullptr);
  std::tm tm{};
  gmtime_r(&t, &tm);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
  return text;
}

void add_db(CLI::App& app) {
  CLI::App* db = app.add_subcommand("db", "The performance database: from profiles to predicted latencies");
  db->require_subcommand(1);
  db->footer(
      "From a folder of profiler output to a directory of the database:\n"
      "  fuselab db import PROFILES --database-path DIR");
  add_db_import(*db);
  add_db_enrich(*db);
  add_db_lint(*db);
  add_db_query(*db);
  add_db_mapping(*db);
  add_db_loo(*db);
  add_db_rewrite(*db);
  add_db_trace(*db);
}

}  // namespace fuselab::cli
