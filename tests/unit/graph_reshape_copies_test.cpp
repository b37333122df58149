#include "fuselab/graph/reshape_copies.h"

#include <gtest/gtest.h>

#include "fuselab/graph/text.h"
#include "fuselab/graph/verify.h"

namespace fuselab {
namespace {

TEST(ReshapeCopies, SharedRefinements) {
  const Expr b = Expr::symbol("B");
  EXPECT_TRUE(share_a_refinement({6, 4}, {3, 8}));  // [3, 2, 4]
  EXPECT_TRUE(share_a_refinement({2, 1, 3}, {6}));
  EXPECT_TRUE(share_a_refinement({}, {1, 1}));
  EXPECT_TRUE(share_a_refinement({b, 12}, {b * 3, 4}));
  EXPECT_FALSE(share_a_refinement({3, 7}, {7, 3}));
  EXPECT_FALSE(share_a_refinement({4, 6}, {6, 4}));
  EXPECT_FALSE(share_a_refinement({b, 7}, {7, b}));
  EXPECT_FALSE(share_a_refinement({0, 3}, {3, 0}));
}

TEST(ReshapeCopies, OnlyWhereNoStridesSayIt) {
  const Graph view = parse_graph("graph g(x: f32[3, 7]) {\n r = reshape(x, shape=[7, 3])\n y = exp(r)\n return y\n}");
  EXPECT_EQ(print_graph(copy_before_reshape(view)), print_graph(view));
  const Graph split = parse_graph("graph g(x: f32[6, 4]{1, 6}) {\n r = reshape(x, shape=[3, 8])\n y = exp(r)\n return y\n}");
  EXPECT_EQ(print_graph(copy_before_reshape(split)), print_graph(split));
  const Graph mixed = copy_before_reshape(
      parse_graph("graph g(x: f32[3, 7]{1, 3}) {\n r = reshape(x, shape=[7, 3])\n y = exp(r)\n z = exp(x)\n return y, z\n}"));
  verify(mixed);
  EXPECT_EQ(print_graph(mixed),
            "graph g(x: f32[3, 7]{1, 3}) {\n  r_rows: f32[3, 7] = copy(x)\n  r: f32[7, 3] = reshape(r_rows, shape=[7, 3])\n"
            "  y: f32[7, 3] = exp(r)\n  z: f32[3, 7]{1, 3} = exp(x)\n  return y, z\n}\n");
}

}  // namespace
}  // namespace fuselab
