#!/usr/bin/env bash
# Installs the Debian packages of a list that are not there yet. Usage: scripts/packages.sh LIST
# Does nothing, quickly, when all are there; asks for root only when one is missing.
set -euo pipefail

missing=()
while read -r package shown; do
  case "$package" in '' | '#'*) continue ;; esac
  case "$shown" in
    -) dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package") ;;
    /*) [ -e "$shown" ] || missing+=("$package") ;;
    *) command -v "$shown" >/dev/null || missing+=("$package") ;;
  esac
done <"$1"
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "setup: missing: ${missing[*]} (Debian's names); install them with your system's package manager" >&2
  exit 1
fi
if [ "$(id -u)" = 0 ]; then
  as_root=()
elif sudo -n true 2>/dev/null; then
  as_root=(sudo)
else
  echo "setup: missing Debian packages; run as root: apt-get install ${missing[*]}" >&2
  exit 1
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
