// kernel_details.csv and its relatives: one canonical table for every header that Ascend's profilers wrote (torch_npu's level 0
// to 2, msprof's op_summary, mskpp's, averaged tables of a performance database) and for our own files.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuselab::profile {

/// One operand. A scalar has no sizes; an empty slot of a list is a scalar too, as the files have it.
struct OperandInfo {
  std::vector<std::int64_t> sizes;
  std::string dtype, format;  ///< as written: FLOAT16, DT_BF16, FORMAT_ND, ND
};

/// One launch. What a file does not say is empty, never 0.
struct KernelRow {
  std::optional<std::int64_t> step, device, stream, task;
  std::string name, type, state, core;   ///< core: AI_VECTOR_CORE, AI_CORE, HCCL, CPU, ...
  std::optional<std::int64_t> start_ns;  ///< exact: the files have decimal microseconds beyond a double's digits
  std::optional<double> duration_us, wait_us;
  std::optional<std::int64_t> blocks, mix_blocks;
  std::vector<OperandInfo> inputs, outputs;
  std::map<std::string, std::string> counters;  ///< every other column with a value, by its header
};

struct KernelTable {
  std::string source;                ///< the path
  std::vector<std::string> columns;  ///< as in the file
  std::vector<KernelRow> rows;
  bool has(std::string_view column) const;
};

/// Throws Error("profile.no_column" | "profile.malformed" | "profile.empty" | "csv.malformed" | "file.unreadable"): what was
/// looked for, and what is there. A table without rows is profile.empty: "no kernels in profile".
KernelTable read_kernel_details(const std::string& path);
KernelTable parse_kernel_details(std::string_view text, const std::string& what);

/// Microseconds per step, in the order of step numbers. Needs the step and duration columns; throws as above.
std::vector<std::pair<std::int64_t, double>> step_sums(const KernelTable& table);

/// The header that torch_npu writes today (CANN since 2026-02: Block Num), and rows under it; shapes are quoted twice and a start
/// time ends in a tab, as there. Written aside and renamed. Throws Error("file.write").
void write_kernel_details(const std::string& path, const std::vector<KernelRow>& rows);
/// Complete events of the trace format that Perfetto and chrome://tracing open; `ts` is a decimal string, exact to the
/// nanosecond.
void write_trace(const std::string& path, const std::vector<KernelRow>& rows);

/// Decimal text to an integer count of 1/1000 units, exact; digits past the third decimal are rounded. nullopt: no number.
std::optional<std::int64_t> parse_milli(std::string_view text);
/// `1,2;3;` -> {1,2}, {3}, {}. Throws std::invalid_argument for what is no list of sizes.
std::vector<std::vector<std::int64_t>> parse_shapes(std::string_view text);

}  // namespace fuselab::profile
