#!/usr/bin/env bash
# Layout of C++ and Python, clang-tidy, types. clang-tidy takes 10 to 20 s per file: it runs on files changed since BASE (default:
# where this branch left origin/main or main), on all with ALL=1.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/packages.sh scripts/packages-lint.txt
.venv/bin/python -m pip install -qq -r scripts/requirements-lint.txt

mapfile -t sources < <(git ls-files '*.cpp' '*.h')
echo "lint: clang-format (${#sources[@]} files)"
clang-format-19 --dry-run -Werror "${sources[@]}"

base=${BASE:-$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main 2>/dev/null || true)}
if [ -n "${ALL:-}" ] || [ -z "$base" ]; then
  mapfile -t tidy < <(git ls-files 'fuselab/**/*.cpp' 'cli/*.cpp')
else
  mapfile -t tidy < <(git diff --name-only --diff-filter=d "$base" -- 'fuselab/**/*.cpp' 'cli/*.cpp')
fi
if [ ${#tidy[@]} -gt 0 ]; then
  echo "lint: clang-tidy (${#tidy[@]} files)"
  cmake --preset dev >/dev/null
  printf '%s\n' "${tidy[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy-19 --quiet -p build/dev 2>/dev/null
fi

echo "lint: ruff, mypy"
.venv/bin/ruff check python tests bench examples scripts
.venv/bin/mypy
