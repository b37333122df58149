#!/usr/bin/env bash
# Regenerates the pages that are made from the program. With --check: writes nothing, fails when a page is not what it would be made as.
# FUSELAB=path/to/fuselab uses another build than .venv's.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${FUSELAB:-.venv/bin/fuselab}
python=$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

"$program" ops --json >"$made/table.json"
"$python" scripts/gen_operators.py "$made/table.json" >"$made/operators.md"
"$program" flags --markdown >"$made/flags.md"
"$python" scripts/gen_kernel_tour.py "$program" >"$made/how-a-kernel-is-made.md"

status=0
for page in operators flags how-a-kernel-is-made; do
  if [ "${1:-}" = --check ]; then
    diff -u "docs/$page.md" "$made/$page.md" >&2 || { echo "docs: docs/$page.md is not what the program makes; run make docs" >&2; status=1; }
  elif ! cmp -s "docs/$page.md" "$made/$page.md"; then
    cp "$made/$page.md" "docs/$page.md"
    echo "docs: wrote docs/$page.md"
  fi
done
"$python" scripts/check_docs.py || status=1
exit $status
