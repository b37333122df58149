// "did you mean": the nearest known word, for error messages.
#pragma once
#include <string>
#include <vector>

namespace fuselab {

/// "; did you mean 'gelu'?" when a known word is within two edits (one for short words), else "". Deterministic.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);

}  // namespace fuselab
