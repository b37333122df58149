// Our own profile files.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fuselab/core/csv.h"
#include "fuselab/core/whole_file.h"
#include "fuselab/profile/kernel_details.h"

namespace fuselab::profile {
namespace {

constexpr const char* kHeader =
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output "
    "Formats,Context ID\n";

std::string text_of(const std::optional<std::int64_t>& v) { return v ? std::to_string(*v) : "N/A"; }

/// Nanoseconds as microseconds with three decimals.
std::string micro(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string shapes(const std::vector<OperandInfo>& operands) {
  std::string out;
  for (std::size_t i = 0; i < operands.size(); ++i) out += fmt::format("{}{}", i ? ";" : "", fmt::join(operands[i].sizes, ","));
  return out;
}

std::string joined(const std::vector<OperandInfo>& operands, std::string OperandInfo::* member) {
  std::string out;
  for (std::size_t i = 0; i < operands.size(); ++i) out += (i ? ";" : "") + operands[i].*member;
  return out;
}

}  // namespace

void write_kernel_details(const std::string& path, const std::vector<KernelRow>& rows) {
  std::string out = kHeader;
  for (const KernelRow& r : rows) {
    const auto list = [](const std::vector<OperandInfo>& o, const std::string& text) {
      return o.empty() ? std::string("N/A") : text;
    };
    out +=
        fmt::format("{},{},4294967295,{},{},{},{},{},{},", text_of(r.step), text_of(r.device), text_of(r.task), text_of(r.stream),
                    csv_field(r.name), csv_field(r.type), r.state.empty() ? "N/A" : r.state, r.core.empty() ? "N/A" : r.core);
    out += r.start_ns ? fmt::format("\"{}\t\",", micro(*r.start_ns)) : "N/A,";
    out += r.duration_us ? fmt::format("{:.3f},", *r.duration_us) : "N/A,";
    out += r.wait_us ? fmt::format("{:.3f},", *r.wait_us) : "N/A,";
    out += fmt::format("{},{},NO,", text_of(r.blocks), text_of(r.mix_blocks));
    for (const std::vector<OperandInfo>* o : {&r.inputs, &r.outputs}) {
      out += list(*o, csv_field("\"" + shapes(*o) + "\"")) + ",";
      out += list(*o, csv_field(joined(*o, &OperandInfo::dtype))) + ",";
      out += list(*o, csv_field(joined(*o, &OperandInfo::format))) + ",";
    }
    out += "N/A\n";
  }
  write_whole(path, {out});
}

void write_trace(const std::string& path, const std::vector<KernelRow>& rows) {
  std::string out = "[\n";
  out += R"({"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "fuselab"}})";
  for (const KernelRow& r : rows) {
    if (!r.start_ns || !r.duration_us) continue;
    nlohmann::ordered_json event = {{"name", r.name}, {"ph", "X"}, {"cat", r.core}, {"pid", 0}, {"tid", r.stream.value_or(0)}};
    nlohmann::ordered_json& args = event["args"];
    args["Type"] = r.type;
    if (r.step) args["Step Id"] = *r.step;
    if (r.blocks) args["Block Num"] = *r.blocks;
    args["Input Shapes"] = shapes(r.inputs);
    args["Output Shapes"] = shapes(r.outputs);
    std::string text = event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    // Decimal strings keep every nanosecond; viewers take strings and numbers alike.
    text.insert(text.size() - 1, fmt::format(R"(,"ts": "{}","dur": {:.3f})", micro(*r.start_ns), *r.duration_us));
    out += ",\n" + text;
  }
  write_whole(path, {out, "\n]\n"});
}

}  // namespace fuselab::profile
