// Runtime values of attention launches (JSON lines, one object each) joined to the rows of FusedInferAttentionScore.csv.
//
// A LEFT JOIN: a row without a record stays as it is, a row with several becomes several. The key is what a profile's shapes and
// a record share: shapes of query, key and value, the number of KV lengths, the shapes of mask and block table.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fuselab/perfdb/table.h"

namespace fuselab::perfdb {

/// What one record adds, by column; and the key it is joined by.
struct FiaRecord {
  std::string key;                            ///< `q;k;v;lengths;mask;table`
  std::map<std::string, std::string> values;  ///< Runtime columns
};

/// One line of the file. `where` (file:line) names it in errors. Throws Error("db.bad_record").
FiaRecord parse_fia_record(const std::string& line, const std::string& where);
/// All of a file; empty lines are none. Of records with the same key and lengths the last one stands. Throws
/// Error("file.unreadable"), Error("db.bad_record").
std::vector<FiaRecord> read_fia_records(const std::string& path);
/// The key of a row from its input shapes; nullopt: the cell is no list of sizes.
std::optional<std::string> fia_key(std::string_view input_shapes);

struct EnrichReport {
  std::size_t rows = 0, matched = 0, added = 0, unmatched = 0, records = 0, unused_records = 0;
};

/// Joins in place. Rows that earlier runs made from the same records are found again: a second run changes nothing. A row's
/// further records become rows behind the table's last one. Throws Error("db.missing_column").
EnrichReport enrich(Table& table, const std::vector<FiaRecord>& records, const std::string& tag);

}  // namespace fuselab::perfdb
