// The `Runtime ...` columns of fused attention rows: what shapes alone tell, and the values a runtime dump adds.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "fuselab/perfdb/table.h"

namespace fuselab::perfdb {

inline constexpr std::string_view kFusedInferAttention = "FusedInferAttentionScore";

/// The sixteen columns of the file contract, in its order.
const std::vector<std::string_view>& fia_columns();
/// Adds those that are missing, last.
void add_fia_columns(Table& table);
/// Shapes of the sequence lengths (slots 5 and 6) and of the block table (14), the source, and the label profile_shapes_only.
/// Cells that hold more already keep it.
void fill_fia_shapes(Table& table, std::size_t row, std::string_view input_shapes, const std::string& source);

}  // namespace fuselab::perfdb
