#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a list of Debian 12 packages (scripts/packages.txt) and the lists before it. Does nothing if all are present.
# Fetches cuDNN's front end if nvcc is installed. Usage: setup.sh [runtime | build | development]
#   runtime      what the built programs need
#   build        and what the build of the programs needs
#   development  and what the tests and the lint need (default)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
last=${1:-development}
case $#,$last in
  [01],runtime | [01],build | [01],development) ;;
  *) echo "setup.sh: error: found '$*', expected runtime, build or development" >&2; exit 2 ;;
esac

# The names up to the end of the list $last.
packages=$(awk -v last="[$last]" '/^\[/ { if (done) exit; done = $1 == last; next } /^[a-z]/' "$here/packages.txt")
missing=()
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$package")
done
if [ ${#missing[@]} -ne 0 ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup.sh: error: needs root or sudo to install ${missing[*]}" >&2; exit 6; }
    as_root=(sudo)
  fi
  install=("${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get install --no-install-recommends)
  "${as_root[@]}" apt-get update -qq
  echo "installing: ${missing[*]}"
  # apt's own numbers: what it downloads, and what the packages take. --assume-no ends with status 1.
  { "${install[@]}" --assume-no "${missing[@]}" || true; } 2>&1 | sed -n '/^Need to get\|^After this/s/^/  /p'
  "${install[@]}" -y -qq "${missing[@]}" >/dev/null
fi

if [ "$last" != runtime ] && command -v nvcc >/dev/null && ! "$here/fetch_cudnn_frontend.sh" >/dev/null; then
  echo "setup.sh: warning: found no front end of cuDNN; the CUDA build will not use cuDNN's attention" >&2
fi
