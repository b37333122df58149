// fuselab prove: the precision report. It needs PyTorch, so the program hands over to the Python of its own environment.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "cli/common.h"
#include "fuselab/core/error.h"

extern char** environ;

namespace fuselab::cli {
namespace {

/// bin/python beside this program (one environment holds both), else python3 of PATH.
std::string interpreter() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path beside = self.parent_path() / "python";
  return !error && ::access(beside.c_str(), X_OK) == 0 ? beside.string() : "python3";
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

/// Which of `fuselab`, `torch` that Python lacks; empty when it has both. Throws Error("prove.no_python").
std::string lacks(const std::string& python) {
  std::vector<std::string> words = {
      python, "-c",
      "import importlib.util as u, sys; sys.exit(3 if not u.find_spec('fuselab') else 4 if not u.find_spec('torch') else 0)"};
  pid_t child = 0;
  int status = 0;
  const int failed = ::posix_spawnp(&child, python.c_str(), nullptr, nullptr, pointers(words).data(), environ);
  if (failed != 0)
    fail("prove.no_python", "Cannot start {}: {}; prove needs a Python with fuselab and PyTorch.", python, std::strerror(failed));
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  if (code != 0 && code != 3 && code != 4)
    fail("prove.no_python", "{} does not run (exit {}); prove needs a Python with fuselab and PyTorch.", python, code);
  return code == 3 ? "fuselab" : code == 4 ? "torch" : "";
}

void prove(const std::vector<std::string>& rest) {
  const std::string python = interpreter();
  const std::string missing = lacks(python);
  if (!missing.empty())
    fail("prove.no_module",
         "{} has no module {}: prove compares with PyTorch; install it there, or activate an environment with both.", python,
         missing);
  std::vector<std::string> words = {python, "-m", "fuselab.prove"};
  words.insert(words.end(), rest.begin(), rest.end());
  ::execvp(python.c_str(), pointers(words).data());
  fail("prove.no_python", "Cannot start {}: {}.", python, std::strerror(errno));
}

}  // namespace

void add_prove(CLI::App& app) {
  CLI::App* command = app.add_subcommand("prove", "run the studies of the precision report (needs PyTorch)");
  command->prefix_command();  // everything after it goes on as it is, --help too
  command->set_help_flag();
  command->callback([command] { prove(command->remaining()); });
}

}  // namespace fuselab::cli
