#include "profile.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errors.h"
#include "fuselab/profile/bench.h"
#include "fuselab/profile/kernel_details.h"
#include "fuselab/profile/recorder.h"
#include "fuselab/profile/trace.h"
#include "fuselab/runtime/observe.h"

namespace nb = nanobind;

namespace fuselab::python {
namespace {

using profile::KernelRow;
using profile::KernelTable;
using profile::OperandInfo;

nb::list operands(const std::vector<OperandInfo>& all) {
  nb::list out;
  for (const OperandInfo& o : all) {
    nb::dict d;
    d["sizes"] = o.sizes;
    d["dtype"] = o.dtype;
    d["format"] = o.format;
    out.append(d);
  }
  return out;
}

/// None for what the file does not say.
nb::dict dict_of(const KernelRow& r) {
  nb::dict d;
  const auto text = [](const std::string& s) -> nb::object { return s.empty() ? nb::none() : nb::cast(s); };
  d["step"] = r.step;
  d["device"] = r.device;
  d["stream"] = r.stream;
  d["task"] = r.task;
  d["name"] = text(r.name);
  d["type"] = text(r.type);
  d["state"] = text(r.state);
  d["core"] = text(r.core);
  d["start_ns"] = r.start_ns;
  d["duration_us"] = r.duration_us;
  d["wait_us"] = r.wait_us;
  d["blocks"] = r.blocks;
  d["mix_blocks"] = r.mix_blocks;
  d["inputs"] = operands(r.inputs);
  d["outputs"] = operands(r.outputs);
  d["counters"] = r.counters;
  return d;
}

nb::list rows_of(const std::vector<KernelRow>& rows) {
  nb::list out;
  for (const KernelRow& r : rows) out.append(dict_of(r));
  return out;
}

}  // namespace

void add_profile(nb::module_& m) {
  m.def("profile_start", &profile::start_recording, "Starts recording every launch of every compiled graph in the process.");
  m.def("profile_step", &profile::mark_step, nb::arg("step"), "Launches from here on belong to this step (from 1; 0: to none).");
  m.def("profile_span", &profile::record_span, nb::arg("name"), nb::arg("type"), nb::arg("begin_ns"), nb::arg("end_ns"),
        "A launch of something else, by profile_clock().");
  m.def("profile_clock", &runtime::now_ns, "Nanoseconds of the recorder's clock.");
  m.def("profiling", &profile::recording);
  m.def(
      "profile_stop",
      [](const std::optional<std::string>& folder) {
        const std::vector<KernelRow> rows = profile::stop_recording();
        if (folder) {
          nb::gil_scoped_release release;
          profile::write_profile(*folder, rows);
        }
        return rows_of(rows);
      },
      nb::arg("folder").none() = nb::none(),
      "Stops; writes kernel_details.csv and trace_view.json into `folder`; gives the rows.");
  m.def(
      "read_kernel_details",
      [](const std::string& path) {
        const KernelTable table = profile::read_kernel_details(path);
        nb::dict d;
        d["columns"] = table.columns;
        d["rows"] = rows_of(table.rows);
        return d;
      },
      nb::arg("path"), "Any kernel_details.csv or op_summary; what a file does not say is None.");
  m.def(
      "step_sums", [](const std::string& path) { return profile::step_sums(profile::read_kernel_details(path)); },
      nb::arg("path"), "[(step, microseconds), ...] of a kernel_details.csv.");
  m.def(
      "bench_table",
      [](const std::string& kernel, const std::vector<double>& graph, const std::vector<double>& eager) {
        return profile::bench_table(kernel, graph, eager);
      },
      nb::arg("kernel"), nb::arg("graph"), nb::arg("eager"), "The lines of the table; microseconds per step.");
  m.def(
      "bench_verdict",
      [](const std::vector<double>& graph, const std::vector<double>& eager, const std::vector<double>& again,
         const std::vector<double>& artifact, const std::string& other) {
        const profile::BenchSteps steps{graph, eager, again, artifact, other};
        const profile::Ratio judged = profile::judged_ratio(steps);
        nb::dict d;
        d["lines"] = profile::bench_verdict(steps);
        d["ratio"] = judged.value;
        d["spread"] = judged.spread;
        d["ambiguous"] = judged.ambiguous;
        return d;
      },
      nb::arg("graph"), nb::arg("eager"), nb::arg("again") = std::vector<double>(), nb::arg("artifact") = std::vector<double>(),
      nb::arg("other") = "eager",
      "Ratio of the averages, half of its 99.9 % interval, whether 1 is inside the noise; and as lines.");
  m.def("newest_profile", &profile::newest_profile, nb::arg("folder"),
        "Folder of the newest kernel_details.csv below this one: torch_npu's or ours.");
  m.def("last_level_cache_bytes", &profile::last_level_cache_bytes);
  m.def("evict_caches", &profile::evict_caches, nb::call_guard<nb::gil_scoped_release>(),
        "Sweeps twice the last-level cache, so that what is used next comes from memory.");
  m.def("recording_cost_ns", &profile::recording_cost_ns, nb::call_guard<nb::gil_scoped_release>(),
        "What recording adds to a launch on this machine.");
  m.def(
      "read_trace",
      [](const std::string& path, bool salvage) {
        const profile::Trace trace = profile::read_trace(path, salvage);
        nb::list events;
        for (const profile::TraceEvent& e : trace.events) {
          nb::dict d;
          d["name"] = e.name;
          d["phase"] = e.phase;
          d["category"] = e.category;
          d["process"] = e.process;
          d["thread"] = e.thread;
          d["start_ns"] = e.start_ns;
          d["duration_ns"] = e.duration_ns;
          d["args"] = e.args;
          events.append(d);
        }
        nb::dict out;
        out["base_ns"] = trace.base_ns;
        out["events"] = events;
        out["lost"] = trace.lost;
        return out;
      },
      nb::arg("path"), nb::arg("salvage") = false,
      "A trace_view.json: times exact and from the first event on; with `salvage` also what is left of a broken file.");
}

}  // namespace fuselab::python
