#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel that holds everything it needs: build/wheel/dist/kvspectrum-VERSION-py3-none-manylinux….whl. Needs
# the packages of `scripts/setup.sh build`, and the network once for the tools of scripts/wheel/tools.txt (a venv of
# their own).
# Usage: scripts/wheel.sh [-D NAME=VALUE]...   options for CMake
set -euo pipefail
cd "$(dirname "$0")/.."
settings=()
while [ $# -gt 0 ]; do
  if [ "$1" != -D ] || [ $# -lt 2 ]; then
    echo "wheel.sh: error: found '$1', expected -D NAME=VALUE" >&2
    exit 2
  fi
  settings+=("-Ccmake.define.$2")
  shift 2
done

tools=build/wheel/tools
if ! cmp -s scripts/wheel/tools.txt "$tools/ready"; then
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r scripts/wheel/tools.txt
  cp scripts/wheel/tools.txt "$tools/ready"
fi
export PATH=$PWD/$tools/bin:$PATH CMAKE_GENERATOR=Ninja
rm -rf build/wheel/plain build/wheel/dist
pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w build/wheel/plain \
  -Cbuild-dir=build/wheel -Ccmake.define.KVS_STATIC_HDF5=ON "${settings[@]}" .
python scripts/wheel/assemble.py build/wheel/plain/*.whl build/wheel/dist
