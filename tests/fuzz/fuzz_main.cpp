// fuselab_fuzz [--count N] [--seed S] [--max-nodes N] [--print] [--no-avx2] [--no-minimise]
// Random graphs from the op table, checked (check.h). A failing one is made small and printed in text form with its seed.
// Exit: 0 all hold, 1 something does not, 2 the call was wrong.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "check.h"
#include "fuselab/graph/text.h"
#include "minimise.h"

namespace {

using namespace fuselab;
using namespace fuselab::fuzz;

struct Arguments {
  std::uint64_t count = 200, seed = 1;
  Limits limits;
  CheckOptions check;
  bool print = false, minimise = true;
};

bool parse(int argc, char** argv, Arguments& a) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto number = [&](std::uint64_t& into) {
      char* end = nullptr;
      if (i + 1 >= argc) return false;
      into = std::strtoull(argv[++i], &end, 10);
      return *end == '\0';
    };
    std::uint64_t nodes = 0;
    if (word == "--print")
      a.print = true;
    else if (word == "--no-avx2")
      a.check.other_isa = false;
    else if (word == "--no-minimise")
      a.minimise = false;
    else if (word == "--count" && number(a.count))
      continue;
    else if (word == "--seed" && number(a.seed))
      continue;
    else if (word == "--max-nodes" && number(nodes) && nodes >= 2)
      a.limits.max_nodes = static_cast<int>(nodes);
    else
      return false;
  }
  return true;
}

void report(const Case& c, const std::string& failure, const Arguments& a) {
  Case small = c;
  if (a.minimise) {
    const std::string kind = kind_of(failure);
    const auto fails = [&](const Case& candidate) { return kind_of(check(candidate, a.check)) == kind; };
    small = minimise(c, fails);
  }
  std::string symbols;
  for (const auto& [name, value] : small.symbols) symbols += fmt::format(" {}={}", name, value);
  fmt::print("seed {} FAILED: {}\nminimal graph ({} of {} nodes;{} ): {}\n{}\n", c.seed, failure, small.graph.nodes.size(),
             c.graph.nodes.size(), symbols.empty() ? " static" : symbols, check(small, a.check), print_graph(small.graph));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  if (!parse(argc, argv, a)) {
    std::fputs("usage: fuselab_fuzz [--count N] [--seed S] [--max-nodes N] [--print] [--no-avx2] [--no-minimise]\n", stderr);
    return 2;
  }
  std::uint64_t failures = 0, nodes = 0;
  std::map<std::string, int> used;
  for (std::uint64_t seed = a.seed; seed < a.seed + a.count; ++seed) {
    const Case c = random_case(seed, a.limits);
    nodes += c.graph.nodes.size();
    for (const Node& n : c.graph.nodes) ++used[n.op->name];
    if (a.print) {
      fmt::print("{}\n", print_graph(c.graph));
      continue;
    }
    const std::string failure = check(c, a.check);
    if (failure.empty()) continue;
    ++failures;
    report(c, failure, a);
  }
  fmt::print("{} graphs, {} nodes, {} of {} operators, {} failures\n", a.count, nodes, used.size(), ops::table().size(),
             failures);
  return failures == 0 ? 0 : 1;
}
