// Numbers that decide how much evidence a choice of methods needs. None of them belongs to a device.
#pragma once
#include <cstddef>
#include <cstdint>

namespace fuselab::perfdb {

constexpr std::size_t kLeastForTrees = 2500;  ///< rows; with fewer, leaves hold noise
constexpr std::size_t kLeastForBlend = 250;   ///< judged rows; with fewer, a sum of methods fits their noise
constexpr std::size_t kTuning = 500;          ///< rows on which a process is tuned, at most
constexpr std::size_t kJudged = 4000;         ///< rows on which methods are compared, at most
constexpr double kWorthTrees = 0.2;           ///< weight below which trees are left out
constexpr int kBlendSteps = 12;
/// What a 90th percentile counts beside the median: a step's sum suffers from the few that are far off.
constexpr double kTail = 6;

/// A number that looks random and never changes (the finaliser of SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
inline std::uint64_t mixed(std::uint64_t v) {
  v += 0x9E3779B97F4A7C15u;
  v = (v ^ (v >> 30)) * 0xBF58476D1CE4E5B9u;
  v = (v ^ (v >> 27)) * 0x94D049BB133111EBu;
  return v ^ (v >> 31);
}

}  // namespace fuselab::perfdb
