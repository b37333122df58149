#!/usr/bin/env bash
# The C++ tests under sanitizers. Usage: scripts/sanitize.sh asan|tsan [gtest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
scripts/packages.sh scripts/packages-lint.txt
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" --target fuselab_tests
export UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS="suppressions=$PWD/scripts/tsan.supp"
# LLVM's archives are not instrumented: its containers would look overrun to the checks that span both sides.
export ASAN_OPTIONS=detect_container_overflow=0:detect_stack_use_after_return=0 LSAN_OPTIONS="suppressions=$PWD/scripts/lsan.supp"
exec "build/$preset/fuselab_tests" --gtest_brief=1 "$@"
