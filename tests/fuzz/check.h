// What must hold for every graph.
#pragma once
#include <string>

#include "graph_gen.h"

namespace fuselab::fuzz {

struct CheckOptions {
  bool other_isa = true;  ///< also compile for AVX2 where the machine has AVX-512
};

/// Empty when everything holds, else one line that says what does not:
/// the text form round-trips; `block` lies within the error bound of fp64; equal bits for 1 and 2 threads and for AVX2 and
/// AVX-512; kernel IR read back is the same kernel, whose accesses lie inside its buffers; `eager` mode has the same bits fused
/// and unfused.
std::string check(const Case& c, const CheckOptions& options = {});

/// The kind of a failure: its words up to the first colon. Minimising keeps it.
std::string kind_of(const std::string& failure);

}  // namespace fuselab::fuzz
