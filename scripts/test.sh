#!/usr/bin/env bash
# All tests: the C++ ones and 200 random graphs against the library that the wheel holds, then the precision report in
# its small size and the Python ones against the installed wheel. All run even when one fails; the exit status is 1 when any did.
set -uo pipefail
cd "$(dirname "$0")/.."
status=0

echo "== C++ tests"
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
log=build/unit.log
if cmake -S . -B build/wheel -DFUSELAB_BUILD_TESTS=ON >build/configure.log 2>&1 && cmake --build build/wheel --target fuselab_tests fuselab_fuzz >build/build.log 2>&1; then
  build/wheel/fuselab_tests --gtest_brief=1 2>&1 | tee "$log"
  [ "${PIPESTATUS[0]}" = 0 ] || status=1
  count() { sed -nE "s/^\[ +$1 +\] ([0-9]+) tests?.*/\1/p" "$log" | head -1; }
  passed=$(count PASSED) failed=$(count FAILED) skipped=$(count SKIPPED)
  [ -n "$passed" ] || status=1
  echo "unit: ${passed:-0} passed, ${failed:-$((${passed:-0} == 0))} failed, ${skipped:-0} skipped"
  echo "== Random graphs"
  build/wheel/fuselab_fuzz --count 200 --seed 1 || status=1
else
  tail -40 build/configure.log build/build.log
  echo "unit: 0 passed, 1 failed"
  status=1
fi

echo "== Precision report, small"
.venv/bin/fuselab prove --small --out build/precision-report || status=1

echo "== Python tests"
export FUSELAB_PROGRAM=$PWD/.venv/bin/fuselab  # what is installed, not another build
.venv/bin/python -m pytest -q tests/python || status=1
exit $status
