#!/usr/bin/env bash
# The C++ tests under sanitizers, then (asan) random graphs. Usage: scripts/sanitize.sh asan|tsan [gtest arguments]
#
# SHARDS=n   run the tests as n processes, JOBS at a time (default: 2 per core); a finding ends its process only
# JOBS=n     processes at a time (default: the cores)
# SHARD=i    only shard i, 0 to SHARDS-1
# FUZZ=n     random graphs after the tests (default 40 for asan without gtest arguments, else 0)
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
jobs=${JOBS:-$(nproc)}
shards=${SHARDS:-$((2 * $(nproc)))}
fuzz=${FUZZ:-$([ "$preset" = asan ] && [ $# = 0 ] && echo 40 || echo 0)}
scripts/packages.sh scripts/packages-lint.txt
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" --parallel "$jobs" --target fuselab_tests $([ "$fuzz" -gt 0 ] && echo fuselab_fuzz)

export UBSAN_OPTIONS=print_stacktrace=1
status=0
export dir=build/$preset shards
if [ -n "${SHARD:-}" ]; then list=$SHARD; else list=$(seq 0 $((shards - 1))); fi
printf '%s\n' $list | xargs -P "$jobs" -I{} sh -c '
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX={} $dir/fuselab_tests --gtest_brief=1 "$@" >$dir/shard-{}.log 2>&1
  code=$?; [ $code = 0 ] || cat $dir/shard-{}.log
  echo "$dir: shard {} of $shards: exit status $code, $(grep -c "^==.*ERROR\|runtime error:\|^WARNING: ThreadSanitizer" $dir/shard-{}.log) findings, $(sed -nE "s/^\[ +PASSED +\] //p" $dir/shard-{}.log)"
  exit $code' sh "$@" || status=1
if [ "$fuzz" -gt 0 ]; then
  "$dir/fuselab_fuzz" --count "$fuzz" --seed 1 --no-minimise || status=1
fi
exit $status
