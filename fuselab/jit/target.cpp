#include <cstdlib>

#include "fuselab/core/error.h"
#include "fuselab/jit/jit.h"

namespace fuselab::jit {
namespace {

#if defined(__x86_64__)
// What x86-64-v3 and x86-64-v4 ask of the CPU (System V psABI, micro-architecture levels).
bool has_avx2() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt") &&
         __builtin_cpu_supports("popcnt");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vl");
}
#else
bool has_avx2() { return false; }
bool has_avx512() { return false; }
#endif

bool supported(const std::string& isa) {
  return isa == "generic" || (isa == "avx2" && has_avx2()) || (isa == "avx512" && has_avx512());
}

}  // namespace

Target Target::host() {
  if (const char* wanted = std::getenv("FUSELAB_ISA"); wanted != nullptr && *wanted != '\0') {
    const std::string isa = wanted;
    if (isa != "avx512" && isa != "avx2" && isa != "generic") {
      fail("jit.bad_isa", "FUSELAB_ISA={} is unknown: use avx512, avx2 or generic, or leave it unset", isa);
    }
    if (!supported(isa))
      fail("jit.bad_isa", "FUSELAB_ISA={}: this CPU cannot run it; use {} or leave it unset", isa,
           has_avx2() ? "avx2" : "generic");
    return {isa};
  }
  static const std::string best = has_avx512() ? "avx512" : has_avx2() ? "avx2" : "generic";
  return {best};
}

}  // namespace fuselab::jit
