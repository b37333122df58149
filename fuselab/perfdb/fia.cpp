#include "fuselab/perfdb/fia.h"

#include "fuselab/perfdb/signature.h"

namespace fuselab::perfdb {

const std::vector<std::string_view>& fia_columns() {
  static const std::vector<std::string_view> columns = {"Runtime source_profile",
                                                        "Runtime actual_seq_lengths_shape",
                                                        "Runtime actual_seq_lengths_values",
                                                        "Runtime actual_seq_lengths_kv_shape",
                                                        "Runtime actual_seq_lengths_kv_values",
                                                        "Runtime avg_seq_len",
                                                        "Runtime block_table_shape",
                                                        "Runtime block_table_valid_blocks",
                                                        "Runtime num_heads",
                                                        "Runtime num_key_value_heads",
                                                        "Runtime sparse_mode",
                                                        "Runtime input_layout",
                                                        "Runtime block_size",
                                                        "Runtime attn_state",
                                                        "Runtime kv_cache_mode",
                                                        "Runtime metadata_completeness"};
  return columns;
}

void add_fia_columns(Table& table) {
  for (const std::string_view c : fia_columns()) {
    if (!table.find(c)) table.add_column(c);
  }
}

void fill_fia_shapes(Table& table, std::size_t row, std::string_view input_shapes, const std::string& source) {
  const std::vector<std::string_view> slots = split_slots(input_shapes);
  const auto put = [&](std::string_view column, std::string_view value) {
    const std::size_t at = *table.find(column);
    if (table.get(row, at).empty()) table.set(row, at, value);
  };
  const auto slot = [&](std::size_t i) { return i < slots.size() ? slots[i] : std::string_view(); };
  put("Runtime source_profile", source);
  put("Runtime actual_seq_lengths_shape", slot(5));
  put("Runtime actual_seq_lengths_kv_shape", slot(6));
  put("Runtime block_table_shape", slot(14));
  put("Runtime metadata_completeness", "profile_shapes_only");
}

}  // namespace fuselab::perfdb
