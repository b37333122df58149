// How a query's tensors may differ from a row's and still mean the same kernel, best first.
//
// exact: slot by slot. transpose: a weight stored the other way round. Both are what was measured. Rules that change a rank
// (batch strip, flatten, merged last dims) or sizes (padding to a tile) give an approximated answer, which says so.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuselab/perfdb/query.h"

namespace fuselab::perfdb {

struct Match {
  int rank = 0;  ///< 0 exact, 1 transposed, 2 another rank, 3 padded
  std::string_view rule = "exact";
};

/// nullopt: they are not the same kernel. `count`: how many inputs take part (tc_input_count), all when unset.
std::optional<Match> match_slots(std::string_view kernel, const std::vector<Slot>& query_inputs,
                                 const std::vector<Slot>& query_outputs, const std::vector<Slot>& row_inputs,
                                 const std::vector<Slot>& row_outputs, std::optional<std::size_t> count);

}  // namespace fuselab::perfdb
