// Rows of one kernel file that may be interpolated together, as points: what varies, what must be equal, and what each costs.
//
// A family is recognised by columns and tensor slots, never by the kernel's or the device's name:
//   matmul         two inputs `m,k;n,k` (or `m,k;k,n`) and one output `m,n`    curve m; sites n, k
//   attention      a column `avg_seq_len` and q, k, v of rank 3                curves seq, batch; sites heads, kv_heads
//   moe            a column `EP Size` and five slots, weights of rank 3        curve tokens; sites and categories of the experts
//   elementwise    one input                                                   curve: the leading dims' product; site: the last
//   dim communication  columns `message_bytes`, `num_devices`                      curve bytes; categories dtype, tier, ranks
//   generic        any other file with shapes                                  curve: the first dim that varies; sites: the
//   others
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuselab::perfdb {

enum class FamilyKind { kMatmul, kAttention, kMoe, kElementwise, kCommunication, kGeneric };
const char* name(FamilyKind kind);

enum class AxisRole {
  kCurve,    ///< a prediction moves along it: m, tokens, sequence, bytes
  kSite,     ///< fixed along a curve, may be interpolated between curves: n, k, heads
  kCategory  ///< must be one that was measured: experts per rank, distribution, ranks
};

struct Axis {
  std::string name;
  AxisRole role;
  bool word = false;  ///< a category given by words, which have no order
};

/// One row, or one question, in the terms of its family.
struct Point {
  FamilyKind kind = FamilyKind::kGeneric;
  std::string regime;     ///< dtypes, formats and whatever else must be equal, as text
  std::vector<double> x;  ///< one per axis, in natural units; text categories as hashes
  double flops = 0;       ///< floating-point operations
  double bytes = 0;       ///< traffic of memory or link
  std::string peak;       ///< the dtype whose arithmetic peak bounds it: BF16, FLOAT8_E4M3FN
  double latency_us = 0;  ///< 0: not known
  std::vector<Axis> axes;
};

/// Text of a column, empty when the file has no such column.
using Columns = std::function<std::string_view(std::string_view)>;

/// What a row is; nothing when it has no shapes. Throws Error("perfdb.bad_shape") for text that is not a shape.
std::optional<Point> describe(const Columns& row);

struct Family {
  FamilyKind kind = FamilyKind::kGeneric;
  std::string file, regime, peak;
  std::vector<Axis> axes;
  std::vector<double> x;  ///< rows × axes, in natural units
  std::vector<double> latency_us, flops, bytes;
  std::vector<std::int64_t> line;  ///< where the row begins in the file, from 1

  std::size_t size() const { return latency_us.size(); }
  double at(std::size_t row, std::size_t axis) const { return x[row * axes.size() + axis]; }
  const double* point(std::size_t row) const { return x.data() + row * axes.size(); }
};

/// The families of a kernel's CSV, in the order of their first rows; rows without a latency are left out.
/// Throws Error("csv.malformed"), Error("perfdb.bad_shape"), Error("file.unreadable").
std::vector<Family> read_families(const std::string& path);

/// Sums measured twice under one point into one row (their median), so that a curve has one value per point.
Family without_duplicates(const Family& family);

}  // namespace fuselab::perfdb
