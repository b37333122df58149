#include "fuselab/kernel/describe.h"

#include <fmt/format.h>

namespace fuselab::kernel {
namespace {

std::string names(const Kernel& k, const std::vector<int>& axes) {
  std::string out;
  for (const int a : axes) out += (out.empty() ? "" : " ") + k.axes[static_cast<std::size_t>(a)].name;
  return out.empty() ? "none" : out;
}

std::string marked(const std::vector<bool>& marks) {
  std::string out;
  for (std::size_t i = 0; i < marks.size(); ++i)
    if (marks[i]) out += fmt::format("{}%{}", out.empty() ? "" : ", ", i);
  return out;
}

}  // namespace

std::string describe(const Schedule& s) {
  const Kernel& k = s.kernel;
  Expr units = 1, row = 1;
  for (const int a : s.row_axes) units = units * k.axes[static_cast<std::size_t>(a)].extent;
  for (const Axis& a : k.axes)
    if (a.role == Role::inner) row = row * a.extent;
  if (s.form == Form::columns) row = row * Expr(kLanes);
  const char* form = s.form == Form::element ? "element" : s.form == Form::rows ? "rows" : "columns";
  std::string out = fmt::format("form {}: rows over {} ([{}]), {} lanes along {}\n", form, names(k, s.row_axes), units.str(),
                                kLanes, names(k, s.vector_axes));
  if (s.stages > 1) out += fmt::format("passes over a row: {}\n", s.stages);
  const auto memory = local_memory();
  Expr kept = 0;
  for (std::size_t i = 0; i < s.keep.size(); ++i)
    if (s.keep[i]) kept = kept + row * Expr(size_of(k.stmts[i].type));
  if (!kept.is(0)) {
    out += fmt::format("kept between passes: {}, {} bytes of local memory (a row of up to {} elements is kept)\n", marked(s.keep),
                       kept.str(), memory.kept_elements);
  } else if (s.stages > 1) {
    out += fmt::format("kept between passes: nothing, values are computed again ({})\n",
                       row.is_const() && row.value() > memory.kept_elements
                           ? fmt::format("a row has {} elements, local memory holds {}", row.value(), memory.kept_elements)
                           : "they are cheap");
  }
  if (s.tile_axis >= 0)
    out += fmt::format("turned in tiles of 16 x 16 along {}: {}\n", k.axes[static_cast<std::size_t>(s.tile_axis)].name,
                       marked(s.tiled));
  if (const std::string past = marked(s.stream); !past.empty())
    out += fmt::format("written past the cache: {} (more than {} bytes)\n", past, memory.stream_bytes);
  return out;
}

}  // namespace fuselab::kernel
