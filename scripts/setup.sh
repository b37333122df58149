#!/usr/bin/env bash
# From a fresh clone to .venv/bin/fuselab and `import fuselab`. Each step is skipped when what it depends on has not changed.
#
# PYTHON=python3.12          another interpreter for .venv
# FUSELAB_TORCH=torch==...   another PyTorch (default: the version the tests are written for)
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
torch=${FUSELAB_TORCH:-torch==2.13.0}

scripts/packages.sh scripts/packages.txt

if [ ! -x .venv/bin/python ]; then
  echo "setup: making .venv"
  "$python" -m venv .venv
fi
if ! .venv/bin/python -c 'import os, sysconfig; raise SystemExit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))'; then
  echo "setup: this Python has no headers; on Debian: apt-get install python3-dev" >&2
  exit 1
fi

# Done once per content: the stamp holds the hash of what the step was made from.
up_to_date() { [ -f ".venv/$1.stamp" ] && [ "$(cat ".venv/$1.stamp")" = "$2" ]; }

want=$( (echo "$torch"; cat scripts/requirements.txt) | sha256sum)
if ! up_to_date python-packages "$want"; then
  echo "setup: installing $torch and the Python packages of scripts/requirements.txt"
  .venv/bin/python -m pip install -qq "$torch" -r scripts/requirements.txt
  echo "$want" >.venv/python-packages.stamp
fi

want=$(find . -path ./.venv -prune -o -path ./build -prune -o -path ./tests -prune -o -type f \
  \( -name '*.cpp' -o -name '*.h' -o -name '*.py' -o -name '*.txt' -o -name '*.cmake' -o -name '*.toml' -o -name '*.typed' \) \
  \( -path './fuselab/*' -o -path './cli/*' -o -path './python/*' -o -path './cmake/*' -o -path './CMakeLists.txt' -o -path './pyproject.toml' \) -print0 |
  LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
if ! up_to_date wheel "$want"; then
  echo "setup: building and installing fuselab (a few minutes the first time)"
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  .venv/bin/python -m pip install -qq --no-build-isolation --no-deps --force-reinstall .
  echo "$want" >.venv/wheel.stamp
fi
