// A lookup and its answer.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuselab/perfdb/signature.h"

namespace fuselab::perfdb {

struct Query {
  std::string op;                     ///< an operator of the mapping, or a kernel type itself
  std::vector<Slot> inputs, outputs;  ///< outputs: empty = not asked for. An empty format matches ND and restored FRACTAL_NZ
  /// tp, ep, ranks, tier, message_bytes, dtype, and what the files call `Runtime ...` or `EP Size`.
  std::map<std::string, std::string> context;
};

/// What a query says of a column: under its name, without `Runtime `, or as `ep` for EP Size. nullptr: nothing.
inline const std::string* context_of(const Query& q, const std::string& column) {
  auto it = q.context.find(column);
  if (it == q.context.end() && column.starts_with("Runtime ")) it = q.context.find(column.substr(8));
  if (it == q.context.end() && column == "EP Size") it = q.context.find("ep");
  return it == q.context.end() ? nullptr : &it->second;
}

/// Where a latency comes from. Only a row of exactly what was asked for is measured.
enum class Source : std::uint8_t { measured, approximated, interpolated, extrapolated, partial, zero_cost, miss };
std::string_view name_of(Source source);  ///< MEASURED, ...

struct Answer {
  Source source = Source::miss;
  double latency_us = 0;             ///< of a miss: 0
  double lo = 0, hi = 0;             ///< the interval that holds the true latency with 90 %; of a measured row: the row
  std::string method;                ///< exact, transpose, padding, bracket, ...
  std::vector<std::string> anchors;  ///< file:line of the rows behind it
  std::string reason;                ///< of a miss or a partial answer: why
  bool accepted = false;             ///< a miss that the mapping expects
  static Answer miss(std::string why) {
    Answer a;
    a.reason = std::move(why);
    return a;
  }
};

}  // namespace fuselab::perfdb
