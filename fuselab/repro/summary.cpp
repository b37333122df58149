// fuse_summary.csv: what each block reads and writes, and what its operators would one by one.
#include <fmt/format.h>

#include "fuselab/repro/folder.h"

namespace fuselab::repro {
namespace {

/// Memory an operand touches: a broadcast dimension (stride 0) is one element.
double bytes_of(const Type& type, const Symbols& hints) {
  double count = static_cast<double>(size_of(type.dtype));
  for (std::size_t d = 0; d < type.sizes.size(); ++d) {
    const std::int64_t size = type.sizes[d].eval(hints);
    if (size == 0) return 0;
    if (type.strides[d].eval(hints) != 0) count *= static_cast<double>(size);
  }
  return count;
}

struct Traffic {
  double read = 0, written = 0;
};

Traffic fused(const Graph& f, const Symbols& hints) {
  Traffic t;
  for (const ValueId v : f.inputs) t.read += bytes_of(f.values[v].type, hints);
  for (const ValueId v : f.outputs) t.written += bytes_of(f.values[v].type, hints);
  return t;
}

Traffic unfused(const Graph& f, const Symbols& hints) {
  Traffic t;
  for (const Node& n : f.nodes) {
    if (n.op && n.op->kind == ops::Kind::view) continue;
    for (const Operand& a : n.args)
      if (const auto* v = std::get_if<ValueId>(&a)) t.read += bytes_of(f.values[*v].type, hints);
    for (const ValueId v : n.results) t.written += bytes_of(f.values[v].type, hints);
  }
  return t;
}

std::string operators_of(const Graph& f) {
  std::string out;
  for (const Node& n : f.nodes) out += (out.empty() ? "" : ";") + (n.op ? n.op->name : n.target);
  return out;
}

}  // namespace

std::string summary_csv(const runtime::CompiledGraph& g, const Symbols& given) {
  std::string out =
      "Name,Kind,Operators,Bytes Read,Bytes Written,Unfused Bytes Read,Unfused Bytes Written,Predicted Time(us),Measured "
      "Time(us)\n";
  Symbols hints = given;
  for (const std::string& s : g.program().symbols) hints.emplace(s, 16);
  for (const fuse::Step& s : g.plan().steps) {
    if (s.kind != fuse::Step::Kind::kernel) continue;
    const Traffic a = fused(s.fragment, hints), b = unfused(s.fragment, hints);
    out += fmt::format("{},{},{},{:.0f},{:.0f},{:.0f},{:.0f},,\n", s.name, s.block_kind, operators_of(s.fragment), a.read,
                       a.written, b.read, b.written);
  }
  return out;
}

}  // namespace fuselab::repro
