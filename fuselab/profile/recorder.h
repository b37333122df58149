// The step profiler: every launch of every compiled graph in the process, with names, shapes and times.
//
// Recording costs two readings of the clock and one entry per launch; names and shapes are looked up when the files are written.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fuselab/profile/kernel_details.h"

namespace fuselab::profile {

/// Starts recording; what an earlier recording left is dropped. Throws Error("profile.running") when one is in progress.
void start_recording();
/// Launches from here on belong to step `step` (from 1); before the first mark they have no step.
void mark_step(std::int64_t step);
/// A launch of something that is not a compiled graph (a reference path that is timed beside): same clock.
void record_span(const std::string& name, const std::string& type, std::int64_t begin_ns, std::int64_t end_ns);
bool recording();
/// Stops, and gives what was recorded: a row per launch in the order of their beginning. Throws Error("profile.stopped") when
/// nothing is recorded. Start times are of the system's clock, so that two processes' files can be laid side by side.
std::vector<KernelRow> stop_recording();

/// Writes kernel_details.csv and trace_view.json into `folder`, which is made; synced before it returns.
void write_profile(const std::string& folder, const std::vector<KernelRow>& rows);

}  // namespace fuselab::profile
