// Rows: views. They have no recipe: their meaning is addressing (graph/infer.h, kernel lowering).
#include "fuselab/ops/rows.h"

namespace fuselab::ops {
namespace {

Row view(std::string name) {
  return Row(std::move(name), Kind::view, "self!").type(TypeRule::first).shape(ShapeRule::view).ulp(0);
}

}  // namespace

void add_views(std::vector<Op>& t) {
  view("alias").aten("alias.default, detach.default, lift_fresh.default").doc("The same elements under another name.", t);
  view("reshape")
      .attr("shape", AttrType::ints)
      .aten("view.default, _unsafe_view.default, reshape.default")
      .aten_name("shape", "size|shape")
      .names("Reshape", "Reshape", "Reshape")
      .doc("The same elements in row-major order under another shape; one size may be -1.", t);
  view("expand")
      .attr("shape", AttrType::ints)
      .aten("expand.default")
      .aten_name("shape", "size")
      .names("Expand", "Expand", "BroadcastTo")
      .doc("Dimensions of size 1 repeated, new ones in front; -1 keeps a size.", t);
  view("permute")
      .attr("dims", AttrType::ints)
      .aten("permute.default")
      .names("Transpose", "Permute", "Transpose")
      .doc("Dimensions in another order.", t);
  view("transpose")
      .attr("dim0", AttrType::integer, std::int64_t{0})
      .attr("dim1", AttrType::integer, std::int64_t{1})
      .aten("transpose.int, t.default")
      .names("", "Transpose", "Transpose")
      .doc("Two dimensions exchanged.", t);
  view("squeeze")
      .attr("dims", AttrType::ints)
      .aten("squeeze.dim, squeeze.dims")
      .aten_name("dims", "dim")
      .names("Squeeze", "Squeeze", "Squeeze")
      .doc("Without those of the given dimensions that have size 1.", t);
  view("unsqueeze")
      .attr("dim", AttrType::integer)
      .aten("unsqueeze.default")
      .names("Unsqueeze", "Unsqueeze", "Unsqueeze")
      .doc("With a new dimension of size 1 at dim.", t);
  view("slice")
      .attr("dim", AttrType::integer, std::int64_t{0})
      .attr("start", AttrType::expr, Expr(0))
      .attr("end", AttrType::expr, Expr(std::numeric_limits<std::int64_t>::max()))
      .attr("step", AttrType::expr, Expr(1))
      .aten("slice.Tensor")
      .names("Slice", "StridedSlice", "StridedSlice")
      .doc("Every step-th element from start to before end along dim; negative positions count from the end.", t);
  view("select")
      .attr("dim", AttrType::integer)
      .attr("index", AttrType::expr)
      .aten("select.int")
      .names("Gather", "StridedSlice", "StridedSlice")
      .doc("The index-th element along dim, which disappears.", t);
}

}  // namespace fuselab::ops
