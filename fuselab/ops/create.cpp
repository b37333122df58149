// Rows: tensors made from nothing.
#include "fuselab/ops/rows.h"

namespace fuselab::ops {

void add_create(std::vector<Op>& t) {
  Row("full", Kind::create, "")
      .type(TypeRule::attr_dtype)
      .shape(ShapeRule::create)
      .attr("shape", AttrType::ints)
      .attr("value", AttrType::scalar)
      .attr("dtype", AttrType::dtype)
      .lower("value")
      .ulp(0)
      .aten("full.default, scalar_tensor.default, full_like.default")
      .aten_name("shape", "size")
      .aten_name("value", "fill_value|s")
      .names("ConstantOfShape", "Fill", "Fill")
      .doc("A tensor of one value; shape=[] makes a scalar.", t);
  Row("iota", Kind::create, "")
      .type(TypeRule::attr_dtype)
      .shape(ShapeRule::create)
      .attr("size", AttrType::expr)
      .attr("start", AttrType::scalar, std::int64_t{0})
      .attr("step", AttrType::scalar, std::int64_t{1})
      .attr("dtype", AttrType::dtype)
      .lower("narrow(start + step * cast_f64(index))")
      .lower_int("start + step * index")
      .aten("prims::iota.default")
      .aten_name("size", "length")
      .names("Range", "Range", "Range")
      .doc("start + step * i for i = 0 .. size - 1.", t);
}

}  // namespace fuselab::ops
