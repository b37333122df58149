#include "fuselab/perfdb/match.h"

#include <algorithm>
#include <array>

namespace fuselab::perfdb {
namespace {

using Dims = std::vector<std::int64_t>;

bool flattens(std::string_view kernel) {
  static constexpr std::array<std::string_view, 6> kKernels = {"AscendQuantV2", "DynamicQuant",   "RmsNorm",
                                                               "AddRmsNorm",    "AddRmsNormBias", "DispatchFFNCombine"};
  return std::find(kKernels.begin(), kKernels.end(), kernel) != kKernels.end();
}

bool same_dtype(const Slot& a, const Slot& b) { return a.dtype.empty() || b.dtype.empty() || a.dtype == b.dtype; }

/// A query without format asks for logical sizes: ND, or FRACTAL_NZ whose sizes are restored.
bool same_format(const Slot& query, const Slot& row) {
  if (query.format == row.format) return true;
  if (query.format.empty()) return row.format == "ND" || row.format == "FRACTAL_NZ";
  return row.format.empty() && query.format == "ND";
}

Dims stripped(const Dims& d) { return d.size() > 1 && d[0] == 1 ? Dims(d.begin() + 1, d.end()) : d; }

Dims flattened(const Dims& d) { return d.size() == 3 ? Dims{d[0] * d[1], d[2]} : d; }

Dims merged(const Dims& d) { return d.size() == 3 ? Dims{d[0], d[1] * d[2]} : d; }

Dims transposed(Dims d) {
  if (d.size() >= 2) std::swap(d[d.size() - 1], d[d.size() - 2]);
  return d;
}

/// Every size that differs is the row's rounded up to a tile: the same blocks run, on data that is not there in part.
bool padded(const Dims& query, const Dims& row) {
  if (query.size() != row.size() || query == row) return false;
  for (std::size_t i = 0; i < query.size(); ++i) {
    const std::int64_t q = query[i], r = row[i];
    if (q == r) continue;
    if (r <= 0) return false;
    bool fits = false;
    for (const std::int64_t block : {16, 32, 64}) fits = fits || q == (r + block - 1) / block * block;
    fits = fits || (r >= 64 && q == (r + 7) / 8 * 8);
    // A size of 1 beside a whole tile is another regime (one row of a matrix), no rounding.
    if (!fits || (r == 1 && q > 1)) return false;
  }
  return true;
}

bool is_matmul(std::string_view kernel) {
  static constexpr std::array<std::string_view, 12> kKernels = {"MatMulV2",
                                                                "MatMulV3",
                                                                "MatMulCommon",
                                                                "MatMul",
                                                                "QuantBatchMatmulV3",
                                                                "BatchMatMulV2",
                                                                "TransposeBatchMatMul",
                                                                "GroupedMatmul",
                                                                "GroupedMatmulSwigluQuant",
                                                                "ScaledMatMul",
                                                                "BlockScaledMatMul",
                                                                "BatchMatMul"};
  return std::find(kKernels.begin(), kKernels.end(), kernel) != kKernels.end();
}

std::optional<Match> match_one(std::string_view kernel, const Slot& query, const Slot& row, bool weight) {
  if (query.present != row.present) return std::nullopt;
  if (!query.present) return Match{};
  if (!same_dtype(query, row) || !same_format(query, row)) return std::nullopt;
  if (query.dims == row.dims) return Match{};
  if (weight && transposed(query.dims) == row.dims) return Match{1, "transpose"};
  if (stripped(query.dims) == stripped(row.dims)) return Match{2, "batch_strip"};
  if (weight && transposed(stripped(query.dims)) == stripped(row.dims)) return Match{2, "batch_strip"};
  if (flattens(kernel) && flattened(query.dims) == flattened(row.dims)) return Match{2, "flatten"};
  if ((kernel == "AscendQuantV2" || kernel == "DynamicQuant") && merged(query.dims) == row.dims)
    return Match{2, "merge_last_dims"};
  if (kernel == "Index" && query.dims.size() == 2 && row.dims.size() == 2 && transposed(query.dims) == row.dims &&
      (query.dims[0] == 1 || query.dims[1] == 1)) {
    return Match{2, "column"};
  }
  if (padded(query.dims, row.dims) || padded(stripped(query.dims), stripped(row.dims))) return Match{3, "padding"};
  if (flattens(kernel) && padded(flattened(query.dims), flattened(row.dims))) return Match{3, "padding"};
  return std::nullopt;
}

}  // namespace

std::optional<Match> match_slots(std::string_view kernel, const std::vector<Slot>& query_inputs,
                                 const std::vector<Slot>& query_outputs, const std::vector<Slot>& row_inputs,
                                 const std::vector<Slot>& row_outputs, std::optional<std::size_t> count) {
  std::size_t q = used_slots(query_inputs), r = used_slots(row_inputs);
  if (count) q = std::min(q, *count), r = std::min(r, *count);
  if (q != r) return std::nullopt;
  Match worst;
  const auto take = [&](const std::optional<Match>& m) {
    if (m && m->rank > worst.rank) worst = *m;
    return m.has_value();
  };
  for (std::size_t i = 0; i < q; ++i) {
    if (!take(match_one(kernel, query_inputs[i], row_inputs[i], i >= 1 && is_matmul(kernel)))) return std::nullopt;
  }
  if (query_outputs.empty()) return worst;
  if (used_slots(query_outputs) != used_slots(row_outputs)) return std::nullopt;
  for (std::size_t i = 0; i < used_slots(query_outputs); ++i) {
    if (!take(match_one(kernel, query_outputs[i], row_outputs[i], false))) return std::nullopt;
  }
  return worst;
}

}  // namespace fuselab::perfdb
