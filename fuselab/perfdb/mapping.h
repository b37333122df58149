// op_mapping.yaml: which kernel's rows answer for an operator, and how they are looked up.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fuselab::perfdb {

/// How an operator is looked up; `compute` where the file names no mode.
enum class QueryMode : std::uint8_t { compute, elementwise, attention_special, moe_fused, mtp_projection };

/// Sizes that tensor parallelism divides although the operator shows them whole.
struct TpProjection {
  bool output = false;  ///< the axis of the output (N); else the input's (K)
  std::vector<std::int64_t> global_dims;
};

/// An entry of `operator_mappings`.
struct OperatorEntry {
  std::string name, kernel_type, compute_subcategory, mtp_projection_kernel_type, notes;
  std::vector<std::string> alternates, sub_kernels, expected_input_formats;
  std::map<std::int64_t, std::vector<std::string>> by_input_rank;
  std::optional<std::int64_t> tc_input_count;
  std::optional<TpProjection> tp_projection;
  QueryMode mode = QueryMode::compute;
  bool communication = false, composite = false, decomposer = false, zero_cost = false, require_all_sub_kernels = false;
  std::optional<std::string> accepted_miss;  ///< why a miss is expected
  std::vector<std::string> unknown;          ///< fields this version does not act on; kept in the file
  std::size_t line = 0;

  /// The kernels to look in, first to last, for a first input of this rank.
  std::vector<std::string> kernels(std::size_t first_rank) const;
};

/// What `interpolation_policy`, `latency_policy` and `query_selection_policy` say of one kernel.
struct KernelPolicy {
  std::optional<std::int64_t> max_interpolation_dim;
  std::string axis_transform;  ///< sqrt_seq, linear or empty
  std::string axis;            ///< output_numel or empty
  std::optional<double> max_duration_to_core_ratio;
  bool prefer_profiling_rows = false, require_semantic_unique = false;
};

struct Mapping {
  std::string path;
  std::map<std::string, std::string> top;  ///< version, device, cann_version, ... as text
  std::map<std::string, OperatorEntry> operators;
  std::map<std::string, KernelPolicy> policies;
  std::vector<std::string> warnings;  ///< with the line: what the file says that cannot be meant, or is not acted on

  /// Throws Error("file.unreadable"), Error("db.bad_mapping") with file and line.
  static Mapping read(const std::string& path);
  static Mapping parse(const std::string& text, const std::string& what);

  std::string get(const std::string& key) const;
  const OperatorEntry* find(const std::string& op) const;
  KernelPolicy policy(const std::string& kernel) const;
};

}  // namespace fuselab::perfdb
